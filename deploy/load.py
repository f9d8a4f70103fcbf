"""`tickthrottle load`: will it hold? Trades in, clients out, a report."""

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from deploy.entry import (
    KafkaServers,
    KafkaTopicName,
    LogOption,
    RedisUrl,
    fail,
)


class Raised(StrEnum):
    """What a capacity search raises."""

    rate = "rate"
    clients = "clients"


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(load)


def load(
    scenario: Annotated[
        str | None,
        typer.Option(
            help="A load by name: standard, short, opening, bursts, stress. Options "
            "win over it. [default: short]"
        ),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Trades per second. [default: 900]")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            help="The rate over time: steps and ramps, an opening, bursts, such as "
            "900:60s,900..5000:60s,1700/100ms@30s; as long as it lasts is measured."
        ),
    ] = None,
    tape: Annotated[
        list[Path] | None,
        typer.Option(help="Play this tape, not the simulator; may be repeated."),
    ] = None,
    speed: Annotated[
        float | None, typer.Option(help="Times the tapes' own pace. [default: 1]")
    ] = None,
    max_gap: Annotated[
        float | None,
        typer.Option(help="Shorten longer silences of the tapes to so many seconds."),
    ] = None,
    issues: Annotated[
        int, typer.Option(help="Number of issues of the simulator.")
    ] = 2_879,
    disorder: Annotated[
        float | None,
        typer.Option(help="Share of trades that come late, 0 to 1. [default: 0.02]"),
    ] = None,
    repeats: Annotated[
        float | None,
        typer.Option(help="Share of trades that come twice, 0 to 1. [default: 0.01]"),
    ] = None,
    malformed: Annotated[
        float | None,
        typer.Option(help="Share of broken trades, 0 to 1. [default: 0]"),
    ] = None,
    clients: Annotated[
        int | None, typer.Option(help="Number of clients. [default: 1000]")
    ] = None,
    keys: Annotated[
        int | None, typer.Option(help="Issues of each client. [default: 30]")
    ] = None,
    mix: Annotated[
        str | None,
        typer.Option(
            help="Kinds of clients and their shares, such as watch:9,slow:1; kinds "
            "are watch, market, slow, stalled, reconnecting, sse, polling."
        ),
    ] = None,
    poll_every: Annotated[
        list[float] | None,
        typer.Option(
            help="Seconds between two questions of a polling client; may be repeated "
            "for --compare-polling. [default: 10, and 2 to compare]"
        ),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="How long to measure. [default: 60]")
    ] = None,
    warm_up: Annotated[
        float | None,
        typer.Option(help="Seconds of load before that. [default: 30]"),
    ] = None,
    processes: Annotated[
        int, typer.Option(help="Processes of clients.", min=1, max=64)
    ] = 2,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            help="A threshold, such as 'lag.p99>250ms'; may be repeated. Broken: exit "
            "code 1. [default: the scenario's]"
        ),
    ] = None,
    find_capacity: Annotated[
        Raised | None,
        typer.Option(help="Raise this until a threshold breaks."),
    ] = None,
    start: Annotated[
        float | None,
        typer.Option(help="Where a search begins. [default: rate 10000, clients 1000]"),
    ] = None,
    most: Annotated[
        float | None,
        typer.Option(help="Where a search ends. [default: rate 400000, clients 15000]"),
    ] = None,
    step_seconds: Annotated[
        float, typer.Option(help="How long a search measures each step.", min=4)
    ] = 24,
    compare_polling: Annotated[
        bool,
        typer.Option(
            "--compare-polling",
            help="Serve the audience by polling, then by WebSocket.",
        ),
    ] = False,
    gateway: Annotated[
        list[str] | None,
        typer.Option(
            help="Load this running gateway, such as http://127.0.0.1:8000, and not "
            "one started for it; may be repeated. Needs the deployment's Redis too."
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the token that clients show to those gateways."),
    ] = None,
    log: LogOption = None,
    kafka_servers: KafkaServers = None,
    kafka_topic: KafkaTopicName = None,
    redis_url: RedisUrl = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to leave the report: this name with .json and .html. "
            "[default: load-<time>]"
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="What the report is called.")
    ] = None,
    render: Annotated[
        Path | None,
        typer.Option(help="Only make the page anew of this report's JSON."),
    ] = None,
) -> None:
    """Load a deployment with trades and checking clients, and report.

    Starts one on this machine unless `--gateway` names a running one. Ends with exit
    code 1 if a promise or a threshold was broken, 3 if the run could not be carried
    out.
    """
    from bench.load.command import Choices, LoadFailed, render_again, run_command
    from bench.load.plan import POLL_EVERY_S

    given = Choices(
        scenario=scenario,
        rate=rate,
        profile=profile,
        tapes=tuple(tape or ()),
        speed=speed,
        max_gap=max_gap,
        issues=issues,
        disorder=disorder,
        repeats=repeats,
        malformed=malformed,
        clients=clients,
        keys=keys,
        mix=mix,
        poll_every_s=tuple(poll_every or POLL_EVERY_S),
        seconds=seconds,
        warm_up_s=warm_up,
        processes=processes,
        rules=tuple(fail_if or ()),
        raised=None if find_capacity is None else find_capacity.value,
        start=start,
        most=most,
        step_s=step_seconds,
        compares_polling=compare_polling,
        gateways=tuple(gateway or ()),
        token_file=token_file,
        ingest={
            "log": log,
            "kafka_servers": kafka_servers,
            "kafka_topic": kafka_topic,
            "redis_url": redis_url,
        },
        out=out,
        title=title,
        command=shlex.join(["tickthrottle", *sys.argv[1:]]),
    )
    try:
        if render is not None:
            render_again(render, out)
            return
        is_passed = run_command(given)
    except ValueError as error:
        fail(str(error), code=2)
    except LoadFailed as error:
        fail(str(error), code=3)
    raise typer.Exit(0 if is_passed else 1)
