"""Days of instruments as columns, and what a batch adds to them. Pure.

A day's sums need not fit into what a window's do (``trade_sums.py``): their whole part
may have 18 digits. Instruments with finer or larger numbers are left to
``day_rows.py``. So are those days that begin of which it is not plain which trade opens
them (``BatchTrades.openings``). At midnight every instrument begins one, and so it is
in the first batch of a log.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.day_so_far import STARTS, DaySoFar
from throttle.contract.group import decimal_text, units
from throttle.contract.row_sums import Amounts, RowSums
from throttle.contract.trade_order import NO_VERSION, decode_version, encode_version
from throttle.publish.day_rows import DayBegins
from throttle.window.fold_rows import END
from throttle.window.group_rows import Place
from throttle.window.row_schema import FIRST, FOLDED, records, with_columns
from throttle.window.trade_sums import VALUE, VOLUME, split, texts, to_amounts
from throttle.window.traded import FIRST_TIME

_MOST = pa.scalar(10**18, pa.int64())

SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("start", pa.int64()),
        *((name, pa.int64()) for name in FOLDED),
        (FIRST_TIME, pa.int64()),
        ("first", pa.string()),
        ("open", pa.string()),
    ]
)

NO_DAYS = SCHEMA.empty_table()
"""Days as columns: ``key`` (the ISIN), when they ``start``, ``FOLDED``, when the trade
was that opened the day, its version (``first``) and its price (``open``).
"""


class Opening(NamedTuple):
    """A day that a row begins: which row it is, and what opens the day."""

    place: int
    key: str
    start: int
    first_time: int
    first: str
    open: str


def to_columns(days: Mapping[str, DaySoFar]) -> pa.Table:
    """Return days as columns; who does not fit is left out."""
    rows = []
    for isin, day in days.items():
        parts = None if day.sums.amounts is None else _parts(day.sums.amounts)
        if parts is not None:
            time_us = decode_version(day.first)[0] if day.first else None
            first, price = day.first or NO_VERSION, day.open
            rows.append(
                (
                    *(isin, day.start_ms, day.sums.trades, *parts),
                    *(time_us, first.decode(), price.decode()),
                )
            )
    columns = zip(*rows, strict=True) if rows else ((),) * len(SCHEMA)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.table(arrays, SCHEMA)


def from_columns(days: pa.Table) -> dict[str, DaySoFar]:
    """Return what ``to_columns`` was given."""
    rows = {}
    columns = records(days, SCHEMA.names)
    for isin, start_ms, trades, *parts, _, first, price in columns:
        sums = RowSums(trades, to_amounts(parts))
        version = b"" if first == NO_VERSION.decode() else first.encode()
        rows[isin] = DaySoFar(start_ms, sums, version, price.encode())
    return rows


def after(
    days: pa.Table, traded: pa.Table, begins: DayBegins, last_end_ms: int
) -> pa.Table:
    """Return the days of those instruments that go on, with what was traded.

    ``traded`` is ``BatchTrades.by_instrument``; the newest window ends at
    ``last_end_ms``.
    """
    places = pc.index_in(traded["key"], value_set=days["key"].combine_chunks())
    has_day = pc.is_valid(places)
    traded, days = traded.filter(has_day), days.take(places.filter(has_day))
    goes_on = pc.and_(
        pc.greater_equal(days["start"], begins.of_all(traded["key"], last_end_ms)),
        _keeps_open(days[FIRST_TIME], traded[FIRST_TIME]),
    )
    for table in (days, traded):
        goes_on = pc.and_(goes_on, are_small(table))
    traded, days = traded.filter(goes_on), days.filter(goes_on)
    for name, how in FOLDED.items():
        both = days[name].combine_chunks(), traded[name].combine_chunks()
        days = with_columns(days, {name: _FOLDS[how](*both)})
    return days


def beginning(
    traded: pa.Table,
    openings: pa.Table,
    known: Mapping[str, DaySoFar | None],
    begins: DayBegins,
    last_end_ms: int,
) -> tuple[pa.Table, dict[Place, bytes]]:
    """Return the days that begin with a row of ``openings``, as of the batch's end.

    With them comes the text of each such row. ``traded`` is
    ``BatchTrades.by_instrument``, ``openings`` as ``BatchTrades.openings`` has them,
    ``known`` are their instruments' days before, and the newest window ends at
    ``last_end_ms``. Days that do not fit into columns are left out.
    """
    opened = list(_opened(openings, known, begins, last_end_ms))
    if not opened:
        return NO_DAYS, {}
    of_row = openings.take(pa.array([one.place for one in opened], pa.int64()))
    of_all = traded.take(pc.index_in(of_row["key"], traded["key"].combine_chunks()))
    fits = are_small(of_all).combine_chunks()
    days, as_of_row = (_days(opened, sums).filter(fits) for sums in (of_all, of_row))
    texts = day_texts(as_of_row).cast(pa.binary()).to_pylist()
    places = zip(
        of_row[END].filter(fits).to_pylist(), days["key"].to_pylist(), strict=True
    )
    return days, {
        place: STARTS + text for place, text in zip(places, texts, strict=True)
    }


def _opened(
    openings: pa.Table,
    known: Mapping[str, DaySoFar | None],
    begins: DayBegins,
    last_end_ms: int,
) -> Iterator[Opening]:
    rows = records(openings, (END, "key", *FIRST))
    for place, (end_ms, isin, *version, price) in enumerate(rows):
        start_ms, before = begins.of(isin, last_end_ms), known[isin]
        is_new = before is None or before.start_ms < start_ms
        if is_new and begins.of(isin, end_ms) == start_ms:
            first = encode_version(*version).decode()
            opened = decimal_text(units(price)).decode()
            yield Opening(place, isin, start_ms, version[0], first, opened)


def _days(opened: list[Opening], sums: pa.Table) -> pa.Table:
    said = dict(zip(Opening._fields, zip(*opened, strict=True), strict=True))
    columns = [
        pa.array(said[field.name], field.type)
        if field.name in said
        else sums[field.name]
        for field in SCHEMA
    ]
    return pa.table(columns, SCHEMA)


def are_small(sums: pa.Table) -> pa.ChunkedArray:
    """Tell which sums are small enough for a day's columns."""
    volume, value = (pc.less(sums[name], _MOST) for name in (VOLUME[0], VALUE[0]))
    return pc.and_(volume, value)


_FOLDS = {
    "sum": pc.add,
    "max": pc.max_element_wise,
    "min": pc.min_element_wise,
}


def _keeps_open(opened: pa.ChunkedArray, traded: pa.ChunkedArray) -> pa.ChunkedArray:
    """Tell where no trade of these times may come before the day's first one."""
    later = pc.greater(traded, opened).fill_null(False)
    return pc.or_(pc.is_null(traded), later)


def day_texts(days: pa.Table) -> pa.Array:
    """Return what rows say of days (``day_so_far.py``)."""
    columns = {name: days[name] for name in FOLDED}
    numbers = (days["start"], columns.pop("trades"))
    shown = (column.cast(pa.string()) for column in numbers)
    return pc.binary_join_element_wise(*shown, texts(columns), days["open"], ",")


def _parts(amounts: Amounts) -> tuple[int | None, ...] | None:
    parts = split(amounts)
    if parts is None or any(n is not None and n >= _MOST.as_py() for n in parts):
        return None
    return parts
