"""Files and pipes as sources: records read as they come, tapes trade by trade."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import structlog

from ingest.files.file_kind import DamagedFile, Unreadable
from ingest.files.open_pieces import STANDARD_INPUT, read_pieces
from ingest.files.records import BadHeader, cut_records
from ingest.instrument_table.instrument_list import read_symbols
from ingest.instrument_table.known_instruments import Instruments
from ingest.sources.event import Refusals
from ingest.sources.trade_lines import LineOptions, LineReader, begin, read_records
from ingest.trade import Trade

T = TypeVar("T")

log = structlog.get_logger()


class PipeOptions(LineOptions):
    """How a pipe is read."""

    follow: bool = False
    """Wait for the next writer of a named pipe when one has closed it."""


class PipeError(ValueError):
    """A source that cannot be read; names it and the rule."""

    def __init__(self, path: Path, rule: str) -> None:
        name = "standard input" if path == STANDARD_INPUT else str(path)
        super().__init__(f"{name}: {rule}")
        self.rule = rule


def read_pipe(
    path: Path, reader: LineReader, refusals: Refusals, *, follow: bool = False
) -> Iterator[list[tuple[str, bytes]]]:
    """Yield ISINs with their trades as they come, until the source ends.

    As ``read_source``. Raises PipeError, too, if none of its records was a trade.
    """
    accepted = False
    source = read_source(
        *(path, reader, refusals, reader.read, reader.read_fields), follow=follow
    )
    for entries in source:
        accepted = accepted or bool(entries)
        yield entries
    if refusals.total and not accepted:
        raise PipeError(path, f"held no valid trade; {refusals.examples[0]}")


def read_source(
    path: Path,
    reader: LineReader,
    refusals: Refusals,
    read: Callable[[bytes], T],
    finish: Callable[[dict[str, Any]], T],
    *,
    follow: bool = False,
) -> Iterator[list[T]]:
    """Yield what ``read`` makes of the records of a source, and ``finish`` of the
    trades of those that are lists, until it ends.

    What one read of the source (``read_pieces``) brought comes together: while nothing
    comes from a plain pipe, an empty list does, several times a second. A record that
    is no trade is counted in ``refusals``, with the number of its line, and loses
    nothing else. Raises PipeError for what cannot be read, breaks off, or has a header
    without what a trade needs.
    """
    number, has_begun, has_told = 0, False, False
    form = reader.form
    pieces = read_pieces(path, form.encoding, follow=follow)
    try:
        for records in cut_records(pieces, form.delimiter, no_quotes=form.no_quotes):
            if records and not has_begun:
                has_begun = True
                records = begin(reader, records)
                _tell_names(reader)
            number = records[-1][0] if records else number
            results = read_records(records, reader, refusals, read, finish)
            if reader.numbers_by_arrival and not has_told:
                has_told = True
                log.info("the source has no seq: trades are numbered as they come")
            yield results
    except DamagedFile as error:
        rule, _, detail = str(error).partition(":")
        raise PipeError(path, f"{rule} after line {number}:{detail}") from error
    except (BadHeader, Unreadable) as error:
        raise PipeError(path, str(error)) from None
    except OSError as error:
        raise PipeError(path, f"cannot be read: {error.strerror or error}") from error


def _tell_names(reader: LineReader) -> None:
    names = {field: name for field, name in reader.taken_names.items() if field != name}
    if reader.form.map.items() != names.items():
        log.info("names taken", **names)


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
