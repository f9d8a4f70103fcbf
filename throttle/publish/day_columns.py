"""Days of instruments as columns, and what a batch adds to them. Pure.

A day's sums need not fit into what a window's do (``trade_sums.py``): their whole part
may have 18 digits. Instruments with finer or larger numbers are left to
``day_rows.py``. Days that begin are in ``day_beginnings.py``.
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.day_so_far import DaySoFar
from throttle.contract.row_sums import Amounts, RowSums
from throttle.contract.trade_order import NO_VERSION, decode_version
from throttle.publish.day_rows import DayBegins
from throttle.window.row_schema import FOLDED
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
    for isin, start_ms, trades, *parts, _, first, price in zip(
        *(column.to_pylist() for column in days.columns), strict=True
    ):
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
        at = SCHEMA.get_field_index(name)
        days = days.set_column(at, SCHEMA.field(at), _FOLDS[how](*both))
    return days


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
