"""The command that makes windows and bars of a file, at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.commands.arguments import format_moment
from cli.commands.entry import fail, failing_on
from cli.commands.feeds import TAPE_LINES
from ingest.sources.trade_lines import LineOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ingest.instrument_table.known_instruments import Instruments
    from throttle.backtest.file_windows import TimedEntries
    from throttle.contract.bars import Bar
    from throttle.contract.snapshot import WindowSnapshot

_WINDOWS_AT_ONCE = 500
_PARQUET = ".parquet"


@TAPE_LINES
def backtest(
    *,
    file: Annotated[
        Path, typer.Argument(help="A file of trades as for replay; - is stdin.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Parquet file for the rows of windows; bars go into one beside it, "
            "day.parquet and day-bars.parquet."
        ),
    ],
    window_ms: Annotated[
        int, typer.Option(min=1, max=60_000, help="Length of a window.")
    ] = 2_000,
    bars_ms: Annotated[
        int, typer.Option(min=1_000, max=86_400_000, help="Length of a bar.")
    ] = 60_000,
    lines: LineOptions,
) -> None:
    """Make windows and bars of a file by its own times, at once.

    By the rules of the throttle and of the analytics job, without a server and without
    Spark. The columns are those of the archive.
    """
    from throttle.backtest.file_bars import bars_of_log
    from throttle.backtest.file_windows import windows_of

    if out.suffix != _PARQUET:
        fail(f"--out {out}: must end in {_PARQUET}", code=2)
    bars_out = out.with_name(f"{out.stem}-bars{_PARQUET}")
    log, instruments = _read(file, lines)
    try:
        windows, rows = _write_rows(
            out, windows_of(log, window_ms), instruments, window_ms
        )
        bars, unfit = bars_of_log(log, bars_ms)
        _write_bars(bars_out, bars)
    except OSError as error:
        # Arrow's own words are several lines.
        reason = error.strerror or str(error).partition(". Detail")[0]
        fail(f"{out}: cannot be written: {reason}")
    first, last = (format_moment(log.entries[n].append_ms) for n in (0, -1))
    typer.echo(f"{len(log.entries):,} trades from {first} to {last}")
    typer.echo(f"{rows:,} rows of {windows:,} windows of {window_ms:,} ms in {out}")
    typer.echo(f"{len(bars):,} bars of {bars_ms:,} ms in {bars_out}")
    if unfit:
        typer.echo(f"{unfit:,} trades are in no bar: a number of theirs does not fit")


def _read(file: Path, lines: LineOptions) -> tuple[TimedEntries, Instruments | None]:
    from ingest.instrument_table.instrument_entry import BadInstruments
    from ingest.instrument_table.instrument_list import read_symbols
    from ingest.sources.event import Refusals
    from ingest.sources.tape import TapeError, read_tape
    from ingest.sources.tape_order import SORTED_BYTES, TooManyTrades, sort_trades
    from throttle.backtest.file_windows import TimedEntries

    refusals = Refusals()
    with failing_on(BadInstruments, code=2), failing_on(TapeError):
        try:
            instruments = read_symbols(lines.instruments_file, lines.venue)
            trades = sort_trades(read_tape(file, refusals, lines, instruments))
        except TooManyTrades:
            fail(
                f"{file}: takes more than {SORTED_BYTES // 2**20} MiB to be sorted; "
                "make several of it, by instrument or by day"
            )
    for example in refusals.examples:
        typer.echo(f"refused: {example}", err=True)
    for reason, count in refusals.counts.most_common():
        typer.echo(f"refused: {count:,} {reason}", err=True)
    return TimedEntries(trades), instruments


def _write_rows(
    out: Path,
    windows: Iterable[WindowSnapshot],
    instruments: Instruments | None,
    window_ms: int,
) -> tuple[int, int]:
    """Write the rows of windows; return how many windows and rows that were."""
    from itertools import islice

    import pyarrow.parquet as pq

    from archive.contract.logged import LoggedWindow
    from archive.parquet.tables import ROWS, build_tables
    from ingest.instrument_table.known_instruments import Instruments

    table = instruments or Instruments()
    left, count, rows = iter(windows), 0, 0
    with pq.ParquetWriter(out, ROWS) as writer:
        while some := list(islice(left, _WINDOWS_AT_ONCE)):
            logged = [LoggedWindow.decode(window.encode()) for window in some]
            built = build_tables(logged, [0] * len(some), lambda _: table, window_ms)
            writer.write_table(built.rows)
            count, rows = count + len(some), rows + len(built.rows)
    return count, rows


def _write_bars(out: Path, bars: Sequence[Bar]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from archive.parquet.bar_table import BARS

    columns = {
        "isin": [bar.isin for bar in bars],
        "start": [bar.start_ms for bar in bars],
        "width_ms": [bar.end_ms - bar.start_ms for bar in bars],
        "epoch": ["file"] * len(bars),
        "number": [0] * len(bars),
    }
    names = ("open", "high", "low", "close", "volume", "value", "trades", "revision")
    columns |= {name: [getattr(bar, name) for bar in bars] for name in names}
    arrays = [pa.array(columns[field.name], field.type) for field in BARS]
    pq.write_table(pa.table(arrays, schema=BARS), out)
