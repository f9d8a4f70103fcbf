"""What a file seems to be, and which options take its trades. Pure.

Guesses are made here only: they are shown, and whoever reads says them as options.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ingest.conditions.known_tables import find_table
from ingest.files.file_kind import foreign_file, foreign_kind, guess_encoding
from ingest.files.header import guess_delimiter, guess_map, in_words
from ingest.files.records import BadHeader, Record, cut_records, split_row
from ingest.files.text_pieces import to_utf8
from ingest.instrument_table.known_instruments import Instruments
from ingest.records.leave_out import value_at
from ingest.sources.event import Refusals
from ingest.sources.trade_lines import (
    UNKNOWN_SYMBOL,
    LineOptions,
    LineReader,
    begin,
    read_records,
)
from ingest.trade import EARLIEST_TIME_US, REQUIRED, InvalidTrade, Trade
from tickthrottle_client.updates_v1 import FIELD

SAMPLE_BYTES = 2**20
"""So much of a file is looked at."""

SAMPLE_RECORDS = 1_000
"""At most so many records are."""

_SHOWN = 5
_SALE = ("conditions", "tape", "exchange")
_US_TABLES = ("us_equities_numeric", "us_equities")
_FIRST_LINES = 20
# What may help where values are refused: units of time, marks of numbers.
_VARIATIONS: tuple[dict[str, str], ...] = (
    {"time_unit": "ms"},
    {"time_unit": "s"},
    {"time_unit": "ns"},
    {"thousands": ","},
    {"decimal_mark": ","},
    {"thousands": ".", "decimal_mark": ","},
    {"thousands": " ", "decimal_mark": ","},
)


@dataclass(slots=True)
class Inspection:
    """What was found in a file's first records.

    ``options`` take the file, as far as can be told; ``form`` says in words what it
    is, ``names`` what the fields of a trade are called in it, ``head`` how it begins,
    ``problem`` why none of it can be read, empty if it can.
    """

    options: LineOptions
    form: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    records: int = 0
    taken: int = 0
    trades: list[Trade] = field(default_factory=list)
    partial: int = 0
    """Trades that do not count for everything."""
    refusals: Refusals = field(default_factory=Refusals)
    head: list[str] = field(default_factory=list)
    problem: str = ""

    @property
    def score(self) -> int:
        """How far records come: what is refused later has been read up to there."""
        counts = self.refusals.counts
        at_the_symbol = counts["bad_isin"] + counts[UNKNOWN_SYMBOL]
        read = counts["bad_size"] + 2 * counts["bad_time"] + 3 * at_the_symbol
        return read + 4 * self.taken


def inspect_sample(
    sample: bytes, options: LineOptions, instruments: Instruments | None = None
) -> Inspection:
    """Look at a file's first bytes, unpacked. Options that are set are not guessed."""
    if words := foreign_file(sample):
        return Inspection(options, problem=words)
    chosen = dict.fromkeys(options.model_fields_set)
    options = _with(options, chosen, encoding=guess_encoding(sample))
    records = _records(sample, options)
    first = records[0][1] if records else b""
    if isinstance(first, InvalidTrade) or foreign_kind(first, options.encoding):
        return _read(records, options, instruments, "")
    fields = set(REQUIRED)
    if first.lstrip()[:1] in (b"{", b"["):
        fields, options, form = _with_json_names(records, options, chosen)
    else:
        header = first.decode()
        options = _with(options, chosen, delimiter=guess_delimiter(header))
        # Where a value may end depends on what separates them.
        records = _records(sample, options)
        form = f"CSV, separated by {in_words(options.delimiter)}"
        try:
            columns = options.column_names or split_row(
                first, options.delimiter, no_quotes=options.no_quotes
            )
        except InvalidTrade:
            columns = []
        free = [name for name in REQUIRED if name not in options.map]
        guessed = guess_map([c.strip() for c in columns], free)
        options = _with_map(options, guessed)
        if "time" not in {*options.map, *(c.strip().casefold() for c in columns)}:
            options = _with(options, chosen, stamp="now")
    best = _read(records, options, instruments, form)
    for variation in _VARIATIONS:
        try:
            varied = _with(options, chosen, **variation)
        except ValueError:
            continue
        other = _read(records, varied, instruments, form)
        if other.score > best.score:
            best, options = other, varied
    best.names = {k: name for k, name in best.names.items() if k in fields}
    best.options = _with_table(records, best, instruments)
    return best


def _with_table(
    records: list[Record], best: Inspection, instruments: Instruments | None
) -> LineOptions:
    """Return options with the table of sale conditions that knows all of the codes.

    Only if some of the trades do not count for everything by it.
    """
    options = best.options
    columns = _columns(records, options) if options.updates is None else []
    names = {field: field for field in _SALE if field in columns}
    names |= guess_map(columns, _SALE)
    if "conditions" not in names:
        return options
    market = names.get("exchange", "")
    market = "" if market == "exchange" else market
    # Whether symbols have ISINs does not matter here.
    probe = {} if best.taken or options.venue else {"venue": "XNAS"}
    best = _read(records, _with(options, {}, **probe), instruments, "")
    for name in _US_TABLES:
        has_tapes = bool(find_table(name).plans)
        tape = names.get("tape", "") if has_tapes else ""
        if has_tapes and not tape:
            continue
        text = f"{name}:{names['conditions']}:{tape}:{market}".rstrip(":")
        varied = _with(options, {}, updates=text, **probe)
        seen = _read(records, varied, instruments, "")
        is_known = not seen.refusals.unknown_conditions
        if is_known and seen.partial > best.partial and seen.taken == best.taken:
            return _with(options, {}, updates=text)
    return options


def _columns(records: list[Record], options: LineOptions) -> list[str]:
    first = records[0][1] if records else b""
    if isinstance(first, InvalidTrade):
        return []
    try:
        if first.lstrip()[:1] not in (b"{", b"["):
            names = split_row(first, options.delimiter, no_quotes=options.no_quotes)
            return options.column_names or [name.strip() for name in names]
        whole = json.loads(first)
    except (ValueError, RecursionError):
        return []
    parts = whole if isinstance(whole, list) else [whole]
    if options.records and isinstance(whole, dict):
        parts = value_at(whole, options.records.split("."))
    return list(parts[0]) if _holds_objects(parts) else []


def _records(sample: bytes, options: LineOptions) -> list[Record]:
    pieces = to_utf8(iter([sample]), options.encoding)
    parts = cut_records(pieces, options.delimiter, no_quotes=options.no_quotes)
    records = [record for part in parts for record in part]
    if len(sample) >= SAMPLE_BYTES and len(records) > 1:
        # The last one is cut off.
        records.pop()
    return records[: SAMPLE_RECORDS + 1]


def _read(
    records: list[Record],
    options: LineOptions,
    instruments: Instruments | None,
    form: str,
) -> Inspection:
    seen = Inspection(options, form)
    seen.head = [str(r, "utf-8", "replace") for _, r in records[:3] if type(r) is bytes]
    if not records:
        seen.problem = "is empty"
        return seen
    unknown = seen.refusals.unknown_conditions
    reader = LineReader(
        *(options, 1, lambda: EARLIEST_TIME_US, instruments),
        unknown=unknown,
        is_whole=True,
    )
    try:
        rows = begin(reader, records)
    except BadHeader as error:
        seen.problem = str(error)
        return seen
    seen.names = reader.taken_names
    trades = read_records(
        *(rows, reader, seen.refusals, reader.read_trade, reader.trade_of)
    )
    if reader.numbers_by_arrival:
        seen.names = {k: v for k, v in seen.names.items() if k != "seq"}
    seen.records, seen.taken, seen.trades = len(rows), len(trades), trades[:_SHOWN]
    seen.partial = sum(FIELD in trade.extra for trade in trades)
    return seen


def _with(
    options: LineOptions, chosen: Mapping[str, Any], **guessed: str
) -> LineOptions:
    """Return options with guesses for what was not chosen. Raises ValueError."""
    values = {name: getattr(options, name) for name in options.model_fields_set}
    values |= {name: value for name, value in guessed.items() if name not in chosen}
    return LineOptions(**values)


def _with_map(options: LineOptions, guessed: Mapping[str, str]) -> LineOptions:
    names = {**guessed, **options.map}
    return _with(options, {}, map=names) if guessed else options  # type: ignore[arg-type]


def _with_json_names(
    records: list[Record], options: LineOptions, chosen: Mapping[str, Any]
) -> tuple[set[str], LineOptions, str]:
    """Guess where the trades of lines are, and what their fields are called.

    Of the first lines, the one that has most of a trade tells.
    """
    guesses = []
    for _, line in records[:_FIRST_LINES]:
        try:
            whole = json.loads(line) if isinstance(line, bytes) else None
        except (ValueError, RecursionError):
            continue
        parts = whole if isinstance(whole, list) else [whole]
        for part in parts[:1]:
            if isinstance(part, dict):
                fields, guess = _guess_of_json(part, options, chosen)
                form = f"JSON, lists at {guess.records}" if guess.records else "JSON"
                form += " lines" if part is whole and not guess.records else ""
                form += ", a list a line" if part is not whole else ""
                guesses.append((fields, guess, form))
    if not guesses:
        return set(), options, "JSON"
    return max(guesses, key=lambda guess: len(guess[0]))


def _guess_of_json(
    example: Mapping[str, Any], options: LineOptions, chosen: Mapping[str, Any]
) -> tuple[set[str], LineOptions]:
    listed = [name for name, value in example.items() if _holds_objects(value)]
    if options.records or (listed and not {"isin", "price"} & example.keys()):
        options = _with(options, chosen, records=(listed or [""])[0])
        parts = value_at(example, options.records.split("."))
        if _holds_objects(parts):
            example = {**example, **parts[0]}
    # By their last names; what lies nearer comes first.
    paths = sorted(_paths(example), key=lambda path: path.count("."))
    leaves = {path.rpartition(".")[2]: path for path in reversed(paths)}
    free = [name for name in REQUIRED if name not in options.map]
    names = {name: leaves[leaf] for name, leaf in guess_map(list(leaves), free).items()}
    names |= {name: leaves[name] for name in free if leaves.get(name, name) != name}
    options = _with_map(options, names)
    fields = {*options.map, *(leaf.casefold() for leaf in leaves)} & {*REQUIRED}
    if "time" not in fields:
        options = _with(options, chosen, stamp="now")
    return fields, options


def _holds_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _paths(example: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for name, value in example.items():
        if isinstance(value, dict) and before.count(".") < 3:
            yield from _paths(value, f"{before}{name}.")
        elif not isinstance(value, dict | list):
            yield f"{before}{name}"
