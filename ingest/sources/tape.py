"""Read a recorded tape: CSV or JSON lines, plain or gzip, one trade a line."""

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from ingest.sources.event import Refusals
from ingest.sources.trade_lines import (
    BOM,
    GZIP_MAGIC,
    MAX_LINE_BYTES,
    BadHeader,
    check_columns,
    check_size,
    split_row,
)
from ingest.trade import MAX_PAYLOAD_BYTES, REQUIRED, InvalidTrade, Trade
from tickthrottle_client.trade_v1 import as_microseconds

_JSON_TIME = re.compile(rb'("time"\s*:\s*)"([0-9TZtz:.,+ -]{1,40})"')

_Stream = BufferedReader | gzip.GzipFile
_Parser = Callable[[bytes], Trade]


class TapeError(ValueError):
    """A tape that cannot be read as a whole; names the file and the rule."""

    def __init__(self, path: Path, rule: str) -> None:
        super().__init__(f"tape {path}: {rule}")
        self.path = path


def read_tape(path: Path, refusals: Refusals) -> Iterator[Trade]:
    """Yield a tape's trades in order, holding one line at a time.

    The content tells the format. CSV has a header: ``isin``, ``time``, ``seq``,
    ``price`` and ``size`` in any order; further columns pass through as text. ``time``
    is in microseconds since 1970 UTC, or as in ISO 8601 with an offset or Z. A line
    that breaks a rule of the trade is added to ``refusals`` and the rest goes on.
    Raises TapeError, at the first trade asked for or later, when the file is
    missing, unreadable, damaged or without a required column, and at the end when it
    held no valid trade.
    """
    trades = number = 0
    parse: _Parser | None = None
    try:
        with _open(path) as stream:
            for number, line in _lines(stream):
                if parse is None:
                    parse, is_header = _parser(path, line)
                    if is_header:
                        continue
                try:
                    trade = parse(line)
                except InvalidTrade as error:
                    refusals.add(number, error)
                    continue
                trades += 1
                yield trade
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TapeError(path, f"gzip damaged after line {number}: {error}") from error
    except OSError as error:
        raise TapeError(path, f"cannot be read: {error.strerror or error}") from error
    if not trades:
        example = "".join(f"; {text}" for text in refusals.examples[:1])
        raise TapeError(path, f"holds no valid trade{example}")


@contextmanager
def _open(path: Path) -> Iterator[_Stream]:
    with path.open("rb") as plain:
        if plain.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC):
            with gzip.GzipFile(fileobj=plain) as unzipped:
                yield unzipped
        else:
            yield plain


def _lines(stream: _Stream) -> Iterator[tuple[int, bytes]]:
    """Yield each line that is not blank with its number, counted from 1."""
    number = 0
    while line := stream.readline(MAX_LINE_BYTES):
        number += 1
        rest = line
        while len(rest) == MAX_LINE_BYTES and not rest.endswith(b"\n"):
            rest = stream.readline(MAX_LINE_BYTES)
        if number == 1:
            line = line.removeprefix(BOM)
        if not line.isspace():
            yield number, line.rstrip(b"\r\n")


def _parser(path: Path, first: bytes) -> tuple[_Parser, bool]:
    """Return how to read a line, and whether the first line is only a header."""
    if first.lstrip().startswith(b"["):
        raise TapeError(path, "is a JSON array; a tape has one object a line")
    if first.lstrip().startswith(b"{"):
        return lambda line: _fitting(_from_json(line), line), False
    columns = _columns(path, first)

    def parse(line: bytes) -> Trade:
        values = split_row(line)
        if len(values) != len(columns):
            rule = f"has {len(values)} values, the header {len(columns)}"
            raise InvalidTrade("bad_field", "trade", line, rule)
        fields = dict(zip(columns, values, strict=True))
        fields["time"] = as_microseconds(fields["time"])
        return _fitting(Trade.from_fields(fields), first + line)

    return parse, True


def _from_json(line: bytes) -> Trade:
    try:
        return Trade.from_wire(line)
    except InvalidTrade as error:
        if error.field != "time":
            raise
        # In the line, not in what it stands for: no other digit may change.
        return Trade.from_wire(_JSON_TIME.sub(_with_number, line, count=1))


def _with_number(found: re.Match[bytes]) -> bytes:
    head, time = found.groups()
    return head + b'"' + as_microseconds(time.decode()).encode() + b'"'


def _columns(path: Path, header: bytes) -> list[str]:
    try:
        columns = [column.strip() for column in split_row(header)]
        check_columns(columns, REQUIRED)
    except InvalidTrade:
        raise TapeError(path, "is neither CSV nor JSON lines, plain or gzip") from None
    except BadHeader as error:
        raise TapeError(path, str(error)) from None
    return columns


def _fitting(trade: Trade, source: bytes) -> Trade:
    """Return the trade if its encoding, too, is within the largest payload."""
    # Escapes, quotes and repeated names make text at most eight times as long.
    if len(source) * 8 > MAX_PAYLOAD_BYTES:
        check_size(len(trade.to_wire()))
    return trade
