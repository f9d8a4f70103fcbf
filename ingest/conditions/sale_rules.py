"""What trades count for by their sale conditions, in the order they come. Pure.

Whether some trades set the last price depends on those before. So for each instrument
it is remembered when and by which market it was set last. Where that cannot be known,
the trade does not set it.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import Any, NamedTuple

from ingest.conditions.rule_table import Last, RuleTable
from ingest.trade import Trade
from tickthrottle_client.updates_v1 import FIELD, Updates

MOST_INSTRUMENTS = 65_536
"""How many instruments are remembered; the one that came first is forgotten first."""

MOST_NAMES = 32
"""How many unknown conditions are told apart; the others are counted as ``other``."""

_NAME_CHARS = 40
_BUCKET_S = 900


class Sale(NamedTuple):
    """The sale conditions of a trade, as its source writes them."""

    codes: Any
    """A list, or text with blanks, commas or the like between them."""
    tape: Any = ""
    """Of a market whose codes differ from tape to tape."""
    market: Any = ""
    """Where it traded."""


class SaleRules:
    """Applies a table to the trades of one source."""

    def __init__(
        self,
        table: RuleTable,
        unknown: Counter[str] | None = None,
        *,
        is_whole: bool = False,
    ) -> None:
        """``unknown`` counts conditions that the table does not have, by their names.

        ``is_whole`` says that the source begins with the day, as a file does; of a live
        one the first trades of its first day may not be known.
        """
        self.table = table
        self._unknown = Counter[str]() if unknown is None else unknown
        # When the last price of an instrument was set, and by which market.
        self._set: dict[str, tuple[int, str]] = {}
        # The last day of which first trades may not be known.
        self._in_doubt: int | None = 0 if is_whole else None

    def apply(self, trade: Trade, sale: Sale) -> Trade:
        """Return a trade with what it counts for, the least of what it says itself."""
        rule = self.table.rule_of(sale.codes, sale.tape)
        if rule.unknown:
            self._count(rule.unknown)
        market = "" if sale.market is None else str(sale.market).strip()
        sets_last = self._may_set(trade, rule.last, market) and trade.updates.last
        if sets_last and self.table.needs_memory:
            self._remember(trade, market)
        if sets_last and rule.range and rule.volume:
            return trade
        updates = Updates(sets_last, rule.range, rule.volume).both(trade.updates)
        own = (trade.isin, trade.time_us, trade.seq, trade.price, trade.size)
        return Trade(*own, {**trade.extra, FIELD: updates.encode()})

    def _may_set(self, trade: Trade, last: Last, market: str) -> bool:
        if not self.table.needs_memory or last == Last.NO:
            return last == Last.YES
        today = _day(trade.time_us, self.table.time_zone)
        if self._in_doubt is None:
            self._in_doubt = today
        if last == Last.YES:
            return True
        setter = self._set.get(trade.isin)
        day = 0 if setter is None else _day(setter[0], self.table.time_zone)
        if setter is None or day < today:
            return today > self._in_doubt
        is_own = last == Last.OWN_MARKET and market == setter[1] != ""
        return is_own and day == today

    def _remember(self, trade: Trade, market: str) -> None:
        before = self._set.get(trade.isin)
        if before is None and len(self._set) >= MOST_INSTRUMENTS:
            time_us, _ = self._set.pop(next(iter(self._set)))
            day = _day(time_us, self.table.time_zone)
            self._in_doubt = max(day, self._in_doubt or 0)
        if before is None or before[0] <= trade.time_us:
            self._set[trade.isin] = (trade.time_us, market)

    def _count(self, codes: Iterable[str]) -> None:
        for code in codes:
            name = code[:_NAME_CHARS]
            has_room = name in self._unknown or len(self._unknown) < MOST_NAMES
            self._unknown[name if has_room else "other"] += 1


def _day(time_us: int, zone: tzinfo) -> int:
    return _day_of(time_us // 1_000_000 // _BUCKET_S, zone)


# Zones differ by quarters of an hour.
@lru_cache(maxsize=1_024)
def _day_of(bucket: int, zone: tzinfo) -> int:
    return datetime.fromtimestamp(bucket * _BUCKET_S, zone).toordinal()
