"""From the end of a window to its update in the hands of the last client.

A load test of the whole pipeline, warmed up, whose every window is taken apart: the
throttle's own log says where each batch spent its time. The clients run beside the
pipeline, so they compete with it for the same cores; what they cost is in the figures.
"""

import sys
import tempfile
from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from fill import TOPIC, create_topic, running_broker
from machine import memory_by_name, options, print_machine, print_table, read_batches
from rich.console import Console

from cli.commands.load_choices import LoadChoices
from loadtest.load_run import carry_out
from loadtest.plan import plan_of
from loadtest.report.console import RunDisplay
from loadtest.results import Outcome
from loadtest.system.deployment import local

WINDOW_S = 2


def main() -> None:
    arguments = options(
        __doc__,
        windows=(100, "how many to measure"),
        warmup=(30, "windows before that"),
        clients=(100, "of the stream"),
        keys=("30", "instruments a client, or 'all'"),
        rate=(900.0, "trades per second"),
        trade_log=("redis", "where trades are", ["redis", "kafka"]),
        partitions=(4, "of it"),
        archive=(False, "to files, meanwhile"),
        relay=(False, "into topics of a broker of its own, meanwhile"),
        analytics=("off", "bars,movers: beside it"),
    )
    everything = arguments.keys == "all"
    plan = plan_of(
        LoadChoices(
            scenario="standard",
            rate=arguments.rate,
            clients=arguments.clients,
            keys=30 if everything else int(arguments.keys),
            mix="market:1" if everything else "watch:1",
            seconds=WINDOW_S * arguments.windows,
            warm_up_s=WINDOW_S * arguments.warmup,
            processes=1,
        )
    )
    debug = {"TICKTHROTTLE_LOG_LEVEL": "debug"}
    with (
        trade_log(arguments) as settings,
        relayed_to(arguments) as topics,
        local(
            settings={**settings, **topics, **debug},
            archive=arguments.archive or arguments.relay,
            analytics=arguments.analytics,
        ) as deployment,
    ):
        with RunDisplay(Console(stderr=True)) as display:
            result = carry_out(plan, plan.feed.isins(), deployment, display)
        relayed = newest_relayed(topics)
        memory = memory_by_name(deployment.processes()).total()
        log = (deployment.logs / "throttle.log").read_bytes().splitlines()
        batches = read_batches(orjson.loads(x) for x in log if x.startswith(b"{"))
    keys = "everything" if everything else f"{arguments.keys} instruments each"
    report(
        f"{arguments.rate:g} trades/s, {arguments.clients} clients, {keys}, "
        f"{arguments.partitions} partitions of {arguments.trade_log}",
        result.outcome,
        batches,
    )
    if relayed:
        print(f"\n{relayed}")
    print(f"\nAll processes together: {memory / 2**20:.0f} MiB (PSS)")
    print_machine()
    for fault in result.outcome.faults:
        print(f"Not as it must be: {fault}")
    sys.exit(1 if result.outcome.faults else 0)


@contextmanager
def trade_log(arguments: Namespace) -> Iterator[dict[str, str]]:
    """Yield what the pipeline has to be told of its log; a broker runs meanwhile."""
    if arguments.trade_log == "redis":
        yield {"TICKTHROTTLE_PARTITIONS": str(arguments.partitions)}
        return
    with (
        tempfile.TemporaryDirectory(prefix="lag-") as folder,
        running_broker(Path(folder)) as servers,
    ):
        log = create_topic(servers, TOPIC, arguments.partitions, is_past=False)
        yield log.settings


@contextmanager
def relayed_to(arguments: Namespace) -> Iterator[dict[str, str]]:
    """Yield what an archive has to be told to relay; its broker runs meanwhile."""
    if not arguments.relay:
        yield {}
        return
    with (
        tempfile.TemporaryDirectory(prefix="relay-") as folder,
        running_broker(Path(folder)) as servers,
    ):
        yield {
            "TICKTHROTTLE_ARCHIVE_TOPICS": "prices",
            "TICKTHROTTLE_KAFKA_SERVERS": servers,
        }


def newest_relayed(topics: Mapping[str, str]) -> str:
    """Return how far the relay is, as a sentence; empty without one."""
    if not topics:
        return ""
    # Not each has the libraries of it.
    from archive.topics.record_values import WINDOW_TOPIC
    from archive.topics.relay_topics import RelayTopics
    from archive.topics.relayed_records import read_relayed

    where = topics["TICKTHROTTLE_KAFKA_SERVERS"], topics["TICKTHROTTLE_ARCHIVE_TOPICS"]
    last = RelayTopics(*where).last(WINDOW_TOPIC)
    runs = [] if last is None else read_relayed(last.headers())
    return f"Windows relayed by then: {sum(run.windows for run in runs):,}"


def report(title: str, outcome: Outcome, batches: Sequence[dict[str, Any]]) -> None:
    """Print where the time went, of windows that were a batch of their own."""
    alone = {b["window"]: b for b in batches if b["windows"] == 1 and "walCommit" in b}
    stages: dict[str, list[float]] = defaultdict(list)
    seen = outcome.windows
    for window, published_ms, lag_ms in zip(
        seen.end_ms, seen.publish_ms, seen.lag_max_ms, strict=True
    ):
        batch = alone.get(window)
        if batch is None or published_ms is None or lag_ms is None:
            continue
        # Of a window that its task has published nothing was handed on before.
        collect_ms = batch.get("collect_ms", 0.0)
        before_ms = batch["read_ms"] + collect_ms + batch["assemble_ms"]
        stages["window's end to the last client"].append(lag_ms)
        stages["window's end to publish"].append(published_ms)
        stages["- cut, last entries read"].append(batch["read_ms"])
        stages["- grouped, handed to the driver"].append(collect_ms)
        stages["- assemble"].append(batch["assemble_ms"])
        stages["- publish"].append(published_ms - before_ms)
        stages["- fan-out"].append(lag_ms - published_ms)
    windows = len(stages["- publish"])
    if not windows:
        raise SystemExit("no window was a batch of its own: the job was behind")
    print_table(f"{windows} windows, {title}", stages.items())


if __name__ == "__main__":
    main()
