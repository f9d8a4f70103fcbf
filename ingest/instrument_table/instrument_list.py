"""The instrument list: a file with what is known of each instrument.

CSV with a header in UTF-8, if its ``FileForm`` does not say otherwise, JSON lines or
Parquet, packed or not. Its columns are the fields of an instrument
(``instrument_entry.py``), in any order; only ``isin`` has to be there, any other cell
may be empty, and further columns are not looked at. With keys of a venue a line without
an ISIN gets the key of its ``symbol`` or, if it has none, of its ``code``. A list that
is wrong in one line is refused as a whole.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ingest.files.file_form import FileForm
from ingest.files.file_kind import DamagedFile, Unreadable, guess_encoding
from ingest.files.header import (
    delimiter_hint,
    fold_names,
    guess_map,
    looks_like_data,
    spell_map,
)
from ingest.files.number_marks import number_cleaner
from ingest.files.open_pieces import read_pieces
from ingest.instrument_table.instrument_entry import (
    FIELDS,
    NUMBERS,
    BadInstruments,
    InstrumentEntry,
    read_entry,
)
from ingest.instrument_table.known_instruments import Instruments
from tickthrottle_client.key_v1 import BadSymbol, SymbolKeys, Venue

INSTEAD = {
    "sector": "industry",
    "listed_shares": "shares",
    "english_name": "name_en",
    "tick_table": "tick_size",
}
"""What a column may be called if the list has none of its own name."""

MOST_INSTRUMENTS = 100_000
"""Most instruments of a list."""

MOST_BYTES = 64 * 2**20
"""Most bytes of a list, unpacked."""

PLAIN = FileForm()

_SYMBOL = "symbol"
_VENUE_HINT = "; --venue makes keys of symbols or codes that have no ISIN"


@dataclass(frozen=True, slots=True)
class InstrumentList:
    """The instruments of a list, and the fields that it has columns for."""

    instruments: list[InstrumentEntry]
    fields: tuple[str, ...] = FIELDS


def read_instruments(path: Path, keys: SymbolKeys | None = None) -> Instruments:
    """Read a list as it has to be. Raises BadInstruments with one sentence."""
    try:
        return Instruments(read_list(path, keys=keys).instruments)
    except BadInstruments as error:
        # Options of this command are those of its trades, but for the venue.
        text, is_hinted, hints = str(error).partition(": --")
        _, *venue = hints.partition(_VENUE_HINT)
        rule = "; `instruments load` takes it with --map and --form"
        text += rule + "".join(venue) if is_hinted else ""
        raise BadInstruments(text) from None


def read_symbols(path: Path | None, venue: Venue | None) -> Instruments | None:
    """Read the list that tells the ISINs of symbols, if there is one.

    Symbols of a venue may have keys in place of ISINs. Raises BadInstruments.
    """
    keys = None if venue is None else SymbolKeys(venue)
    return None if path is None else read_instruments(path, keys)


def read_list(
    path: Path, form: FileForm = PLAIN, keys: SymbolKeys | None = None
) -> InstrumentList:
    """Read a list as it is written. Raises BadInstruments with one sentence."""
    try:
        text = _read_text(path, form.encoding)
        return parse_list(io.StringIO(text, newline=""), form, keys)
    except (BadInstruments, DamagedFile, Unreadable, OSError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadInstruments(f"instruments_file {path}: {why}") from None


def _read_text(path: Path, encoding: str) -> str:
    pieces: list[bytes] = []
    for piece in read_pieces(path, encoding):
        pieces.append(piece)
        if sum(map(len, pieces)) > MOST_BYTES:
            raise BadInstruments(f"has over {MOST_BYTES:,} bytes")
    content = b"".join(pieces)
    try:
        return content.decode()
    except UnicodeDecodeError:
        if encoding != "utf-8":
            raise BadInstruments(f"has what is no text in {encoding}") from None
        rule = f"must be UTF-8: --form encoding={guess_encoding(content)} perhaps"
        raise BadInstruments(rule) from None


def parse_list(
    lines: Iterable[str], form: FileForm = PLAIN, keys: SymbolKeys | None = None
) -> InstrumentList:
    """Read the lines of a list. Raises BadInstruments for the first rule broken."""
    instruments: list[InstrumentEntry] = []
    # Where each ISIN and each code was said first.
    isins: dict[str, int] = {}
    codes: dict[str, int] = {}
    rows = _rows(lines, form)
    _, header = (0, form.column_names) if form.columns else next(rows, (1, []))
    places = _find_columns(header, form, keys)
    for line, cells in rows:
        if len(cells) == len(header) + 1 and not cells[-1]:
            cells.pop()
        if len(cells) != len(header):
            rule = f"has {len(cells)} cells, the header has {len(header)}"
            raise BadInstruments(f"line {line}: {rule}")
        instrument = _read_instrument(line, cells, places, form, keys)
        _check_is_new(line, "isin", instrument.isin, isins)
        if instrument.code is not None:
            _check_is_new(line, "code", instrument.code, codes)
        if len(instruments) == MOST_INSTRUMENTS:
            rule = f"a list has at most {MOST_INSTRUMENTS} instruments"
            raise BadInstruments(f"line {line}: {rule}")
        instruments.append(instrument)
    return InstrumentList(instruments, tuple(f for f in FIELDS if f in places))


def _rows(lines: Iterable[str], form: FileForm) -> Iterator[tuple[int, list[str]]]:
    numbered = enumerate(lines, 1)
    # Comments may stand before the header.
    first = next(((n, t) for n, t in numbered if t.strip() and t[0] != "#"), (1, ""))
    if first[1].lstrip().startswith("{"):
        yield from _json_rows(first, numbered)
        return
    text = (line for _, line in (first, *numbered))
    reader = csv.reader(
        text,
        delimiter=form.delimiter,
        quoting=csv.QUOTE_NONE if form.no_quotes else csv.QUOTE_MINIMAL,
        strict=True,
    )
    try:
        for cells in reader:
            if cells:
                yield first[0] - 1 + reader.line_num, cells
    except csv.Error as error:
        number = first[0] - 1 + reader.line_num
        raise BadInstruments(f"line {number}: not CSV: {error}") from None


def _json_rows(
    first: tuple[int, str], numbered: Iterator[tuple[int, str]]
) -> Iterator[tuple[int, list[str]]]:
    header: list[str] = []
    for number, line in (first, *numbered):
        if not line.strip():
            continue
        try:
            fields = json.loads(line, parse_float=str, parse_int=str)
        except (ValueError, RecursionError) as error:
            rule = f"not JSON: {str(error)[:80]}"
            raise BadInstruments(f"line {number}: {rule}") from None
        if not isinstance(fields, dict):
            raise BadInstruments(f"line {number}: is not a JSON object")
        if not header:
            header = list(fields)
            yield number, header
        values = (fields.get(name) for name in header)
        yield number, ["" if value is None else str(value) for value in values]


def _find_columns(
    header: Sequence[str], form: FileForm, keys: SymbolKeys | None
) -> dict[str, int]:
    names = [name.strip() for name in header]
    fields = FIELDS if keys is None else (*FIELDS, _SYMBOL)
    if unknown := form.map.keys() - set(fields):
        rule = f"is no field of an instrument: {', '.join(fields)}"
        raise BadInstruments(f"map: {min(unknown)!r} {rule}")
    called = {**fold_names(names, fields), **form.map}
    shown = ",".join(names)[:80]
    for name in form.map.values():
        if name not in names:
            rule = f"has no column {name!r}{delimiter_hint(names, form.delimiter)}"
            raise BadInstruments(f"line 1, header {shown!r}: {rule}")
    names_instruments = ("isin",) if keys is None else ("isin", _SYMBOL, "code")
    if not any(called.get(field, field) in names for field in names_instruments):
        rule = "isin" if keys is None else f"isin, {_SYMBOL} or code"
        rule += _missing_rule(names, form) + (_VENUE_HINT if keys is None else "")
        raise BadInstruments(f"line 1, header {shown!r}: must have a column {rule}")
    places = {}
    for field in fields:
        name = called.get(field, field)
        name = name if name in names else INSTEAD.get(field, field)
        if names.count(name) > 1:
            raise BadInstruments(f"line 1, header {name!r}: must be there only once")
        if name in names:
            places[field] = names.index(name)
    return places


def _missing_rule(names: Sequence[str], form: FileForm) -> str:
    if hint := delimiter_hint(names, form.delimiter):
        return hint
    if looks_like_data(names):
        return ", or no header and: --form columns=isin,code,name"
    guess = guess_map(names, [field for field in FIELDS if field not in form.map])
    return f": {spell_map({**form.map, **guess})} perhaps" if guess else ""


def _read_instrument(
    line: int,
    cells: Sequence[str],
    places: dict[str, int],
    form: FileForm,
    keys: SymbolKeys | None,
) -> InstrumentEntry:
    clean = number_cleaner(form.thousands, form.decimal_mark)
    values = {field: cells[place] for field, place in places.items()}
    for field in NUMBERS.intersection(values):
        value = values[field]
        try:
            values[field] = clean(value.strip()) if clean else value
        except ValueError as error:
            raise BadInstruments(f"line {line}, {field} {value!r}: {error}") from None
    symbol = values.pop(_SYMBOL, "").strip() or values.get("code", "").strip()
    try:
        if keys is not None and symbol and not values.get("isin", "").strip():
            values["isin"] = keys.key_of(symbol)
        return read_entry(values)
    except (BadInstruments, BadSymbol) as error:
        has_marks = any("," in values.get(field, "") for field in NUMBERS)
        hint = ": --form thousands=, takes commas" if has_marks and not clean else ""
        raise BadInstruments(f"line {line}, {error}{hint}") from None


def _check_is_new(line: int, field: str, value: str, lines: dict[str, int]) -> None:
    if (first := lines.setdefault(value, line)) != line:
        rule = f"is on line {first} already"
        raise BadInstruments(f"line {line}, {field} {value!r}: {rule}")
