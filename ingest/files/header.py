"""A header of CSV: which column is which field, and what helps if one is missing. Pure.

What is guessed here stands in messages and in what ``inspect`` shows; no reader takes a
guess by itself.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from ingest.files.file_form import WORDS
from ingest.files.records import BadHeader

DELIMITERS = ",\t;|"
"""What separates the values of most files."""

ALIASES: Mapping[str, tuple[str, ...]] = {
    "isin": (
        *("isin_code", "isincode", "symbol", "sym", "ticker", "code", "instrument"),
        *("market", "item", "s", "sym_root", "표준코드", "종목코드", "단축코드"),
    ),
    "time": (
        *("timestamp", "ts", "ts_event", "sip_timestamp", "transact_time", "datetime"),
        *("trade_time", "date_time", "t", "time_m", "체결시각", "체결시간"),
    ),
    "seq": (
        *("sequence", "sequence_number", "seq_num", "tr_seqnum", "trade_id"),
        *("agg_trade_id", "id", "q", "i"),
    ),
    "price": ("px", "last", "last_price", "trade_price", "p", "체결가", "현재가"),
    "size": (
        *("qty", "quantity", "volume", "amount", "vol", "last_size", "trade_volume"),
        *("v", "s", "체결량", "거래량"),
    ),
    "conditions": (
        *("condition", "sale_condition", "sale_conditions", "sale_cond", "cond"),
        *("trade_conditions", "tr_scond", "c"),
    ),
    "tape": ("z",),
    "exchange": ("x", "ex", "exchange_id"),
    "code": ("short_code", "symbol", "ticker", "단축코드", "종목코드"),
    "name": (
        *("instrument_name", "한글 종목약명", "한글종목약명", "종목명", "한글 종목명"),
    ),
    "english_name": ("name_en", "영문 종목명", "영문종목명"),
    "market": ("exchange", "시장구분"),
    "prev_close": ("previous_close", "close", "종가", "전일종가", "기준가"),
    "sector": ("industry", "업종명", "업종"),
    "listed_shares": ("shares", "상장주식수"),
}
"""What fields of trades and of instruments are often called, the likeliest first."""

_VALUE = re.compile(
    r"[+-]?[0-9][0-9.,:TZ +/-]*(?:[eE][+-]?[0-9]+)?|[A-Z]{2}[A-Z0-9]{10}"
)
_SHOWN = 200


def fold_names(names: Sequence[str], fields: Sequence[str]) -> dict[str, str]:
    """Return the fields that are there, once, but in other capitals: as written."""
    folded: dict[str, str] = {}
    for field in fields:
        same = [name for name in names if name.casefold() == field]
        if len(same) == 1 and same[0] != field:
            folded[field] = same[0]
    return folded


def name_columns(
    columns: Sequence[str],
    names: Mapping[str, str],
    fields: Sequence[str],
    needed: Sequence[str],
    delimiter: str,
) -> list[str]:
    """Return the field that each column holds, nothing for one that is left out.

    ``names`` says what fields are called (``--map``); of others, ``fields`` are known
    in capitals, too. A column without a name is left out. Raises BadHeader, with the
    option that helps.
    """
    columns = [column.strip() for column in columns]
    unmapped = [field for field in fields if field not in names]
    names = {**fold_names(columns, unmapped), **names}
    for name in names.values():
        if name not in columns:
            raise BadHeader(
                f"its header has no column {name!r}, which map names: it has "
                f"{','.join(columns)[:_SHOWN]}{delimiter_hint(columns, delimiter)}"
            )
    by_name = {name: field for field, name in names.items()}
    # A column called like a field that another column is mapped to is left out.
    named = [by_name.get(c, "" if c in names else c) for c in columns]
    for field in needed:
        if field not in named:
            rule = delimiter_hint(columns, delimiter).removeprefix("; ")
            raise BadHeader(rule or _missing(field, columns, needed, names))
    name, count = Counter(filter(None, named)).most_common(1)[0]
    if count > 1:
        rule = "every column of its header needs a name of its own"
        raise BadHeader(f"{rule}: {name!r} is there twice")
    return named


def guess_delimiter(header: str) -> str:
    """Return what most likely separates the values of a line."""
    return max(DELIMITERS, key=lambda mark: (header.count(mark), mark == ","))


def guess_map(columns: Sequence[str], fields: Sequence[str]) -> dict[str, str]:
    """Guess what fields are called that no column is named for."""
    folded = {column.strip().casefold(): column.strip() for column in columns}
    guessed: dict[str, str] = {}
    for field in fields:
        if field in folded:
            continue
        free = (
            folded[alias]
            for alias in ALIASES.get(field, ())
            if alias in folded
            and folded[alias] not in guessed.values()
            and alias not in fields
        )
        if name := next(free, None):
            guessed[field] = name
    return guessed


def looks_like_data(columns: Sequence[str]) -> bool:
    """Tell whether a first line has values where a header has names."""
    values = [c.strip() for c in columns if c.strip()]
    return bool(values) and sum(map(bool, map(_VALUE.fullmatch, values))) * 3 >= len(
        values
    )


def spell_map(names: Mapping[str, str]) -> str:
    """Return the option that says so."""
    return "--map " + ",".join(f"{field}={name}" for field, name in names.items())


def spell_delimiter(delimiter: str) -> str:
    """Return the option that says so."""
    words = {character: word for word, character in WORDS.items() if word != "\\t"}
    return f"--form delimiter={words.get(delimiter) or repr(delimiter)}"


def delimiter_hint(columns: Sequence[str], delimiter: str) -> str:
    """Say what separates a header if it is something else; nothing if it is not."""
    header = delimiter.join(columns)
    other = guess_delimiter(header)
    if header.count(other) <= header.count(delimiter):
        return ""
    option = spell_delimiter(other)
    return f"; its header seems to be separated by {in_words(other)}: {option}"


def in_words(delimiter: str) -> str:
    """Return what separates values, for people."""
    return {"\t": "tabs", ",": "commas", ";": "semicolons"}.get(delimiter, delimiter)


def _missing(
    field: str, columns: Sequence[str], needed: Sequence[str], names: Mapping[str, str]
) -> str:
    if looks_like_data(columns):
        return (
            "its first line looks like data, not like a header: --form "
            "columns=isin,time,price,size,_ names the columns"
        )
    rule = f"its header has no column {field!r}; trades need {', '.join(needed)}"
    unmapped = [field for field in (*needed, "seq") if field not in names]
    guess = guess_map(columns, unmapped)
    hint = f": {spell_map(guess)} perhaps" if guess else ""
    return f"{rule}; it has {','.join(columns)[:_SHOWN]}{hint}"
