"""The commands that feed the trade log: a simulated market, recorded tapes."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deploy.entry import (
    KafkaServers,
    KafkaTopicName,
    LogOption,
    RedisUrl,
    fail,
    read_settings,
)
from deploy.logs import configure_logs

if TYPE_CHECKING:
    from ingest.settings import IngestSettings


class Shape(StrEnum):
    """How the simulated market's rate goes over time."""

    flat = "flat"
    day = "day"


class Stamp(StrEnum):
    """What becomes of a tape's exchange times."""

    now = "now"
    recorded = "recorded"


ReportTo = Annotated[
    Path | None,
    typer.Option(
        help="Keep what was acknowledged, by partition, in this file, as JSON."
    ),
]
ProfileText = Annotated[
    str | None,
    typer.Option(
        help="How the rate goes over time: 900:60s,900..5000:60s,"
        "opening(900):600s,1700/100ms@30s; see docs/operations.md."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command()(simulate)
    app.command()(replay)


def simulate(
    rate: Annotated[
        float | None, typer.Option(help="Mean trades per second. [default: 750]")
    ] = None,
    profile: ProfileText = None,
    seconds: Annotated[
        float | None, typer.Option(help="How long. [default: until stopped]")
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same market.")] = 1,
    issues: Annotated[int, typer.Option(help="Number of issues.")] = 2_879,
    shape: Annotated[
        Shape, typer.Option(help="`day` has a busy opening and closing.")
    ] = Shape.flat,
    session: Annotated[float, typer.Option(help="Length of a `day`, seconds.")] = 600.0,
    disorder: Annotated[
        float, typer.Option(help="Share of trades that come late, 0 to 1.")
    ] = 0.02,
    repeats: Annotated[
        float, typer.Option(help="Share of trades that come twice, 0 to 1.")
    ] = 0.01,
    malformed: Annotated[
        float, typer.Option(help="Share of broken trades, 0 to 1.")
    ] = 0.0,
    report: ReportTo = None,
    log: LogOption = None,
    kafka_servers: KafkaServers = None,
    kafka_topic: KafkaTopicName = None,
    redis_url: RedisUrl = None,
) -> None:
    """Feed the trade log with a made-up Korean market."""
    from ingest.feed import FeedError, run_simulator
    from ingest.profile import Profile
    from ingest.simulator import Simulator

    settings = _settings(log, kafka_servers, kafka_topic, redis_url)
    if profile is not None and (rate is not None or shape is not Shape.flat):
        fail(f"profile {profile}: is in place of rate and shape", code=2)
    try:
        market = Simulator(
            seed=seed,
            rate=750.0 if rate is None else rate,
            issues=issues,
            shape=shape.value,
            session_s=session,
            seconds=seconds,
            disorder=disorder,
            repeats=repeats,
            malformed=malformed,
            profile=None if profile is None else Profile.parse(profile),
        )
        run_simulator(settings, market, report_to=report)
    except ValueError as error:
        fail(str(error), code=2)
    except FeedError as error:
        fail(str(error))


def replay(
    tapes: Annotated[
        list[Path],
        typer.Argument(
            help="CSV with a header or JSON lines, gzip or not, with the fields "
            "isin, time (microseconds since 1970 UTC), seq, price, size; further "
            "ones are passed through. Several are played at the same time."
        ),
    ],
    speed: Annotated[float, typer.Option(help="Times the tape's own pace.")] = 1.0,
    rate: Annotated[
        float | None,
        typer.Option(help="Trades per second, whatever the tape's own pace is."),
    ] = None,
    profile: ProfileText = None,
    stamp: Annotated[
        Stamp, typer.Option(help="Move exchange times to now, or keep them.")
    ] = Stamp.now,
    loop: Annotated[int, typer.Option(help="How often, 0 for ever.")] = 1,
    max_gap: Annotated[
        float | None,
        typer.Option(help="Shorten longer silences of the tape to so many seconds."),
    ] = None,
    disorder: Annotated[
        float, typer.Option(help="Share of trades that are held up, 0 to 1.")
    ] = 0.0,
    repeats: Annotated[
        float, typer.Option(help="Share of trades that come again, 0 to 1.")
    ] = 0.0,
    malformed: Annotated[
        float, typer.Option(help="Share of trades after which a broken copy comes.")
    ] = 0.0,
    report: ReportTo = None,
    log: LogOption = None,
    kafka_servers: KafkaServers = None,
    kafka_topic: KafkaTopicName = None,
    redis_url: RedisUrl = None,
) -> None:
    """Feed the trade log with recorded tapes."""
    from ingest.feed import FeedError, run_replay
    from ingest.profile import Profile
    from ingest.replay import ReplayOptions
    from ingest.spoil import Spoil
    from ingest.tape import TapeError

    settings = _settings(log, kafka_servers, kafka_topic, redis_url)
    try:
        options = ReplayOptions(
            tapes[0],
            speed,
            rate,
            stamp.value,
            loop,
            max_gap,
            None if profile is None else Profile.parse(profile),
            tuple(tapes[1:]),
        )
        spoil = Spoil(disorder, repeats, malformed)
        run_replay(settings, options, spoil=spoil, report_to=report)
    except TapeError as error:
        fail(str(error))
    except ValueError as error:
        fail(str(error), code=2)
    except FeedError as error:
        fail(str(error))


def _settings(
    log: LogOption,
    kafka_servers: KafkaServers,
    kafka_topic: KafkaTopicName,
    redis_url: RedisUrl,
) -> "IngestSettings":
    """Return where a feed appends to, its log lines told how to look."""
    from ingest.settings import IngestSettings

    settings = read_settings(
        IngestSettings,
        log=log,
        kafka_servers=kafka_servers,
        kafka_topic=kafka_topic,
        redis_url=redis_url,
    )
    configure_logs(settings)
    return settings
