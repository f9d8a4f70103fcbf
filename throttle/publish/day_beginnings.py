"""Days that begin within a batch, as columns. Pure.

At midnight every instrument begins one, and so it is in the first batch of a log. Those
of which it is plain which trade opens the day are here (``BatchTrades.openings``),
``day_rows.py`` has the others.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.day_so_far import STARTS, DaySoFar
from throttle.contract.group import decimal_text, units
from throttle.contract.trade_order import encode_version
from throttle.publish.day_columns import NO_DAYS, SCHEMA, are_small, day_texts
from throttle.publish.day_rows import DayBegins
from throttle.window.fold_rows import END
from throttle.window.group_rows import Place
from throttle.window.row_schema import FIRST


class Opening(NamedTuple):
    """A day that a row begins: which row it is, and what opens the day."""

    place: int
    key: str
    start: int
    first_time: int
    first: str
    open: str


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
    columns = (openings[name].to_pylist() for name in (END, "key", *FIRST))
    for place, (end_ms, isin, *version, price) in enumerate(zip(*columns, strict=True)):
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
