"""What a batch's trades come to by instrument, and which of them came first. Pure."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.group import decimal_text, units
from throttle.contract.trade_order import encode_version
from throttle.window.fold_rows import END, OddAmounts
from throttle.window.row_schema import FIRST, FOLDED, records

_ONE = pa.scalar(1, pa.int64())
FIRST_TIME, FIRST_SEQ, FIRST_POSITION, FIRST_PRICE = FIRST


class FirstTrade(NamedTuple):
    """A trade that counts for the last price: its version, and its price as text."""

    version: bytes
    price: bytes

    @property
    def order(self) -> tuple[bytes, int]:
        """By which the first one is told; of one place in two partitions the price."""
        return self.version, units(self.price.decode())


class BatchTrades:
    """The trades of a batch, as far as the day so far asks about them."""

    def __init__(self, rows: pa.Table, odd: Sequence[OddAmounts] = ()) -> None:
        """Take rows of trades: ``end_ms``, ``key``, those of ``FOLDED`` and ``FIRST``.

        ``odd`` are those that are in no column.
        """
        # Without the payloads, which would be kept for as long.
        self._rows = rows.select([END, "key", *FOLDED, *FIRST])
        self._odd = pa.array({one.key for one in odd}, pa.string())

    def by_instrument(self) -> pa.Table:
        """Return a row for each instrument whose trades are all in columns.

        Its columns are ``key``, ``FOLDED``, and ``first_time``, null where no trade
        counts for the last price.
        """
        rows = self._in_columns()
        how = {**FOLDED, FIRST_TIME: "min"}
        groups = rows.group_by("key", use_threads=False).aggregate([*how.items()])
        columns = {name: groups[f"{name}_{fold}"] for name, fold in how.items()}
        return pa.table({"key": groups["key"], **columns}).combine_chunks()

    def openings(self, isins: Collection[str]) -> pa.Table:
        """Return the first rows of those instruments that they open a day for.

        Such a row is alone in its window, and has a trade that counts for the last
        price; those of later windows were traded later. Columns: ``end_ms``, ``key``,
        those of ``FOLDED`` and ``FIRST``.
        """
        if not isins:
            # As in nearly every batch: days go on.
            return self._rows.slice(0, 0)
        rows = self._in_columns()
        rows = rows.filter(pc.is_in(rows["key"], pa.array(isins, pa.string())))
        windows = rows.group_by("key", use_threads=False).aggregate([(END, "min")])
        at = pc.index_in(rows["key"], windows["key"].combine_chunks())
        is_first = pc.equal(rows[END], windows[f"{END}_min"].take(at))
        first, later = rows.filter(is_first), rows.filter(pc.invert(is_first))
        by_key = first.group_by("key", use_threads=False)
        several = by_key.aggregate([([], "count_all")])
        alone = several.filter(pc.equal(several["count_all"], _ONE))["key"]
        by_key = later.group_by("key", use_threads=False)
        soonest = by_key.aggregate([(FIRST_TIME, "min")])
        at = pc.index_in(first["key"], soonest["key"].combine_chunks())
        next_us = soonest[f"{FIRST_TIME}_min"].take(at)
        is_later = pc.greater(next_us, first[FIRST_TIME])
        opens = pc.and_(
            pc.is_in(first["key"], alone.combine_chunks()),
            pc.and_(
                pc.is_valid(first[FIRST_TIME]),
                pc.or_(pc.is_null(next_us), is_later.fill_null(False)),
            ),
        )
        return first.filter(opens).combine_chunks()

    def _in_columns(self) -> pa.Table:
        if not len(self._odd):
            return self._rows
        is_odd = pc.is_in(self._rows["key"], self._odd)
        return self._rows.filter(pc.invert(is_odd))

    def firsts(self, isins: Collection[str]) -> Mapping[tuple[int, str], FirstTrade]:
        """Return the first trades of some instruments, by window's end and ISIN."""
        wanted = pc.is_in(self._rows["key"], pa.array(isins, pa.string()))
        firsts: dict[tuple[int, str], FirstTrade] = {}
        rows = records(self._rows.filter(wanted), (END, "key", *FIRST))
        for end_ms, isin, *version, price in rows:
            if price is not None:
                trade = FirstTrade(encode_version(*version), price.encode())
                known = firsts.get((end_ms, isin), trade)
                firsts[end_ms, isin] = min(trade, known, key=lambda one: one.order)
        return {
            place: first._replace(price=decimal_text(units(first.price.decode())))
            for place, first in firsts.items()
        }


NO_TRADES = BatchTrades(
    pa.table(
        {
            **{name: pa.array([], pa.int64()) for name in (END, *FOLDED, *FIRST[:-1])},
            **{name: pa.array([], pa.string()) for name in ("key", FIRST_PRICE)},
        }
    )
)
