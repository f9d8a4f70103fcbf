"""What a batch takes back, worked out again from the log, trade by trade. Pure.

It shares with the job the rules of an entry, and nothing of how it looks for them: all
of the log up to the batch's end is gone through, forwards.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ingest.trade import Trade
from throttle.audit.recompute import ComputedRow, Entry, Order, WindowRule
from throttle.contract.ledger import BatchEntry
from throttle.contract.snapshot import Row
from throttle.contract.trade_order import (
    NO_VERSION,
    REVISION_CHARS,
    encode_version,
)

_NO_TRADES = b"0,0,0,,"


class RestatedRow(NamedTuple):
    """What an instrument's row of a batch's last window has to show.

    ``row`` has no revision yet. It ``is_own`` if its trade is of that window, and then
    of that ``partition``; ``gone`` are the versions, without revision, that do not
    stand, ``known`` those of all its trades that the log still holds.
    """

    row: Row
    is_own: bool
    partition: int
    gone: frozenset[bytes]
    known: frozenset[bytes]


class TakenAgain(NamedTuple):
    """What a batch takes back: the rows of the instruments that it restates.

    ``taken_back`` trades were found, ``unknown_target`` entries name one that was not.
    """

    rows: dict[str, RestatedRow]
    taken_back: int
    unknown_target: int


NOTHING_TAKEN = TakenAgain({}, 0, 0)


class _Standing:
    """An instrument's trades, as far as the log was gone through."""

    def __init__(self) -> None:
        self.trades: list[tuple[Order, Entry, Trade]] = []
        self.gone: set[bytes] = set()
        self.known: set[bytes] = set()
        self.taken_back = self.unknown_target = 0

    def take(self, entry: Entry, one: Trade, *, is_of_batch: bool) -> None:
        if one.takes_back is not None:
            named = [t for t in self.trades if t[2].seq == one.takes_back]
            newest = max((t[2].version for t in named), default=None)
            self.unknown_target += is_of_batch and not named
            for of_it in named:
                if of_it[2].version == newest:
                    self.trades.remove(of_it)
                    self.gone.add(encode_version(*of_it[0])[REVISION_CHARS:])
                    self.taken_back += is_of_batch
        if one.is_trade:
            order = *one.version, entry.position
            self.trades.append((order, entry, one))
            self.known.add(encode_version(*order)[REVISION_CHARS:])


def take_back_again(
    entries: Iterable[Entry],
    batch: BatchEntry,
    isins: Iterable[str],
    computed: Mapping[str, ComputedRow],
    rule: WindowRule,
) -> TakenAgain:
    """Return what a batch takes back of some instruments.

    ``entries`` are all of the log's up to its end, ``computed`` the rows of its last
    window by the trades in it.
    """
    wanted = frozenset(isins)
    marks = [*(isin.encode() for isin in wanted), b"\\u"]
    instruments: defaultdict[str, _Standing] = defaultdict(_Standing)
    if rule.decoder is None:
        entries = (e for e in entries if any(mark in e.payload for mark in marks))
    for entry in sorted(entries, key=lambda e: (e.append_ms, e.partition, e.position)):
        for one in rule.judge(entry):
            if isinstance(one, Trade) and one.isin in wanted:
                is_of_batch = _is_of(batch, entry)
                instruments[one.isin].take(entry, one, is_of_batch=is_of_batch)
    rows = {
        isin: _row_of(isin, of_it, batch, computed.get(isin), rule)
        for isin, of_it in instruments.items()
        if of_it.taken_back
    }
    every = instruments.values()
    unknown = sum(of_it.unknown_target for of_it in every)
    return TakenAgain(rows, sum(of_it.taken_back for of_it in every), unknown)


def _is_of(batch: BatchEntry, entry: Entry) -> bool:
    p = entry.partition
    return batch.start.position(p) < entry.position <= batch.end.position(p)


def _row_of(
    isin: str,
    standing: _Standing,
    batch: BatchEntry,
    made: ComputedRow | None,
    rule: WindowRule,
) -> RestatedRow:
    versions = frozenset(standing.gone), frozenset(standing.known)
    sums = _NO_TRADES if made is None else made.row.row_sums.encode()
    of_last = [one for one in standing.trades if one[2].updates.last]
    if not of_last:
        return RestatedRow(Row(isin, NO_VERSION, sums, b""), False, 0, *versions)
    order, entry, trade = max(of_last, key=lambda one: (one[0], one[1].partition))
    version = encode_version(*order)
    row = Row(isin, version, sums, trade.to_row())
    if made is not None and made.row.version == version:
        row = made.row
    cuts_ms = batch.start.end_ms, batch.end.end_ms
    window_ms = rule.window_of(entry.append_ms, *cuts_ms)
    is_own = _is_of(batch, entry) and window_ms == batch.end.end_ms
    return RestatedRow(row, is_own, entry.partition, *versions)
