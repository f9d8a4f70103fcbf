"""Lines of CSV or JSON, read as trades: names, times, numbers and symbols. Pure.

``LineReader`` reads what a user's own source writes, as ``LineOptions`` says. Tapes are
in the project's own form and use the parts.
"""

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from itertools import count
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import orjson
from pydantic import BeforeValidator, Field, InstanceOf, model_validator

from ingest.decimals import decimal_of, plain_time, whole_number
from ingest.issue_table.known_issues import Issues
from ingest.records import symbol_hint, time_text
from ingest.records.field_rules import FieldRules
from ingest.records.leave_out import value_at
from ingest.sources.field_options import FieldOptions
from ingest.symbol_key import SymbolKeys
from ingest.trade import (
    EARLIEST_TIME_US,
    ISIN_CHARS,
    ISIN_PATTERN,
    LATEST_TIME_US,
    MAX_PAYLOAD_BYTES,
    REQUIRED,
    InvalidTrade,
    JsonNumber,
    Trade,
)
from ingest.wire_form import read_wire
from tickthrottle_client.trade_v1 import as_microseconds

GZIP_MAGIC = b"\x1f\x8b"
"""What a gzip file begins with."""

BOM = b"\xef\xbb\xbf"
"""What some programs put before UTF-8."""

# A line may be longer than its trade: blanks in JSON, quotes in CSV.
MAX_LINE_BYTES = 4 * MAX_PAYLOAD_BYTES
"""Longest line that is read, in bytes."""

UNKNOWN_SYMBOL = "unknown_symbol"
"""Why a trade is refused whose symbol is not on the issue list."""

_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,18})?", re.ASCII)
_EXACT = Context(prec=64)
# What a decoder that knows doubles keeps as it was.
_EXACT_KINDS = frozenset({str, int, bool, type(None)})
_ISIN_FORM = re.compile(ISIN_PATTERN, re.ASCII)
_NAME = re.compile(r"[^=,\s][^=,]{0,99}")

# By how many places the point of a time moves for microseconds.
_PLACES = {"s": 6, "ms": 3, "us": 0, "ns": -3}


class BadHeader(ValueError):
    """The first line of a source that cannot be read; says the rule."""


def _parse_map(value: object) -> object:
    if not isinstance(value, str):
        return value
    names: dict[str, str] = {}
    for part in value.split(","):
        field, is_pair, name = part.partition("=")
        field, name = field.strip(), name.strip()
        if not is_pair or not _NAME.fullmatch(field) or not _NAME.fullmatch(name):
            raise ValueError(f"{part.strip()!r}: must be like price=px")
        if field in names:
            raise ValueError(f"{field!r}: is there twice")
        names[field] = name
    return names


def _parse_zone(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("must be a time zone such as Asia/Seoul") from None


class LineOptions(FieldOptions):
    """How lines are read."""

    map: Annotated[dict[str, str], BeforeValidator(_parse_map)] = Field(
        default_factory=dict
    )
    """What the trade's fields are called in the input, as
    isin=symbol,price=px,time=ts; in JSON with points, as price=data.px. Other names
    stay.
    """

    time_unit: Literal["s", "ms", "us", "ns"] = "us"
    """What a time that is a number counts, since 1970 UTC. Times as in ISO 8601 are
    read whatever this is.
    """

    time_zone: Annotated[InstanceOf[ZoneInfo], BeforeValidator(_parse_zone)] | None = (
        None
    )
    """Where the clocks stand by which ISO 8601 times without an offset are, such as
    Asia/Seoul. Without it, they are refused.
    """

    stamp: Literal["recorded", "now"] = "recorded"
    """``recorded``: a trade has its own time. ``now``: it has the time at which it was
    read, for sources that tell none.
    """

    @property
    def has_date(self) -> bool:
        """Whether a trade's day and its time of day are two fields."""
        return "date" in self.map or "date" in self.set

    def needed_columns(self, columns: Sequence[str]) -> list[str]:
        """Return the fields that have to be among the columns of a header."""
        needed = [name for name in REQUIRED if name != "seq" and name not in self.set]
        if self.stamp == "now":
            needed.remove("time")
        if self.venue is not None and "symbol" in columns and "isin" in needed:
            needed.remove("isin")
        return needed

    @model_validator(mode="after")
    def _check_set(self) -> "LineOptions":
        if twice := sorted(self.map.keys() & self.set.keys()):
            raise ValueError(f"set: {twice[0]!r} is in map, too")
        return self

    @model_validator(mode="after")
    def _check_map(self) -> "LineOptions":
        twice = [n for n in self.map.values() if self._count(n) > 1]
        if twice:
            raise ValueError(f"map: {twice[0]!r} can be one field only")
        return self

    def _count(self, name: str) -> int:
        return list(self.map.values()).count(name)


class LineReader:
    """Reads the lines of one source, in order. The first line tells the format.

    ``numbers_by_arrival`` is known then: a source without ``seq`` gets numbers, from
    the feed's start in microseconds on, so a feed that is started again goes on above
    them.
    """

    def __init__(
        self,
        options: LineOptions,
        start_us: int,
        now_us: Callable[[], int],
        issues: Issues | None = None,
        *,
        numbers_missing: bool = False,
    ) -> None:
        """``now_us`` is the time of day. ``issues`` tells the ISINs of symbols.

        With ``numbers_missing`` each trade without ``seq`` is numbered for itself:
        for sources whose lines have nothing to do with each other.
        """
        self.numbers_by_arrival = False
        self._numbers_missing = numbers_missing
        self._options = options
        self._now_us = now_us
        self._issues = issues
        self._arrivals = count(start_us)
        self._rules = FieldRules(
            constants=options.set,
            conditions=options.leave_out,
            scale=options.scale,
            unsigned=options.unsigned,
            names=options.map,
        )
        self._has_rules = not self._rules.are_none
        self._keys = None if options.venue is None else SymbolKeys(options.venue)
        self._has_date = options.has_date
        self._is_mapped = bool(options.map)
        # What the log wants is not decoded, unless something may change in it.
        self._may_change = bool(
            self._is_mapped
            or options.stamp == "now"
            or options.time_unit != "us"
            or self._has_date
            or self._has_rules
        )
        self._paths = {
            field: tuple(name.split(".")) for field, name in options.map.items()
        }
        self._columns: list[str] | None = None
        self._parse: Callable[[bytes], tuple[str, bytes]] | None = None

    def begin(self, first: bytes) -> bool:
        """Learn the format from the first line; tell whether it is only a header.

        Raises BadHeader.
        """
        start = first.lstrip()
        if start.startswith(b"["):
            raise BadHeader("is a JSON array; there has to be one object a line")
        if start.startswith(b"{"):
            self._parse = self._read_json
            self.numbers_by_arrival = not self._has_number(first)
            return False
        self._columns = self._read_header(first)
        self.numbers_by_arrival = "seq" not in self._columns
        self._parse = self._read_csv
        return True

    def read(self, line: bytes) -> tuple[str, bytes]:
        """Return a line's ISIN, and its trade as the log holds it.

        Raises InvalidTrade. JSON that is as the log wants it leaves as it came.
        """
        assert self._parse is not None, "begin comes first"
        return self._parse(line)

    def read_line(self, line: bytes) -> tuple[str, bytes]:
        """Return the same of a line of JSON, whatever the first one was."""
        return self._read_json(line)

    def read_fields(self, fields: Mapping[str, Any]) -> tuple[str, bytes]:
        """Return the same of fields that ``exact_json`` has decoded."""
        return self._encode(dict(fields))

    def _has_number(self, first: bytes) -> bool:
        try:
            fields = self._json_fields(first)
        except InvalidTrade:
            return True
        return "seq" in fields

    def _read_header(self, header: bytes) -> list[str]:
        try:
            columns = [column.strip() for column in split_row(header)]
        except InvalidTrade:
            raise BadHeader("is neither CSV with a header nor JSON lines") from None
        fields = {name: field for field, name in self._options.map.items()}
        for name in fields:
            if name not in columns:
                raise BadHeader(
                    f"its header has no column {name!r}, which map names: it has "
                    f"{', '.join(columns)[:200]}"
                )
        for name in self._rules.fields_looked_at:
            if name not in (*columns, *self._options.map, *self._options.set):
                raise BadHeader(
                    f"its header has no column {name!r}, which leave_out names: it has "
                    f"{', '.join(columns)[:200]}"
                )
        # A column called like a field that another column is mapped to is left out.
        taken = {name: "" for name in fields.values()}
        check_columns(columns, [])
        named = [fields.get(c) or taken.get(c, c) for c in columns]
        check_columns(
            [name for name in named if name], self._options.needed_columns(named)
        )
        return named

    def _read_csv(self, line: bytes) -> tuple[str, bytes]:
        columns = self._columns or []
        values = split_row(line)
        if len(values) != len(columns):
            rule = f"has {len(values)} values, the header {len(columns)}"
            raise InvalidTrade("bad_field", "trade", line, rule)
        found = dict(zip(columns, values, strict=True))
        found.pop("", None)
        return self._encode(found, has_parts=False)

    def _read_json(self, line: bytes) -> tuple[str, bytes]:
        if not (self._may_change or self.numbers_by_arrival):
            known = read_wire(line)
            if known is not None:
                return known[0], line
            try:
                return Trade.from_wire(line).isin, line
            except InvalidTrade as error:
                if error.field not in REQUIRED and error.reason != "bad_field":
                    raise
                # Another notation perhaps, which the log does not know.
        return self._encode(self._json_fields(line))

    def _json_fields(self, line: bytes) -> dict[str, Any]:
        try:
            found = orjson.loads(line)
            if not isinstance(found, dict) or not _is_exact(found, line):
                found = exact_json(line)
        except (ValueError, RecursionError) as error:
            raise InvalidTrade("not_json", "trade", line, str(error)[:80]) from None
        if not isinstance(found, dict):
            raise InvalidTrade("not_object", "trade", line, "is not a JSON object")
        if not self._is_mapped:
            return found
        values = {field: value_at(found, path) for field, path in self._paths.items()}
        for name in self._options.map.values():
            found.pop(name, None)
        for field, value in values.items():
            if value is not None:
                found[field] = value
            else:
                found.pop(field, None)
        return found

    def _encode(
        self, fields: dict[str, Any], *, has_parts: bool = True
    ) -> tuple[str, bytes]:
        if self._has_rules:
            self._rules.apply(fields)
        # What else is there passes through, but a trade has no parts of its own.
        if has_parts and not _EXACT_KINDS.issuperset(map(type, fields.values())):
            fields = {k: v for k, v in fields.items() if type(v) not in (dict, list)}
        try:
            fields["price"] = decimal_of("price", fields.get("price"))
            fields["size"] = decimal_of("size", fields.get("size"))
        except InvalidTrade as error:
            shown = _text_of(fields[error.field])
            if self._numbers_missing or not shown.startswith("-"):
                raise
            rule = f"{error.rule}; if the sign says up or down: --unsigned price,size"
            raise InvalidTrade(error.reason, error.field, shown, rule) from None
        if self._options.stamp == "now":
            fields["time"] = self._now_us()
        else:
            fields["time"] = self._time(fields)
        if self.numbers_by_arrival or (
            self._numbers_missing and fields.get("seq") in (None, "")
        ):
            fields["seq"] = next(self._arrivals)
        else:
            fields["seq"] = whole_number(fields.get("seq"))
        fields["isin"] = self._isin(fields)
        trade = Trade.from_fields(fields)
        payload = trade.to_wire()
        check_size(len(payload))
        return trade.isin, payload

    def _time(self, fields: dict[str, Any]) -> Any:
        value = fields.get("time")
        text = value if type(value) is str else _text_of(value)
        if self._has_date:
            date = whole_number(fields.pop("date", None))
            text = time_text.join_time(_text_of(date), text)
        if not _NUMBER.fullmatch(text):
            text = plain_time(text.strip())
            if not text:
                rule = "is required; if there is none, say --stamp now"
                raise InvalidTrade("missing_field", "time", value, rule)
            if not _NUMBER.fullmatch(text):
                return self._local_time(text)
        unit = self._options.time_unit
        time_us = _in_microseconds(text, unit)
        if not _is_plausible(time_us):
            raise InvalidTrade("bad_time", "time", text, _unit_rule(text, unit))
        return time_us

    def _local_time(self, text: str) -> str:
        time_us = as_microseconds(text, self._options.time_zone, self._options.fold)
        if time_us is text:
            rule = time_text.hint_of(text) or (
                "must be a number, see --time-unit, or as in ISO 8601, such as "
                "2026-11-25T09:30:00Z"
            )
            raise InvalidTrade("bad_time", "time", text, rule)
        return time_us

    def _isin(self, fields: dict[str, Any]) -> Any:
        value = fields.get("isin")
        # Nearly every one; what else has its size is told what an ISIN looks like.
        if type(value) is str and len(value) == ISIN_CHARS and self._keys is None:
            return value
        if self._keys is not None and value in (None, ""):
            value = fields.get("symbol")
        if value in (None, ""):
            return value
        symbol = _text_of(value)
        if _ISIN_FORM.fullmatch(symbol):
            return symbol
        isin = None if self._issues is None else self._issues.isin_of(symbol)
        if isin is None and self._keys is not None:
            isin = self._keys.isin_of(symbol)
            fields.setdefault("symbol", symbol)
            fields.setdefault("venue", self._keys.venue.name)
        if isin is None:
            raise self._unknown_symbol(value, symbol)
        return isin

    def _unknown_symbol(self, value: Any, symbol: str) -> InvalidTrade:
        if self._issues is None:
            rule = (
                "is no ISIN; --issues names the list that knows symbols, --venue "
                "makes keys of them"
            )
            return InvalidTrade("bad_isin", "isin", value, rule)
        rule = "is neither an ISIN nor a code of the issue list"
        rule += symbol_hint.hint_of(symbol, self._is_listed)
        return InvalidTrade(UNKNOWN_SYMBOL, "isin", value, rule)

    def _is_listed(self, code: str) -> bool:
        return self._issues is not None and self._issues.isin_of(code) is not None


def exact_json(text: bytes) -> Any:
    """Decode JSON; a number that no type of Python keeps is a ``JsonNumber``.

    Raises ValueError and RecursionError.
    """
    return json.loads(text, parse_float=JsonNumber, parse_int=_whole)


def split_row(line: bytes) -> list[str]:
    """Return the values of a line of CSV. Raises InvalidTrade."""
    if len(line) >= MAX_LINE_BYTES:
        raise InvalidTrade("too_large", "trade", len(line), "bytes are too many")
    try:
        text = line.decode()
        return next(csv.reader([text])) if '"' in text else text.split(",")
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidTrade("bad_field", "trade", line, str(error)) from None


def check_columns(columns: Sequence[str], needed: Sequence[str]) -> None:
    """Raise BadHeader unless each column has a name of its own, and none is missing."""
    for name in needed:
        if name not in columns:
            raise BadHeader(
                f"its header has no column {name!r}; trades need {', '.join(needed)}"
            )
    if "" in columns or len(set(columns)) < len(columns):
        raise BadHeader("every column of its header needs a name of its own")


def check_size(size: int) -> None:
    """Raise InvalidTrade for an encoded trade of more bytes than one may have."""
    if size > MAX_PAYLOAD_BYTES:
        rule = f"over {MAX_PAYLOAD_BYTES} bytes"
        raise InvalidTrade("too_large", "trade", size, rule)


def _is_exact(found: dict[str, Any], line: bytes) -> bool:
    """Tell whether decoding has kept the text of every number that may be used."""
    if b"-0" in line:
        return False
    kinds = set(map(type, found.values()))
    if float in kinds or list in kinds:
        return False
    parts = [v for v in found.values() if type(v) is dict] if dict in kinds else ()
    return all(_EXACT_KINDS.issuperset(map(type, part.values())) for part in parts)


def _whole(text: str) -> int | JsonNumber:
    value = int(text) if len(text) <= 20 else None
    is_exact = value is not None and -(2**63) <= value < 2**64 and text != "-0"
    return value if is_exact and value is not None else JsonNumber(text)


def _text_of(value: Any) -> str:
    text = value.text if isinstance(value, JsonNumber) else value
    return "" if text is None else str(text).strip()


def _in_microseconds(text: str, unit: str) -> int:
    places = _PLACES[unit]
    if places >= 0 and "." not in text:
        return int(text) * int(10**places)
    # A Decimal made of text has all of its digits; only what is computed is rounded.
    return int(Decimal(text).scaleb(_PLACES[unit], _EXACT))


def _is_plausible(time_us: int) -> bool:
    return EARLIEST_TIME_US <= time_us < LATEST_TIME_US


def _unit_rule(text: str, unit: str) -> str:
    """Say what is wrong with a time, and which unit would fit."""
    rule = f"in {unit} since 1970 it is not between the years 1990 and 2100"
    fits = [u for u in _PLACES if _is_plausible(_in_microseconds(text, u))]
    if fits:
        return f"{rule}; in {fits[0]} it is: --time-unit {fits[0]}"
    hint = time_text.hint_of(text)
    return f"{rule}; it {hint}" if hint else rule


def numbered_lines(
    pieces: Iterator[bytes],
) -> Iterator[list[tuple[int, bytes | None]]]:
    """Yield the lines that each piece of a stream completes, with their numbers from 1.

    Of a piece that completes none, none. Blank lines are left out. A line over
    ``MAX_LINE_BYTES`` is None, and never held whole. What is left at the end is the
    last line.
    """
    rest, number, is_long = b"", 0, False
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        lines: list[tuple[int, bytes | None]] = []
        for line in whole:
            number += 1
            if is_long or len(line) > MAX_LINE_BYTES:
                lines.append((number, None))
            elif line and not line.isspace():
                lines.append((number, line.rstrip(b"\r")))
            is_long = False
        if len(rest) > MAX_LINE_BYTES:
            rest, is_long = b"", True
        yield lines
    if is_long:
        yield [(number + 1, None)]
    elif rest and not rest.isspace():
        yield [(number + 1, rest.rstrip(b"\r"))]


def whole_line(line: bytes | None) -> bytes:
    """Return a line of ``numbered_lines``; raise InvalidTrade for one too long."""
    if line is None:
        rule = f"over {MAX_LINE_BYTES} bytes in a line"
        raise InvalidTrade("too_large", "trade", "", rule)
    return line
