"""The commands that feed the trade log: a made-up market, tapes, a user's own pipe."""

from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from archive.settings import ArchiveSettings
from cli.commands.entry import fail, failing_on, read_settings, stop_on_signal
from cli.commands.form_option import FORM
from cli.commands.setting_options import options_of
from cli.logs import configure_logs
from ingest.settings import IngestSettings
from ingest.sources.exchange_options import ExchangeOptions
from ingest.sources.faults import Faults
from ingest.sources.replay import ReplayOptions
from ingest.sources.simulator import Simulator
from ingest.sources.tape import PipeOptions
from ingest.sources.trade_lines import LineOptions

APPENDS = options_of(IngestSettings, "redis_url")
"""Where a feed appends to: a server of Redis. A topic of Kafka is in variables."""

# How tapes are stamped is a matter of the replay; `run` has a list of its own.
TAPE_FORM = options_of(LineOptions, "map", "updates", "venue", form=FORM)
"""How a tape is written, as for ``ingest``."""

TAPE_LINES = options_of(
    LineOptions, "map", "updates", "venue", form=FORM, instruments_file="--instruments"
)
"""The same, with the list that tells the ISINs of its symbols."""

_OF_A_PIPE = [name for name in PipeOptions.model_fields if name not in FORM]
_INPUT = Path("-")

ReportTo = Annotated[
    Path | None,
    typer.Option(
        help="Keep a receipt in this file, as JSON: what was acknowledged, "
        "by partition."
    ),
]


RecordTo = Annotated[
    Path | None,
    typer.Option(
        help="Keep what is appended as a tape, to be replayed: a file .jsonl.gz, "
        ".jsonl, .csv.gz or .csv."
    ),
]


@APPENDS
@options_of(Simulator, *Simulator.model_fields, session_s="--session")
def simulate(
    *,
    market: Simulator,
    report: ReportTo = None,
    record: RecordTo = None,
    settings: IngestSettings,
) -> None:
    """Feed the trade log with a made-up Korean market."""
    from ingest.feed.run import FeedError, run_simulator

    configure_logs(settings)
    with failing_on(FeedError):
        run_simulator(settings, market, report_to=report, record_to=record)


@APPENDS
@options_of(ReplayOptions, *ReplayOptions.model_fields, max_gap_s="--max-gap")
@TAPE_LINES
@options_of(Faults, "disorder", "repeats", "malformed")
def replay(
    *,
    tapes: Annotated[
        list[Path] | None,
        typer.Argument(
            help="CSV, JSON lines or Parquet, in gzip, zstd or zip or not, with the "
            "fields isin, time (microseconds since 1970 UTC, or ISO 8601 with an "
            "offset or Z), price, size, and seq if there is one; further fields are "
            "passed through. Several tapes play at the same time; - is standard input."
        ),
    ] = None,
    options: ReplayOptions,
    lines: LineOptions,
    faults: Faults,
    archive: Annotated[
        str | None,
        typer.Option(
            help="Play this day of the archive, such as 2026-03-20, in place of tapes: "
            "its windows as they were published, for gateways and without a throttle. "
            "Takes --speed and --max-gap."
        ),
    ] = None,
    into: Annotated[
        str,
        typer.Option(help="The namespace that a day of the archive is played into."),
    ] = "replay",
    report: ReportTo = None,
    record: RecordTo = None,
    settings: IngestSettings,
) -> None:
    """Feed the trade log with recorded tapes; or play a day of the archive."""
    if archive is not None:
        if tapes:
            fail("tapes and archive: only one of them can be played", code=2)
        _play(archive, into, options, settings)
        return
    if not tapes:
        fail("tapes: name one, or a day of the archive with --archive", code=2)
    from ingest.feed.run import FeedError, run_replay
    from ingest.instrument_table.instrument_entry import BadInstruments
    from ingest.sources.tape import TapeError

    configure_logs(settings)
    if (streams := tapes.count(_INPUT)) and (streams > 1 or options.loop != 1):
        fail("tape -: standard input can be played once", code=2)
    with failing_on(FeedError, TapeError), failing_on(BadInstruments, code=2):
        run_replay(
            *(settings, tapes, options),
            faults=faults,
            report_to=report,
            record_to=record,
            lines=lines,
        )


def _play(
    day: str, namespace: str, options: ReplayOptions, settings: IngestSettings
) -> None:
    """Publish a day of the archive into a namespace of its own, and end."""
    import redis

    from archive.contract.segment import span_of
    from archive.parquet.archive_reader import ArchiveReader
    from archive.playback import PlaybackRefused, play
    from ingest.process.redis_fault import explain
    from ingest.sources.tape_order import span_words
    from throttle.lease.retry import create_client

    try:
        bounds_ms = span_of(date.fromisoformat(day))
    except ValueError:
        fail(f"archive {day}: must be a day such as 2026-03-20", code=2)
    if namespace == settings.namespace:
        fail(f"into {namespace}: is the namespace of the live stream", code=2)
    root = read_settings(ArchiveSettings).archive_dir

    def say() -> None:
        typer.echo(
            f"playing {day} into the namespace {namespace}: "
            f"TICKTHROTTLE_NAMESPACE={namespace} tickthrottle gateway follows it"
        )

    def say_wait(wait_s: float) -> None:
        typer.echo(
            f"a gap: the next window is due in {span_words(int(wait_s * 1e6))}; "
            "--max-gap 10 makes it 10 seconds of the day"
        )

    try:
        with create_client(settings.redis_url) as client:
            reader, pace = ArchiveReader(root), (options.speed, options.max_gap_s)
            place = reader, client, namespace, bounds_ms
            played = play(*place, *pace, stop_on_signal(), say, say_wait)
    except redis.RedisError as error:
        fail(explain(settings.redis_url, error))
    except (PlaybackRefused, OSError, ValueError) as error:
        fail(f"archive_dir {root}: {error}")
    typer.echo(f"played {played.windows:,} windows, {played.rows:,} rows")


@APPENDS
@options_of(PipeOptions, *_OF_A_PIPE, form=FORM, instruments_file="--instruments")
def ingest(
    *,
    source: Annotated[
        Path,
        typer.Argument(
            help="- is standard input; or a named pipe, or a file. CSV, JSON lines or "
            "Parquet, in gzip, zstd or zip or not, with the fields isin, time, price, "
            "size, and seq if there is one; further fields are passed through."
        ),
    ],
    options: PipeOptions,
    report: ReportTo = None,
    record: RecordTo = None,
    settings: IngestSettings,
) -> None:
    """Feed the trade log with your own trades, as they come.

    A line that is no trade is refused with its number, and loses nothing else.
    """
    from ingest.feed.run import FeedError, run_pipe
    from ingest.instrument_table.instrument_entry import BadInstruments
    from ingest.sources.tape import PipeError

    configure_logs(settings)
    with failing_on(FeedError, PipeError), failing_on(BadInstruments, code=2):
        run_pipe(settings, source, options, report_to=report, record_to=record)


@APPENDS
@options_of(
    ExchangeOptions,
    *ExchangeOptions.model_fields,
    instruments_file="--instruments",
    silence_s="--silence",
)
def feed(
    *,
    name: Annotated[
        str,
        typer.Argument(
            help="upbit, binance, alpaca, kis, or an adapter of yours as module:Class."
        ),
    ],
    options: ExchangeOptions,
    write_instruments: Annotated[
        Path | None,
        typer.Option(
            help="Write the instrument list for a gateway to this file, and end."
        ),
    ] = None,
    record: RecordTo = None,
    report: ReportTo = None,
    settings: IngestSettings,
) -> None:
    """Feed the trade log with the trades of an exchange, as they happen.

    Connects again when a connection ends. Keys are read from variables or files, see
    docs/adapters.md.
    """
    from cli.local.feed_keys import read_keys
    from ingest.adapters.adapter import AdapterFault, BadChoice
    from ingest.adapters.listing import encode_listing
    from ingest.adapters.raw_tape import RawTapeError
    from ingest.adapters.run_exchange import (
        at_addresses,
        find_instruments,
        run_exchange,
    )
    from ingest.exchanges.known import find_adapter
    from ingest.feed.run import FeedError

    configure_logs(settings)
    faults = failing_on(AdapterFault, FeedError, RawTapeError)
    with faults, failing_on(BadChoice, code=2):
        kind = at_addresses(find_adapter(name), options)
        needs_keys = write_instruments is None and options.replay_raw is None
        secrets = read_keys(kind) if needs_keys else {}
        instruments = find_instruments(kind, options)
        if write_instruments is None:
            run_exchange(
                *(settings, kind, instruments, options, secrets),
                report_to=report,
                record_to=record,
            )
            return
        text = encode_listing(kind, instruments)
        try:
            write_instruments.write_text(text, encoding="utf-8")
        except OSError as error:
            why = error.strerror or error
            fail(f"write_instruments {write_instruments}: {why}")
