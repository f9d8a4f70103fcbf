"""What batches take back, worked out again from the log, trade by trade.

It shares with the job the rules of an entry, and nothing of how it looks for them: the
log is gone through forwards, once for all batches.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from heapq import heappop, heappush
from typing import NamedTuple

from ingest.trade import Trade
from ingest.tradelog.contract import Ranges
from throttle.audit.recompute import ComputedRow, Entry, Order, WindowRule
from throttle.contract.ledger import BatchEntry
from throttle.contract.snapshot import Row
from throttle.contract.trade_order import (
    NO_VERSION,
    REVISION_CHARS,
    encode_version,
)
from throttle.window.series_rows import SeriesRules

_NO_TRADES = b"0,0,0,,"
_MARKS = (b'"cancels"', b'"corrects"', b"\\u")
"""One of these is in every entry that takes a trade back, and in few others."""

_Newest = tuple[tuple[int, ...], Order, Entry, Trade]

_Placed = tuple[tuple[int, int, int], Entry, Trade]

_FEW = 20


class RestatedRow(NamedTuple):
    """What an instrument's row of a batch's last window has to show.

    ``row`` has no revision yet. It ``is_own`` if its trade is of that window, and then
    of that ``partition``; ``gone`` are the versions, without revision, that do not
    stand, ``known`` those of all its trades that the log held. Both are as of this
    batch until another one is asked about.
    """

    row: Row
    is_own: bool
    partition: int
    gone: Set[bytes]
    known: Set[bytes]


class TakenAgain(NamedTuple):
    """The rows that a batch restates; trades it found, entries that name no trade."""

    rows: dict[str, RestatedRow]
    taken_back: int
    unknown_target: int


NOTHING_TAKEN = TakenAgain({}, 0, 0)


def isins_taken_back(entries: Iterable[Entry], rule: WindowRule) -> set[str]:
    """Return the instruments of which entries take trades back."""
    marked = (
        entry
        for entry in entries
        if rule.decoder is not None or any(mark in entry.payload for mark in _MARKS)
    )
    return {
        one.isin
        for entry in marked
        for one in rule.judge(entry)
        if isinstance(one, Trade) and one.takes_back is not None
    }


class _Standing:
    """An instrument's entries, and which of its trades stand after the last one.

    ``taken_back`` counts by key: the instrument's, and those of its series.
    """

    def __init__(self, series: SeriesRules) -> None:
        self._series = series
        self._entries: list[_Placed] = []
        self._stamps_ms: dict[int, int] = {}
        self._begin()

    def _begin(self) -> None:
        self.gone: set[bytes] = set()
        self.known: set[bytes] = set()
        self.taken_back: Counter[str] = Counter()
        self.unknown_target = 0
        self._of_seq: defaultdict[int, list[tuple[Order, Trade]]] = defaultdict(list)
        self._newest: defaultdict[str, list[_Newest]] = defaultdict(list)

    def add(self, entries: list[tuple[Entry, Trade]], batch: BatchEntry) -> None:
        """Take in what has come since; what is counted is of the batch."""
        placed = sorted(map(self._placed, entries), key=_place)
        is_later = not self._entries or _place(self._entries[-1]) < _place(placed[0])
        self._entries += placed
        self.taken_back, self.unknown_target = Counter(), 0
        if not is_later:
            # A broker's clock has gone back.
            self._entries.sort(key=_place)
            self._begin()
            placed = self._entries
        for _, entry, one in placed:
            self._take(entry, one, is_of_batch=_is_of(batch, entry))

    def _placed(self, of_it: tuple[Entry, Trade]) -> _Placed:
        """Return an entry by its place: no entry of a partition is before another one
        of a lesser position, whatever its stamp says.
        """
        entry, one = of_it
        p = entry.partition
        stamp_ms = max(entry.append_ms, self._stamps_ms.get(p, 0))
        self._stamps_ms[p] = stamp_ms
        return (stamp_ms, p, entry.position), entry, one

    def _take(self, entry: Entry, one: Trade, *, is_of_batch: bool) -> None:
        if one.takes_back is not None:
            named = self._of_seq[one.takes_back]
            newest = max((order[:2] for order, _ in named), default=None)
            self.unknown_target += is_of_batch and not named
            for of_it in [n for n in named if n[0][:2] == newest]:
                named.remove(of_it)
                self.gone.add(_version(of_it[0]))
                if is_of_batch:
                    self.taken_back.update(self._series.keys_of(of_it[1]))
        if one.is_trade:
            order = *one.version, entry.position
            self._of_seq[one.seq].append((order, one))
            self.known.add(_version(order))
            if one.updates.last:
                # Of two that are equal, the one of the greater partition.
                first = (*(-n for n in order), -entry.partition)
                for key in self._series.keys_of(one):
                    under = replace(one, isin=key)
                    heappush(self._newest[key], (first, order, entry, under))

    def newest(self, key: str) -> tuple[Order, Entry, Trade] | None:
        """Return the newest one that stands and counts for a key's last price."""
        newest = self._newest[key]
        while newest and _version(newest[0][1]) in self.gone:
            heappop(newest)
        return newest[0][1:] if newest else None


class StandingLog:
    """Goes through the log as far as the batch that it is asked about.

    Batches are asked about in their order. Instruments are followed as soon as one of
    their trades is taken back anywhere in the log.
    """

    def __init__(
        self,
        between: Callable[[Ranges], Iterable[Entry]],
        rule: WindowRule,
        batches: Sequence[BatchEntry],
    ) -> None:
        """Take ``LogEntries.between``, and all batches that may be asked about."""
        self._between = between
        self._rule = rule
        self._batches = batches
        self._followed: dict[str, _Standing] | None = None
        self._upto: dict[int, int] = {}

    def taken_by(
        self,
        batch: BatchEntry,
        isins: Iterable[str],
        computed: Mapping[str, ComputedRow],
    ) -> TakenAgain:
        """Return what a batch takes back; ``computed`` are its last window's rows."""
        end = {p: batch.end.position(p) for p in batch.end.partitions}
        series, first = self._rule.series, self._rule.first_of
        if self._followed is None:
            self._followed = {isin: _Standing(series) for isin in self._taken_at_all()}
        if new := set(isins) - self._followed.keys():
            self._followed |= {isin: _Standing(series) for isin in new}
            before = {p: (first(p), upto) for p, upto in self._upto.items()}
            self._add(before, new, batch)
        followed = self._followed
        after = {p: (self._upto.get(p, first(p)), upto) for p, upto in end.items()}
        self._upto |= end
        found = self._add(after, followed.keys(), batch)
        of_batch = {isin: followed[isin] for isin in found & set(isins)}
        rows = {
            key: _row_of(key, of_it, batch, computed.get(key), self._rule)
            for of_it in of_batch.values()
            for key in of_it.taken_back
        }
        taken_back = sum(of_it.taken_back[isin] for isin, of_it in of_batch.items())
        unknown = sum(of_it.unknown_target for of_it in of_batch.values())
        return TakenAgain(rows, taken_back, unknown)

    def _taken_at_all(self) -> set[str]:
        """Return the instruments of which trades are taken back in any batch."""
        ends = (batch.end for batch in self._batches)
        places = ((p, end.position(p)) for end in ends for p in end.partitions)
        # The newest one comes last.
        whole = {p: (self._rule.first_of(p), upto) for p, upto in sorted(places)}
        return isins_taken_back(self._between(whole), self._rule)

    def _add(self, ranges: Ranges, isins: Set[str], batch: BatchEntry) -> set[str]:
        """Take in what some ranges hold of instruments; return those that have any."""
        found: defaultdict[str, list[tuple[Entry, Trade]]] = defaultdict(list)
        # Any other entry has none of these bytes; more names take longer to look for.
        is_sought = self._rule.decoder is None and len(isins) <= _FEW
        marks = [*(isin.encode() for isin in isins), b"\\u"]
        for entry in self._between(ranges):
            if is_sought and not any(mark in entry.payload for mark in marks):
                continue
            for one in self._rule.judge(entry):
                if isinstance(one, Trade) and one.isin in isins:
                    found[one.isin].append((entry, one))
        assert self._followed is not None
        for isin, entries in found.items():
            entries.sort(key=lambda of_it: of_it[0][:2])
            self._followed[isin].add(entries, batch)
        return set(found)


def _place(placed: _Placed) -> tuple[int, int, int]:
    return placed[0]


def _version(order: Order) -> bytes:
    return encode_version(*order)[REVISION_CHARS:]


def _is_of(batch: BatchEntry, entry: Entry) -> bool:
    p = entry.partition
    return batch.start.position(p) < entry.position <= batch.end.position(p)


def _row_of(
    key: str,
    standing: _Standing,
    batch: BatchEntry,
    made: ComputedRow | None,
    rule: WindowRule,
) -> RestatedRow:
    versions = standing.gone, standing.known
    sums = _NO_TRADES if made is None else made.row.row_sums.encode()
    newest = standing.newest(key)
    if newest is None:
        return RestatedRow(Row(key, NO_VERSION, sums, b""), False, 0, *versions)
    order, entry, trade = newest
    version = encode_version(*order)
    row = Row(key, version, sums, trade.to_row())
    if made is not None and made.row.version == version:
        row = made.row
    cuts_ms = batch.start.end_ms, batch.end.end_ms
    window_ms = rule.window_of(entry.append_ms, *cuts_ms)
    is_own = _is_of(batch, entry) and window_ms == batch.end.end_ms
    return RestatedRow(row, is_own, entry.partition, *versions)
