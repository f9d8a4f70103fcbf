"""Lines of CSV or JSON, read as trades: names, times, numbers and symbols. Pure."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import orjson
from pydantic import Field, InstanceOf, model_validator

from ingest.conditions.sale_rules import Sale, SaleRules
from ingest.decimals import decimal_of, plain_time, whole_number
from ingest.files.file_form import FileForm, read_by
from ingest.files.file_kind import BOM, foreign_kind
from ingest.files.header import fold_names, name_columns
from ingest.files.number_marks import number_cleaner
from ingest.files.records import BadHeader, Record, is_spaced, split_row
from ingest.instrument_table.known_instruments import Instruments
from ingest.records import symbol_hint, time_text
from ingest.records.field_rules import MARKED, FieldRules
from ingest.records.leave_out import value_at
from ingest.sources.event import Refusals
from ingest.sources.field_options import FieldOptions
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
    read_wire,
)
from tickthrottle_client.key_v1 import SymbolKeys
from tickthrottle_client.taking_back_v1 import takes_back
from tickthrottle_client.trade_v1 import as_microseconds
from tickthrottle_client.updates_v1 import FIELD

R = TypeVar("R")
T = TypeVar("T")

UNKNOWN_SYMBOL = "unknown_symbol"
"""Why a trade is refused whose symbol is not on the instrument list."""

_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,18})?", re.ASCII)
_EXACT = Context(prec=64)
# What a decoder that knows doubles keeps as it was.
_EXACT_KINDS = frozenset({str, int, bool, type(None)})
_ISIN_FORM = re.compile(ISIN_PATTERN, re.ASCII)
_COMMA = re.compile(r"[0-9][,' \u00a0\u202f][0-9]")

# By how many places the point of a time moves for microseconds.
_PLACES = {"s": 6, "ms": 3, "us": 0, "ns": -3}


def _parse_zone(value: str) -> ZoneInfo:
    try:
        return ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("must be a time zone such as Asia/Seoul") from None


class LineOptions(FieldOptions, FileForm):
    """How lines are read."""

    records: str = Field("", pattern=r"^[^,=\s]{0,100}$")
    """Where in an object of JSON the list of its trades is, with points, as data. Of
    the object around it only what map and leave-out name is taken. A line that is a
    list itself needs no option.
    """

    time_unit: Literal["s", "ms", "us", "ns"] = "us"
    """What a time that is a number counts, since 1970 UTC. Times as in ISO 8601 are
    read whatever this is.
    """

    time_zone: Annotated[InstanceOf[ZoneInfo], read_by(_parse_zone)] | None = None
    """Where the clocks stand by which ISO 8601 times without an offset are, such as
    Asia/Seoul. Without it, they are refused.
    """

    instruments_file: Path | None = None
    """Instrument list, as CSV: it tells the ISINs of codes and other symbols."""

    stamp: Literal["recorded", "now"] = "recorded"
    """``recorded``: a trade has its own time. ``now``: it has the time at which it was
    read, for sources that tell none.
    """

    @property
    def has_date(self) -> bool:
        """Whether a trade's day and its time of day are two fields."""
        return "date" in (*self.map, *self.set, *self.column_names)

    @model_validator(mode="after")
    def _check_set(self) -> "LineOptions":
        if twice := sorted(self.map.keys() & self.set.keys()):
            raise ValueError(f"set: {twice[0]!r} is in map, too")
        return self


class LineReader:
    """Reads the lines of one source, in order. The first line tells the format.

    A source whose first trade has no ``seq`` gets numbers from ``start_us`` on, so that
    a feed that is started again goes on above them: ``numbers_by_arrival`` from then
    on. Of CSV the header tells.
    """

    def __init__(
        self,
        options: LineOptions,
        start_us: int,
        now_us: Callable[[], int],
        instruments: Instruments | None = None,
        *,
        numbers_missing: bool = False,
        unknown: Counter[str] | None = None,
        is_whole: bool = False,
    ) -> None:
        """``now_us`` is the time of day. ``instruments`` tells the ISINs of symbols.

        With ``numbers_missing`` each trade without ``seq`` is numbered for itself, as
        lines have nothing to do with each other. The rest is as for ``SaleRules``.
        """
        self.numbers_by_arrival = False
        # Of JSON whose first record has no number: it may be no trade.
        self._awaits_trade = self._is_plain_if_numbered = False
        self._numbers_missing = numbers_missing
        self._options = options
        self.form: FileForm = options
        self._now_us = now_us
        self._instruments = instruments
        self._arrivals = count(start_us)
        self._names = dict(options.map)
        self._clean = number_cleaner(options.thousands, options.decimal_mark)
        self._rules = self._rules_by(self._names)
        self._keys = None if options.venue is None else SymbolKeys(options.venue)
        self._sales = None
        if choice := options.updates:
            self._sales = SaleRules(choice.table, unknown, is_whole=is_whole)
        self._has_date = options.has_date
        self._header: list[str] = []
        self._header_chars = 0
        # Of CSV, which field each value is; nothing is left out.
        self._columns: list[str] | None = None
        self._is_spaced = False
        self._fields_of: Callable[[bytes], dict[str, Any]] = self._json_fields
        # Whether a trade may be as it is: of fields, and of a whole line of JSON.
        keeps_values = (
            self._rules.are_none
            and self._sales is None
            and not self._has_date
            and options.stamp == "recorded"
            and options.time_unit == "us"
        )
        self._is_canonical = keeps_values and not numbers_missing
        self._is_plain = keeps_values and not options.map
        self._use_names()

    def begin(self, first: bytes) -> bool:
        """Learn from the first record; tell if it is a header. Raises BadHeader."""
        form = self._options
        if (words := foreign_kind(first, form.encoding)) is not None:
            raise BadHeader(words)
        if first.lstrip()[:1] in (b"{", b"["):
            self._begin_json(first)
            return False
        self._is_spaced = is_spaced(first, form.delimiter)
        try:
            cells = form.column_names or self._split(first)
        except InvalidTrade as error:
            raise BadHeader(f"its first line: {error}") from None
        self._header = [cell.strip() for cell in cells]
        self._header_chars = sum(map(len, self._header))
        needed = self._needed((*self._header, *form.map))
        self._columns = name_columns(
            *(cells, form.map, REQUIRED, needed, form.delimiter)
        )
        pairs = zip(self._columns, self._header, strict=True)
        self._rules = self._rules_by({field: name for field, name in pairs if field})
        self._check_columns(self._columns)
        self.numbers_by_arrival = "seq" not in self._columns
        self._is_plain = False
        self._fields_of = self._row
        return not form.columns

    @property
    def taken_names(self) -> dict[str, str]:
        """What the fields of a trade are called in the source."""
        if self._columns is None:
            return {field: self._names.get(field, field) for field in REQUIRED}
        pairs = zip(self._columns, self._header, strict=True)
        return {field: name for field, name in pairs if field in REQUIRED}

    def read(self, record: bytes) -> tuple[str, bytes]:
        """Return a record's ISIN, and its trade as the log holds it.

        Raises InvalidTrade. JSON that is as the log wants it leaves as it came.
        """
        if self._is_plain and (whole := self._as_it_came(record)) is not None:
            return whole
        return self._finish(self._fields_of, record, self._encode)

    def read_trade(self, record: bytes) -> Trade:
        """Return a record's trade. Raises InvalidTrade."""
        if self._is_plain:
            try:
                return Trade.from_wire(record)
            except InvalidTrade:
                # Another notation perhaps, which the log does not know.
                pass
        trade = self._finish(self._fields_of, record, self.trade_of)
        # Escapes, quotes and repeated names make text at most eight times as long.
        if (len(record) + self._header_chars) * 8 > MAX_PAYLOAD_BYTES:
            check_size(len(trade.to_wire()))
        return trade

    def read_part(self, part: Any, finish: Callable[[dict[str, Any]], T]) -> T:
        """Return what ``finish`` makes of a trade of a list. Raises InvalidTrade."""
        return self._finish(self._part_fields, part, finish)

    @property
    def has_lists(self) -> bool:
        """Whether records may be lists."""
        return self._columns is None

    def is_list(self, record: bytes) -> bool:
        """Tell whether a record of JSON may hold many trades."""
        return record.lstrip()[:1] == b"[" or self._options.records != ""

    def read_line(self, line: bytes) -> tuple[str, bytes]:
        """Return the same of a line of JSON, whatever the first one was."""
        whole = self._as_it_came(line) if self._is_plain else None
        return whole or self._encode(self._json_fields(line))

    def read_fields(self, fields: Mapping[str, Any]) -> tuple[str, bytes]:
        """Return the same of fields that ``exact_json`` has decoded."""
        return self._encode(dict(fields))

    def _begin_json(self, first: bytes) -> None:
        if self._options.columns:
            raise BadHeader(
                "is JSON, which has no columns: leave out columns of --form"
            )
        if not first.rstrip().endswith((b"}", b"]")):
            parts = "'.[]'" if first.lstrip()[:1] == b"[" else "."
            raise BadHeader(
                "is JSON over several lines; each record has to be on a line of its "
                f"own: jq -c {parts} FILE | ... -"
            )
        try:
            objects = self.parts(first) if self.is_list(first) else [_decode(first)]
        except InvalidTrade:
            objects = []
        fields: dict[str, Any] = next((o for o in objects if type(o) is dict), {})
        unmapped = [field for field in REQUIRED if field not in self._names]
        if "isin" not in fields:
            self._names |= fold_names(list(fields), unmapped)
            self._use_names()
        # Who says where the number is has one. Else the first trade tells.
        self._awaits_trade = "seq" not in self._names and "seq" not in fields
        self._is_plain_if_numbered = self._is_plain and not self._names
        self._is_plain = self._is_plain_if_numbered and not self._awaits_trade

    def _use_names(self) -> None:
        self._paths = {
            field: tuple(name.split(".")) for field, name in self._names.items()
        }
        # Of the object around a list, what a name may lead to.
        self._around = {path[0] for path in self._paths.values()}
        self._around |= {condition.path[0] for condition in self._options.leave_out}
        choice = self._options.updates
        own = {name: field for field, name in self._names.items()}
        sale = (choice.codes, choice.tape, choice.market) if choice else ()
        self._around |= {name.split(".")[0] for name in sale}
        self._sale_paths = [own.get(name, name).split(".") for name in sale]
        self._list_path = tuple(self._options.records.split("."))

    def _needed(self, columns: Sequence[str]) -> list[str]:
        free = {"seq", *self._options.set}
        if self._options.stamp == "now":
            free.add("time")
        if self._keys is not None and "symbol" in columns:
            free.add("isin")
        return [name for name in REQUIRED if name not in free]

    def _rules_by(self, names: Mapping[str, str]) -> FieldRules:
        return FieldRules(
            constants=self._options.set,
            conditions=self._options.leave_out,
            clean=self._clean,
            scale=self._options.scale,
            unsigned=self._options.unsigned,
            names=names,
        )

    def _check_columns(self, columns: Sequence[str]) -> None:
        for name, rule in self._columns_looked_at():
            if name not in (*columns, *self._header, *self._options.set):
                raise BadHeader(
                    f"its header has no column {name!r}, {rule}: it has "
                    f"{', '.join(self._header)[:200]}"
                )

    def _columns_looked_at(self) -> Iterator[tuple[str, str]]:
        """Yield the columns that ``leave_out`` and ``updates`` need, and what for."""
        for name in self._rules.fields_looked_at:
            yield name, "which leave_out names"
        choice = self._options.updates
        if choice is None:
            return
        yield choice.codes, f"the sale conditions of --updates {choice}"
        if choice.table.plans:
            yield (
                choice.tape,
                f"by which codes differ: --updates {choice.table.name}:{choice.codes}"
                f":COLUMN names it, --form set={choice.tape}=C is for all lines",
            )
        if choice.names_market:
            yield choice.market, f"the market of --updates {choice}"

    def _sale(self, fields: Mapping[str, Any]) -> Sale | None:
        choice = self._options.updates
        if choice is None:
            return None
        codes, tape, market = (value_at(fields, path) for path in self._sale_paths)
        rule = choice.table.rule_of(codes, tape)
        if rule.unknown and choice.table.plan_of(tape) is None:
            raise InvalidTrade(
                *("bad_field", choice.tape, tape),
                f"{choice.table.tape_rule}; --updates {choice} names the table and its "
                "fields",
            )
        return Sale(codes, tape, market)

    def _split(self, record: bytes) -> list[str]:
        form = self._options
        return split_row(record, form.delimiter, self._is_spaced, form.no_quotes)

    def _row(self, record: bytes) -> dict[str, Any]:
        columns = self._columns or []
        values = self._split(record)
        if len(values) == len(columns) + 1 and not values[-1].strip():
            # A delimiter at the end of a row, and none at that of the header.
            values.pop()
        if len(values) != len(columns):
            rule = f"has {len(values)} values, the header {len(columns)}"
            if not record.strip(b"\0"):
                rule = "is nothing but NUL bytes, as of a file that was cut off"
            raise InvalidTrade("bad_field", "trade", record, rule)
        fields: dict[str, Any] = dict(zip(columns, values, strict=True))
        fields.pop("", None)
        return fields

    def _finish(
        self,
        fields_of: Callable[[R], dict[str, Any]],
        record: R,
        finish: Callable[[dict[str, Any]], T],
    ) -> T:
        """Return what ``finish`` makes of a record. Raises InvalidTrade, with hints."""
        try:
            return finish(fields_of(record))
        except InvalidTrade as error:
            if self._is_header(record):
                rule = "is the header again"
                raise InvalidTrade("bad_field", "trade", record, rule) from None
            if error.field not in MARKED or self._clean:
                raise
            # What was refused may have been changed on the way.
            value = fields_of(record).get(error.field)
            if not isinstance(value, str) or not _COMMA.search(value):
                raise
            rule = (
                "must be a plain decimal: --form thousands= names a mark between "
                "thousands, --form decimal-mark=, for a decimal comma"
            )
            raise InvalidTrade(error.reason, error.field, value, rule) from None

    def _is_header(self, record: object) -> bool:
        if self._columns is None or not isinstance(record, bytes):
            return False
        values = self._split(record.removeprefix(BOM))
        return [value.strip() for value in values] == self._header

    def _as_it_came(self, line: bytes) -> tuple[str, bytes] | None:
        if (head := read_wire(line)) is not None:
            return head[0], line
        try:
            return Trade.from_wire(line).isin, line
        except InvalidTrade:
            # Another notation perhaps, which the log does not know.
            return None

    def _part_fields(self, part: Any) -> dict[str, Any]:
        return self._named(dict(part) if isinstance(part, dict) else part)

    def _json_fields(self, line: bytes) -> dict[str, Any]:
        decoded = _decode(line)
        return self._named(decoded if isinstance(decoded, dict) else line)

    def parts(self, line: bytes) -> list[Any]:
        """Return the objects of a line that may hold many. Raises InvalidTrade."""
        decoded = _decode(line)
        objects = decoded if isinstance(decoded, list) else [decoded]
        if not self._options.records:
            return objects
        parts: list[Any] = []
        for whole in objects:
            listed = (
                value_at(whole, self._list_path) if isinstance(whole, dict) else None
            )
            if not isinstance(listed, list):
                parts.append(whole if listed is None else listed)
                continue
            around = {name: whole[name] for name in self._around if name in whole}
            for part in listed:
                parts.append({**around, **part} if isinstance(part, dict) else part)
        return parts

    def _named(self, fields: Any) -> dict[str, Any]:
        """Return an object with the names of a trade. Raises InvalidTrade."""
        if not isinstance(fields, dict):
            shown = fields if isinstance(fields, bytes) else str(fields)
            raise InvalidTrade("not_object", "trade", shown, "is not a JSON object")
        values = {field: value_at(fields, path) for field, path in self._paths.items()}
        for name in self._names.values():
            fields.pop(name, None)
        for field, value in values.items():
            if value is not None:
                fields[field] = value
            else:
                fields.pop(field, None)
        return fields

    def trade_of(self, fields: dict[str, Any]) -> Trade:
        """Return the trade of fields with its names. Raises InvalidTrade."""
        if not self._is_canonical or self.numbers_by_arrival or self._awaits_trade:
            return self._trade(fields)
        try:
            return Trade.from_fields(fields)
        except InvalidTrade:
            trade = self._trade(fields)
        # The source has another notation, and will have it in the next lines.
        self._is_canonical = False
        return trade

    def _encode(self, fields: dict[str, Any]) -> tuple[str, bytes]:
        trade = self.trade_of(fields)
        payload = trade.to_wire()
        check_size(len(payload))
        return trade.isin, payload

    def _trade(self, fields: dict[str, Any]) -> Trade:
        is_trade = not takes_back(fields)
        try:
            if not self._rules.are_none:
                self._rules.apply(fields)
            if is_trade:
                fields["price"] = decimal_of("price", fields.get("price"))
                fields["size"] = decimal_of("size", fields.get("size"))
        except InvalidTrade as error:
            shown = _text_of(fields.get(error.field))
            if self._numbers_missing or not shown.startswith("-"):
                raise
            rule = (
                f"{error.rule}; if the sign says up or down: --form unsigned=price,size"
            )
            raise InvalidTrade(error.reason, error.field, shown, rule) from None
        sale = self._sale(fields) if is_trade else None
        if not _text_of(fields.get(FIELD)):
            fields.pop(FIELD, None)
        # What else is there passes through, but a trade has no parts of its own.
        if self._columns is None and not _EXACT_KINDS.issuperset(
            map(type, fields.values())
        ):
            fields = {k: v for k, v in fields.items() if type(v) not in (dict, list)}
        if self._options.stamp == "now":
            fields["time"] = self._now_us()
        else:
            fields["time"] = self._time(fields)
        has_number = fields.get("seq") not in (None, "")
        is_filled_in = self._numbers_missing or self._awaits_trade
        if not is_trade and not has_number:
            fields.pop("seq", None)
        elif self.numbers_by_arrival or (is_filled_in and not has_number):
            fields["seq"] = next(self._arrivals)
        else:
            fields["seq"] = whole_number(fields.get("seq"))
        fields["isin"] = self._isin(fields)
        trade = Trade.from_fields(fields)
        if is_trade and self._awaits_trade:
            self._awaits_trade = False
            self.numbers_by_arrival = not has_number
            self._is_plain = self._is_plain_if_numbered and has_number
        if self._sales is None or sale is None:
            return trade
        return self._sales.apply(trade, sale)

    def _time(self, fields: dict[str, Any]) -> int | str:
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
                "must be a number, see time-unit of --form, or as in ISO 8601, such as "
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
        isin = None if self._instruments is None else self._instruments.isin_of(symbol)
        if isin is None and self._keys is not None:
            isin = self._keys.isin_of(symbol)
            fields.setdefault("symbol", symbol)
            fields.setdefault("venue", self._keys.venue.name)
        if isin is None:
            raise self._unknown_symbol(value, symbol)
        return isin

    def _unknown_symbol(self, value: Any, symbol: str) -> InvalidTrade:
        if self._instruments is None:
            rule = (
                "is no ISIN; --instruments names the list that knows symbols, --venue "
                "makes keys of them"
            )
            return InvalidTrade("bad_isin", "isin", value, rule)
        isin_of = self._instruments.isin_of
        rule = "is neither an ISIN nor a code of the instrument list"
        rule += symbol_hint.hint_of(symbol, lambda code: isin_of(code) is not None)
        return InvalidTrade(UNKNOWN_SYMBOL, "isin", value, rule)


def _decode(line: bytes) -> Any:
    """Decode a line of JSON; NaN and infinities are null. Raises InvalidTrade."""
    try:
        decoded = orjson.loads(line)
        if isinstance(decoded, dict) and _is_exact(decoded, line):
            return decoded
    except (ValueError, RecursionError) as error:
        if b"NaN" not in line and b"Infinity" not in line:
            raise _not_json(line, error) from None
    try:
        return exact_json(line, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise _not_json(line, error) from None


def _not_json(line: bytes, error: Exception) -> InvalidTrade:
    return InvalidTrade("not_json", "trade", line, str(error)[:80])


def begin(reader: LineReader, records: list[Record]) -> list[Record]:
    """Learn from the first record; return those that are trades. Raises BadHeader."""
    if isinstance(first := records[0][1], InvalidTrade):
        raise BadHeader(f"its first line: {first}")
    return records[1:] if reader.begin(first) else records


def read_records(
    records: Iterable[Record],
    reader: LineReader,
    refusals: Refusals,
    read: Callable[[bytes], T],
    finish: Callable[[dict[str, Any]], T],
) -> list[T]:
    """Return what ``read`` makes of records, and ``finish`` of the trades of lists.

    What is none is counted in ``refusals``, each for itself.
    """
    results: list[T] = []
    has_lists = reader.has_lists
    for number, record in records:
        try:
            if isinstance(record, InvalidTrade):
                raise record
            if not (has_lists and reader.is_list(record)):
                results.append(read(record))
                continue
            parts = reader.parts(record)
        except InvalidTrade as error:
            refusals.add(number, error)
            continue
        for part in parts:
            try:
                results.append(reader.read_part(part, finish))
            except InvalidTrade as error:
                refusals.add(number, error)
    return results


def exact_json(text: bytes, **options: Any) -> Any:
    """Decode JSON; a number that no type of Python keeps is a ``JsonNumber``.

    Raises ValueError and RecursionError.
    """
    return json.loads(text, parse_float=JsonNumber, parse_int=_whole, **options)


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
    return int(Decimal(text).scaleb(places, _EXACT))


def _is_plausible(time_us: int) -> bool:
    return EARLIEST_TIME_US <= time_us < LATEST_TIME_US


def _unit_rule(text: str, unit: str) -> str:
    """Say what is wrong with a time, and which unit would fit."""
    rule = f"in {unit} since 1970 it is not between the years 1990 and 2100"
    fits = [u for u in _PLACES if _is_plausible(_in_microseconds(text, u))]
    if fits:
        return f"{rule}; in {fits[0]} it is: --form time-unit={fits[0]}"
    hint = time_text.hint_of(text)
    return f"{rule}; it {hint}" if hint else rule
