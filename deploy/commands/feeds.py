"""The commands that feed the trade log: a made-up market, tapes, a user's own pipe."""

from pathlib import Path
from typing import Annotated

import typer

from deploy.commands.entry import fail
from deploy.commands.setting_options import options_of
from deploy.logs import configure_logs
from ingest.settings import IngestSettings
from ingest.sources.faults import Faults
from ingest.sources.pipe import PipeOptions
from ingest.sources.replay import ReplayOptions
from ingest.sources.simulator import Simulator

APPENDS = options_of(
    IngestSettings, "trade_log", "kafka_servers", "kafka_topic", "redis_url"
)
"""Where a feed appends to."""

_INPUT = Path("-")

ReportTo = Annotated[
    Path | None,
    typer.Option(
        help="Keep a receipt in this file, as JSON: what was acknowledged, "
        "by partition."
    ),
]


@APPENDS
@options_of(Simulator, *Simulator.model_fields, session_s="--session")
def simulate(
    *, market: Simulator, report: ReportTo = None, settings: IngestSettings
) -> None:
    """Feed the trade log with a made-up Korean market."""
    from ingest.feed.run import FeedError, run_simulator

    configure_logs(settings)
    try:
        run_simulator(settings, market, report_to=report)
    except FeedError as error:
        fail(str(error))


@APPENDS
@options_of(ReplayOptions, *ReplayOptions.model_fields, max_gap_s="--max-gap")
@options_of(Faults, "disorder", "repeats", "malformed")
def replay(
    *,
    tapes: Annotated[
        list[Path],
        typer.Argument(
            help="CSV with a header or JSON lines, gzip or not, with the fields "
            "isin, time (microseconds since 1970 UTC, or ISO 8601 with an offset or "
            "Z), seq, price, size; further fields are passed through. Several tapes "
            "play at the same time; - is standard input."
        ),
    ],
    options: ReplayOptions,
    faults: Faults,
    report: ReportTo = None,
    settings: IngestSettings,
) -> None:
    """Feed the trade log with recorded tapes."""
    from ingest.feed.run import FeedError, run_replay
    from ingest.sources.tape import TapeError

    configure_logs(settings)
    if (streams := tapes.count(_INPUT)) and (streams > 1 or options.loop != 1):
        fail("tape -: standard input can be played once", code=2)
    tapes = [Path("/dev/stdin") if tape == _INPUT else tape for tape in tapes]
    try:
        run_replay(settings, tapes, options, faults=faults, report_to=report)
    except (FeedError, TapeError) as error:
        fail(str(error))


@APPENDS
@options_of(PipeOptions, *PipeOptions.model_fields, issues_file="--issues")
def ingest(
    *,
    source: Annotated[
        Path,
        typer.Argument(
            help="- is standard input; or a named pipe, or a file. CSV with a header, "
            "or JSON lines, with the fields isin, time, price, size, and seq if there "
            "is one; further fields are passed through."
        ),
    ],
    options: PipeOptions,
    report: ReportTo = None,
    settings: IngestSettings,
) -> None:
    """Feed the trade log with your own trades, as they come.

    A line that is no trade is refused with its number, and loses nothing else.
    """
    from ingest.feed.run import FeedError, run_pipe
    from ingest.issue_list import BadIssues
    from ingest.sources.pipe import PipeError

    configure_logs(settings)
    try:
        run_pipe(settings, source, options, report_to=report)
    except (FeedError, PipeError) as error:
        fail(str(error))
    except BadIssues as error:
        fail(str(error), code=2)
