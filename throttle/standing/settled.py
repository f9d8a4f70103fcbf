"""Which of an instrument's trades stand, by the entries of the log. Pure.

An entry takes back the newest trade before it that has the number it names, and stands;
where the log holds that trade more than once, as after a feed's second attempt, all of
it. A trade that corrects another one takes that back, and stands itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from heapq import merge
from operator import attrgetter
from typing import NamedTuple

from ingest.series import series_of
from ingest.trade import Trade
from throttle.contract.row_sums import Amounts
from throttle.contract.trade_order import encode_version


class LoggedTrade(NamedTuple):
    """An entry of the log that is a trade, or takes one back; and its place."""

    append_ms: int
    partition: int
    position: int
    trade: Trade

    def under(self, key: str) -> "LoggedTrade":
        """Return it as a trade of a series of its instrument, by the series' key."""
        return self._replace(trade=replace(self.trade, isin=key))

    @property
    def version(self) -> bytes:
        """Its version (``trade_order.py``), as of an instrument never taken back."""
        return encode_version(*self.trade.version, self.position)

    @property
    def amounts(self) -> Amounts:
        """What it adds to volume, value and range."""
        trade = self.trade
        return _amounts(trade.price, trade.size, trade.updates)


# A day is asked for again and again, and has few prices and sizes.
_amounts = lru_cache(maxsize=16_384)(Amounts.of_trade)


class TakenBack(NamedTuple):
    """A trade that does not stand, and the entry that says so."""

    trade: LoggedTrade
    by: LoggedTrade


class Settled(NamedTuple):
    """What became of the entries of an instrument.

    ``unknown`` are those that name a trade that is not among the entries before them.
    """

    standing: list[LoggedTrade]
    taken_back: list[TakenBack]
    unknown: list[LoggedTrade]

    def under(self, key: str) -> "Settled":
        """Return the part of it that a key of the instrument has, a series' or its own.

        An entry that names no trade is the instrument's.
        """
        series = series_of(key)
        if series is None:
            return self
        taken_back = (t for t in self.taken_back if series.has(t.trade.trade.extra))
        return Settled(
            [one.under(key) for one in self.standing if series.has(one.trade.extra)],
            [one._replace(trade=one.trade.under(key)) for one in taken_back],
            [],
        )

    @property
    def newest(self) -> LoggedTrade | None:
        """The newest standing trade that counts for the last price, if there is one.

        Of two that are equal, the one of the greater partition.
        """
        of_last = (one for one in self.standing if one.trade.updates.last)
        place = attrgetter("version", "partition")
        return max(of_last, key=place, default=None)


def in_order(entries: Iterable[LoggedTrade]) -> Iterator[LoggedTrade]:
    """Yield entries as they stand in the log, those of several partitions by stamp.

    Within a partition the position decides alone: of a topic that its writers stamp, an
    entry may be stamped earlier than the one before it.
    """
    of_partition: defaultdict[int, list[LoggedTrade]] = defaultdict(list)
    for entry in sorted(entries, key=attrgetter("partition", "position")):
        of_partition[entry.partition].append(entry)
    return merge(*of_partition.values(), key=attrgetter("append_ms"))


def settle(entries: Iterable[LoggedTrade]) -> Settled:
    """Say what became of an instrument's entries, in any order."""
    standing: dict[int, list[LoggedTrade]] = {}
    taken_back: list[TakenBack] = []
    unknown: list[LoggedTrade] = []
    for entry in in_order(entries):
        trade = entry.trade
        if (number := trade.takes_back) is not None:
            known = standing.get(number, [])
            newest = max((one.trade.version for one in known), default=None)
            if newest is None:
                unknown.append(entry)
            else:
                gone = [one for one in known if one.trade.version == newest]
                taken_back += [TakenBack(one, entry) for one in gone]
                standing[number] = [one for one in known if one not in gone]
        if trade.is_trade:
            standing.setdefault(trade.seq, []).append(entry)
    return Settled(
        [one for of_number in standing.values() for one in of_number],
        taken_back,
        unknown,
    )
