"""Read a recorded tape: a file of trades, in any form that a pipe may have."""

import time
from collections.abc import Iterator
from pathlib import Path

from ingest.instrument_table.instrument_list import read_symbols
from ingest.instrument_table.known_instruments import Instruments
from ingest.sources.event import Refusals
from ingest.sources.pipe import PipeError, read_source
from ingest.sources.trade_lines import LineOptions, LineReader
from ingest.trade import Trade


class TapeError(ValueError):
    """A tape that cannot be read as a whole; names the file and the rule."""

    def __init__(self, path: Path, rule: str) -> None:
        super().__init__(f"tape {path}: {rule}")
        self.path = path


def read_tape(
    path: Path,
    refusals: Refusals,
    options: LineOptions | None = None,
    instruments: Instruments | None = None,
) -> Iterator[Trade]:
    """Yield a tape's trades in order, holding a piece of 256 KiB at a time.

    ``options`` says how it is written, as for a pipe; without them names are those of a
    trade and times microseconds since 1970 UTC, or as in ISO 8601 with an offset or Z.
    Without ``seq`` trades are numbered from 1. A record that breaks a rule is added to
    ``refusals`` and the rest goes on. Raises TapeError, at the first trade asked for or
    later, for a file as ``read_source`` does, and if it held no valid trade.
    """
    reader = LineReader(
        *(options or LineOptions(), 1, lambda: time.time_ns() // 1_000, instruments),
        unknown=refusals.unknown_conditions,
        is_whole=path.is_file(),
    )
    has_trades = False
    try:
        read, finish = reader.read_trade, reader.trade_of
        for trades in read_source(path, reader, refusals, read, finish):
            has_trades = has_trades or bool(trades)
            yield from trades
    except PipeError as error:
        raise TapeError(path, error.rule) from error
    if not has_trades:
        left_out = [f"left out by {text}" for text in +refusals.left_out]
        example = "".join(f"; {text}" for text in (*refusals.examples, *left_out)[:1])
        raise TapeError(path, f"holds no valid trade{example}")


def check_tape(path: Path, options: LineOptions, instruments_file: Path | None) -> None:
    """Read a tape up to its first trade. Raises TapeError and BadInstruments."""
    instruments = read_symbols(instruments_file, options.venue)
    next(read_tape(path, Refusals(), options, instruments), None)
