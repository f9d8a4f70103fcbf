"""Pieces of a stream, cut into records: lines, and values of CSV over several lines.

Pure. A record that cannot be one is an ``InvalidTrade`` in its place.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from ingest.trade import MAX_PAYLOAD_BYTES, InvalidTrade

# A line may be longer than its trade: blanks in JSON, quotes in CSV.
MAX_LINE_BYTES = 4 * MAX_PAYLOAD_BYTES
"""Longest line that is read, and longest record of several lines, in bytes."""

MAX_LIST_BYTES = 8 * 2**20
"""Longest line of JSON that holds many trades, in bytes."""

Record = tuple[int, bytes | InvalidTrade]
"""The number of its first line, from 1, and a record, or why it is none."""

# What stands before a header and is none: a comment, Excel's word on its delimiter.
_PREAMBLE = re.compile(rb'#.*|"?sep=."?', re.IGNORECASE)


class BadHeader(ValueError):
    """The first line of a source that cannot be read; says the rule."""


def numbered_lines(
    pieces: Iterator[bytes], most_bytes: int = MAX_LINE_BYTES
) -> Iterator[list[Record]]:
    """Yield the lines that each piece of a stream completes, with their numbers.

    Of a piece that completes none, none. A line over ``most_bytes`` is refused, and
    never held whole. What is left at the end is the last line.
    """
    rest, number = b"", 0
    too_long: InvalidTrade | None = None
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        lines: list[Record] = []
        for line in whole:
            number += 1
            if too_long is None and len(line) <= most_bytes:
                lines.append((number, line))
            else:
                lines.append((number, too_long or _too_long(most_bytes, line)))
                too_long = None
        if len(rest) > most_bytes:
            too_long = too_long or _too_long(most_bytes, rest)
            rest = b""
        yield lines
    if too_long or rest:
        yield [(number + 1, too_long or rest)]


def written_lines(lines: list[Record]) -> list[Record]:
    """Leave out blank lines, and the CR that may end others."""
    return [
        (number, line.rstrip(b"\r") if type(line) is bytes else line)
        for number, line in lines
        if type(line) is not bytes or (line and not line.isspace())
    ]


def cut_records(
    pieces: Iterator[bytes], delimiter: str, *, no_quotes: bool = False
) -> Iterator[list[Record]]:
    """Yield the records that each piece of a stream completes.

    Before the first one, comments (``#``) and a line such as ``sep=;`` are left out;
    it tells whether the source is JSON. In CSV a value in quotes may have line breaks.
    A quote that is not closed within ``MAX_LINE_BYTES``, or by the end, refuses the
    lines from it on: they may be text that looks like trades. Lines without quotes
    wait for nothing. With ``no_quotes`` a quote is a character like others.
    """
    quoted: _Quoted | None = None
    has_begun = False
    for lines in numbered_lines(pieces, MAX_LIST_BYTES):
        if not has_begun:
            lines = _without_preamble(lines)
            has_begun = bool(lines)
            if has_begun and not (no_quotes or _is_json(first := lines[0][1])):
                spaced = isinstance(first, bytes) and is_spaced(first, delimiter)
                quoted = _Quoted(delimiter, spaced)
        yield written_lines(lines) if quoted is None else quoted.join(lines)
    if quoted is not None and quoted.parts:
        yield [quoted.give_up("the end")]


@dataclass(slots=True)
class _Quoted:
    """Joins the lines of a value in quotes."""

    delimiter: str
    is_spaced: bool
    first: int = 0
    parts: list[bytes] = field(default_factory=list)
    size: int = 0

    def join(self, lines: list[Record]) -> list[Record]:
        """Return the records that these lines complete."""
        records: list[Record] = []
        for number, line in lines:
            if not self.parts and type(line) is bytes and b'"' not in line:
                # Nearly every line.
                if line and not line.isspace():
                    records.append((number, line.rstrip(b"\r")))
            else:
                records += self._add(number, line)
        return records

    def give_up(self, where: str) -> Record:
        """Refuse what is open."""
        rule = f"has a quote that is not closed by {where}; --form no-quotes takes it"
        refused = InvalidTrade("bad_field", "trade", self.parts[0], rule)
        self.parts, self.size = [], 0
        return self.first, refused

    def _add(self, number: int, line: bytes | InvalidTrade) -> Iterator[Record]:
        if isinstance(line, bytes) and len(line) > MAX_LINE_BYTES:
            line = _too_long(MAX_LINE_BYTES, line)
        if isinstance(line, InvalidTrade):
            if self.parts:
                yield self.give_up(f"line {number}, which is too long")
            yield number, line
            return
        if self.parts:
            was_closed = self._closes(line)
            if was_closed is None:
                # Another record's quotes: this one was never closed.
                yield self.give_up(f"line {number}, which has others")
                yield from self._add(number, line)
                return
            self.parts.append(line)
            self.size += len(line) + 1
            if was_closed:
                record = b"\n".join(self.parts).rstrip(b"\r")
                self.parts, self.size = [], 0
                yield self.first, record
            elif self.size > MAX_LINE_BYTES:
                yield self.give_up(f"line {number}, within {MAX_LINE_BYTES} bytes")
            return
        if ends_open(line, self.delimiter, is_spaced=self.is_spaced):
            self.first, self.parts, self.size = number, [line], len(line)
        else:
            yield number, line.rstrip(b"\r")

    def _closes(self, line: bytes) -> bool | None:
        """Tell whether a line closes the quote; None if it cannot be in quotes."""
        if b'"' not in line:
            return False
        is_open = ends_open(b'"' + line, self.delimiter, is_spaced=self.is_spaced)
        return None if is_open is None else not is_open


def ends_open(line: bytes, delimiter: str, *, is_spaced: bool) -> bool | None:
    """Tell whether a line of CSV ends within quotes; None if its quotes are wrong."""
    if _closed_form(delimiter).fullmatch(line):
        return False
    text = line.decode("utf-8", "replace").rstrip("\r")
    closing = iter((text + "\n", '"'))
    rows = csv.reader(
        closing, delimiter=delimiter, skipinitialspace=is_spaced, strict=True
    )
    try:
        next(rows)
    except csv.Error:
        return None
    # It asked for another line.
    return rows.line_num > 1


@cache
def _closed_form(delimiter: str) -> re.Pattern[bytes]:
    """Return what nearly every line with quotes looks like, known at a glance."""
    mark = re.escape(delimiter)
    value = rf'(?:"(?:[^"]++|"")*+"|[^"{mark}]*+)'
    return re.compile(f"{value}(?:{mark}{value})*+\r?".encode())


def is_spaced(header: bytes, delimiter: str) -> bool:
    """Tell whether a space follows each delimiter of a header."""
    mark = delimiter.encode()
    count = header.count(mark)
    return not delimiter.isspace() and 0 < count == header.count(mark + b" ")


def split_row(
    line: bytes, delimiter: str = ",", is_spaced: bool = False, no_quotes: bool = False
) -> list[str]:
    """Return the values of a record of CSV. Raises InvalidTrade."""
    if len(line) > MAX_LINE_BYTES:
        raise _too_long(MAX_LINE_BYTES, line)
    try:
        text = line.decode()
        if '"' in text and not no_quotes:
            rows = csv.reader(
                [text], delimiter=delimiter, skipinitialspace=is_spaced, strict=True
            )
            return next(rows)
    except UnicodeDecodeError as error:
        rule = f"is no text at byte {error.start + 1}: see encoding of --form"
        raise InvalidTrade("bad_field", "trade", line, rule) from None
    except csv.Error as error:
        raise InvalidTrade("bad_field", "trade", line, str(error)) from None
    values = text.split(delimiter)
    return [value.lstrip(" ") for value in values] if is_spaced else values


def _without_preamble(lines: list[Record]) -> list[Record]:
    for place, (_, line) in enumerate(lines):
        if isinstance(line, InvalidTrade) or not (
            not line or line.isspace() or _PREAMBLE.fullmatch(line.rstrip(b"\r"))
        ):
            return lines[place:]
    return []


def _is_json(first: bytes | InvalidTrade) -> bool:
    return type(first) is bytes and first.lstrip()[:1] in (b"{", b"[")


def _too_long(most_bytes: int, line: bytes) -> InvalidTrade:
    rule = f"over {most_bytes} bytes in a line"
    if b"\r" in line[:most_bytes]:
        rule += ": has old line ends, CR alone; tr '\\r' '\\n' makes new ones"
    elif _is_json(line):
        rule += ": jq -c '.[]' makes a line of each trade"
    return InvalidTrade("too_large", "trade", line[:80], rule)
