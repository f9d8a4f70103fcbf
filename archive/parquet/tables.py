"""What is stored, as Arrow tables: windows, and rows with their instruments. Pure.

A price is there twice: as a decimal, which adds up exactly, and as the text that was
published. Never as a binary float. Sums of a row (``row_sums.py``) are decimals, of one
trade as of many; the digits of one that no decimal holds are there as text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from archive.contract.logged import LoggedWindow
from archive.contract.segment import Product
from ingest.instrument_table.known_instruments import Instruments
from throttle.contract.group import decimal_text
from throttle.contract.row_sums import Amounts

DECIMAL = pa.decimal128(38, 18)
"""Every price, size and previous close there can be: 18 digits before the point, 18
behind it. A sum may have more.
"""

AMOUNTS = ("volume", "value", "high", "low")
"""What a row says of all its trades, null if nobody knows it; high and low are null as
well if none of them counts for the range.
"""

MS, US = pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")

_MASTER = (
    ("code", pa.string()),
    ("name", pa.string()),
    ("market", pa.string()),
    ("sector", pa.string()),
    ("prev_close", DECIMAL),
    ("english_name", pa.string()),
    ("currency", pa.string()),
    ("listed_shares", pa.int64()),
    ("tick_table", pa.string()),
    ("status", pa.string()),
)
"""What a row has of its instrument; null is what nobody has said."""

MASTER_NAMES = tuple(name for name, _ in _MASTER)

WINDOWS = pa.schema(
    [
        ("epoch", pa.string()),
        ("offset", pa.int64()),
        ("window", MS),
        ("published", US),
        ("window_ms", pa.int32()),
        ("rows", pa.int32()),
        ("trades", pa.int64()),
        ("unknown_instruments", pa.int32()),
        ("instrument_version", pa.int64()),
    ]
)
"""One line a window."""

ROWS = pa.schema(
    [
        ("isin", pa.string()),
        ("window", MS),
        ("epoch", pa.string()),
        ("offset", pa.int64()),
        ("time", US),
        ("seq", pa.int64()),
        ("position", pa.int64()),
        ("price", DECIMAL),
        ("size", DECIMAL),
        ("price_text", pa.string()),
        ("size_text", pa.string()),
        ("trades", pa.int64()),
        *((name, DECIMAL) for name in AMOUNTS),
        ("volume_text", pa.string()),
        ("value_text", pa.string()),
        ("fields", pa.string()),
        ("listed", pa.bool_()),
        *_MASTER,
    ]
)
"""One line an instrument and window: its latest trade, the sums of all trades that it
stands for, and its master row of that moment.

``volume_text`` and ``value_text`` are null but for a sum that is no ``DECIMAL``.
``fields`` is a JSON object with the trade's further fields, null if there are none.
``listed`` is false for an instrument that the instrument table did not have.
"""

SORTED_BY = [("isin", "ascending"), ("window", "ascending"), ("offset", "ascending")]

_SUM = r"[0-9]+(?:\.[0-9]+)?"
_BEGIN = (
    r"^(?P<isin>[0-9A-Z]{12}(?:@[0-9A-Za-z_-]+)?) "
    r"[0-9]{4}(?P<time>[0-9]{16})(?P<seq>[0-9]{19})"
    r"(?P<position>[0-9]{19}) (?P<trades>[0-9]+)"
    f"(?:,(?P<volume>{_SUM}),(?P<value>{_SUM}),(?P<high>{_SUM})?,(?P<low>{_SUM})?)? "
)
_LINE = (
    _BEGIN + r'\{"isin":"[0-9A-Za-z@_-]*","time":[0-9]+,"seq":[0-9]+,'
    r'"price":(?P<price>[0-9]{1,18}(?:\.[0-9]{1,18})?),'
    r'"size":(?P<size>[0-9]{1,18}(?:\.[0-9]{1,18})?)(?:,(?P<fields>.*))?\}$'
)
# Any row, for its place; what the throttle has not written has no price.
_ANY_LINE = _BEGIN + r"\{(?P<fields>.*)\}$"
_FITS = r"^[0-9]{1,20}(?:\.[0-9]{1,18})?$"
_TEXTS = (
    *("isin", "time", "seq", "position", "trades", *AMOUNTS),
    *("price", "size", "fields"),
)


class BadWindow(ValueError):
    """A window of the log whose rows are not those of a throttle."""


@dataclass(frozen=True, slots=True)
class StoredTables:
    """Windows and their rows, ready to be stored.

    ``messages`` are the windows as they were published, in the order of their lines.
    ``unknown`` are the ISINs of rows without a master row, ``unknown_rows`` how many
    rows that are; those of series are not among them. ``delisted`` are those that the
    instrument table does not have any more with the last window.
    """

    product: ClassVar[Product] = "windows"

    windows: pa.Table
    rows: pa.Table
    unknown: tuple[str, ...]
    unknown_rows: int
    delisted: tuple[str, ...] = ()
    messages: tuple[bytes, ...] = ()

    @property
    def version(self) -> int:
        """That of the instrument table with which the last window was joined."""
        versions: list[int] = self.windows["instrument_version"][-1:].to_pylist()
        return versions[0]


def build_tables(
    windows: Sequence[LoggedWindow],
    versions: Sequence[int],
    table_at: Callable[[int], Instruments],
    window_ms: int,
    before: int | None = None,
) -> StoredTables:
    """Join windows with the instrument table, each at its version of it.

    ``versions[i]`` is that of the i-th window, ``before`` that of the window before the
    first, None if there is none. Raises BadWindow.
    """
    lines_of_each = [window.lines for window in windows]
    lines = [line for lines in lines_of_each for line in lines]
    counts = [len(lines) for lines in lines_of_each]
    places = pa.array([i for i, n in enumerate(counts) for _ in range(n)], pa.int64())
    parsed = _parse(lines, windows, places)
    of_windows = _window_columns(windows, versions, counts, window_ms)
    place = {n: of_windows[n].take(places) for n in ("window", "epoch", "offset")}
    columns = {**parsed, **place}
    rows, places = _join(columns, places, versions, table_at)
    # A series is in no table, and its trades are its instrument's: that is.
    is_series = pc.match_substring(rows["isin"], "@")
    own = pc.if_else(is_series, 0, rows["trades"])
    trades = _sums(own, places, len(windows))
    is_unknown = pc.and_(pc.invert(rows["listed"]), pc.invert(is_series))
    unknown = _sums(pc.cast(is_unknown, pa.int64()), places, len(windows))
    of_windows |= {"trades": trades, "unknown_instruments": unknown}
    missing = rows["isin"].filter(is_unknown).unique().to_pylist()
    return StoredTables(
        pa.table([of_windows[f.name] for f in WINDOWS], schema=WINDOWS),
        rows.sort_by(SORTED_BY),
        tuple(sorted(missing)),
        sum(unknown.to_pylist()),
        _delisted(before, versions[-1], table_at),
        tuple(window.message for window in windows),
    )


def _delisted(
    before: int | None, now: int, table_at: Callable[[int], Instruments]
) -> tuple[str, ...]:
    # Of two jobs one may join with an older table, which lists nothing anew.
    if before is None or now <= before:
        return ()
    listed = table_at(now)
    gone = (entry.isin for entry in table_at(before) if listed.get(entry.isin) is None)
    return tuple(gone)


def _parse(
    lines: Sequence[bytes], windows: Sequence[LoggedWindow], places: pa.Array
) -> dict[str, pa.Array]:
    text = pa.array(lines, pa.string())
    parsed = pc.extract_regex(text, _LINE)
    if parsed.null_count:
        parsed = _parse_others(text, parsed, windows, places)
    texts = {name: parsed.field(name) for name in _TEXTS}
    numbers = {n: pc.cast(texts[n], pa.int64()) for n in ("time", "seq", "position")}
    further = _none_if_empty(texts["fields"])
    return {
        "isin": texts["isin"],
        **numbers,
        "time": pc.cast(numbers["time"], US),
        "price": pc.cast(_none_if_empty(texts["price"]), DECIMAL),
        "size": pc.cast(_none_if_empty(texts["size"]), DECIMAL),
        "price_text": _none_if_empty(texts["price"]),
        "size_text": _none_if_empty(texts["size"]),
        "trades": pc.cast(texts["trades"], pa.int64()),
        **_amounts(texts),
        "fields": pc.binary_join_element_wise("{", further, "}", ""),
    }


def _amounts(texts: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """Return the columns of a row's sums; one of its own trade says that trade's."""
    price, size = (_none_if_empty(texts[name]) for name in ("price", "size"))
    is_own = pc.and_(pc.equal(texts["trades"], "1"), pc.equal(texts["volume"], ""))
    trades = zip(*(c.to_pylist() for c in (is_own, price, size)), strict=True)
    values = [
        decimal_text(Amounts.of_trade(p, s).value) if own and p else None
        for own, p, s in trades
    ]
    of_trade = size, pa.array(values, pa.string()), price, price
    columns, none = {}, pa.scalar(None, pa.string())
    for name, own in zip(AMOUNTS, of_trade, strict=True):
        digits = pc.if_else(is_own, own, _none_if_empty(texts[name]))
        fits = pc.match_substring_regex(digits, _FITS)
        columns[name] = pc.cast(pc.if_else(fits, digits, none), DECIMAL)
        columns[f"{name}_text"] = pc.if_else(fits, none, digits)
    return columns


def _parse_others(
    text: pa.Array,
    parsed: pa.StructArray,
    windows: Sequence[LoggedWindow],
    places: pa.Array,
) -> pa.StructArray:
    any_row = pc.extract_regex(text, _ANY_LINE)
    bad = pc.and_(pc.is_null(parsed), pc.is_null(any_row))
    if pc.any(bad).as_py():
        at = bad.index(pa.scalar(True)).as_py()
        raise BadWindow(
            f"offset {windows[places[at].as_py()].offset}: a row is none of a "
            f"throttle's: {text[at].as_py()[:120]!r}"
        )
    none = pa.array([""] * len(text))
    columns = []
    for name in _TEXTS:
        is_of_any = any_row.type.get_field_index(name) >= 0
        other = any_row.field(name) if is_of_any else none
        columns.append(pc.if_else(pc.is_null(parsed), other, parsed.field(name)))
    return pa.StructArray.from_arrays(columns, list(_TEXTS))


def _window_columns(
    windows: Sequence[LoggedWindow],
    versions: Sequence[int],
    counts: Sequence[int],
    window_ms: int,
) -> dict[str, pa.Array]:
    return {
        "epoch": pa.array([w.epoch for w in windows], pa.string()),
        "offset": pa.array([w.offset for w in windows], pa.int64()),
        "window": pa.array([w.window for w in windows], pa.int64()).cast(MS),
        "published": pa.array([w.published_us for w in windows], pa.int64()).cast(US),
        "window_ms": pa.array([window_ms] * len(windows), pa.int32()),
        "rows": pa.array(counts, pa.int32()),
        "instrument_version": pa.array(versions, pa.int64()),
    }


def _join(
    columns: dict[str, pa.Array],
    places: pa.Array,
    versions: Sequence[int],
    table_at: Callable[[int], Instruments],
) -> tuple[pa.Table, pa.Array]:
    """Give every row the master row of its window's version, null if there is none.

    Return them by version, each with the place of its window.
    """
    parts, of_parts = [], []
    table = pa.table(columns)
    of_rows = pa.array(versions, pa.int64()).take(places)
    for version in sorted(set(versions)):
        part, of_part = table, places
        if len(set(versions)) > 1:
            is_of_it = pc.equal(of_rows, version)
            part, of_part = table.filter(is_of_it), places.filter(is_of_it)
        of_parts.append(of_part)
        isins, master = master_columns(table_at(version))
        found = pc.index_in(part["isin"].combine_chunks(), value_set=isins)
        for name, column in master.items():
            part = part.append_column(name, column.take(found))
        part = part.append_column("listed", pc.is_valid(found))
        parts.append(part.select(ROWS.names).cast(ROWS))
    if not parts:
        return ROWS.empty_table(), places
    return pa.concat_tables(parts), pa.concat_arrays(of_parts)


@lru_cache(maxsize=4)
def master_columns(instruments: Instruments) -> tuple[pa.Array, dict[str, pa.Array]]:
    """Return the ISINs of a table, and what it says of each as columns."""
    entries = list(instruments)
    isins = pa.array([entry.isin for entry in entries], pa.string())
    columns: dict[str, pa.Array] = {}
    for name, kind in _MASTER:
        texts = pa.array([getattr(entry, name) for entry in entries], pa.string())
        columns[name] = pc.cast(texts, kind)
    return isins, columns


def _sums(values: Any, places: pa.Array, windows: int) -> pa.Array:
    """Add up the values of each window's rows."""
    if not len(places):
        return pa.array([0] * windows, pa.int64())
    table = pa.table({"place": places, "value": values})
    sums = table.group_by("place").aggregate([("value", "sum")])
    pairs = sums["place"].to_pylist(), sums["value_sum"].to_pylist()
    by_place = dict(zip(*pairs, strict=True))
    return pa.array([by_place.get(place, 0) for place in range(windows)], pa.int64())


def _none_if_empty(texts: pa.Array) -> pa.Array:
    none = pa.scalar(None, pa.string())
    return pc.if_else(pc.equal(texts, ""), none, texts)


def ends_within(windows: pa.Table, first_ms: int, last_ms: int) -> pa.Table:
    """Return the lines whose ``window`` is within the bounds, both included."""
    ends = pc.cast(windows["window"], pa.int64())
    is_within = pc.and_(pc.greater_equal(ends, first_ms), pc.less_equal(ends, last_ms))
    return windows.filter(is_within)


def exact_digits(rows: pa.Table, name: str) -> pa.ChunkedArray:
    """Return a column of decimals as text, without zeros at their end.

    A column ``<name>_text``, if there is one, has the digits as they were published, or
    those of a number that no decimal holds.
    """
    digits = pc.cast(rows[name], pa.string())
    if pc.any(pc.match_substring(digits, "E")).as_py():
        # Zero, and what is below a millionth, have an exponent.
        numbers = rows[name].to_pylist()
        digits = pa.chunked_array([[n if n is None else f"{n:f}" for n in numbers]])
    digits = pc.ascii_rtrim(pc.ascii_rtrim(digits, "0"), ".")
    text = f"{name}_text"
    return pc.coalesce(rows[text], digits) if text in rows.column_names else digits
