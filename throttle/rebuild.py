"""Windows computed again from the trade log, trade by trade.

A second statement of the rule in plain Python, sharing nothing with what Spark runs:
where both agree (``compare.py``), neither is likely to be wrong. Pure: entries and
cuts come in as arguments.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ingest.trade import InvalidTrade, Trade, check_not_ahead
from throttle.decoder import Decoder, decode
from throttle.ledger import BatchEntry
from throttle.snapshot import Row, encode_version

_Order = tuple[int, int, int, int]


class Entry(NamedTuple):
    """One entry of the trade log."""

    partition: int
    position: int
    append_ms: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Rule:
    """What decides a window's content besides its entries."""

    window_ms: int
    max_ahead_ms: int
    decoder: Decoder | None = None

    def window_of(self, append_ms: int, start_ms: int, end_ms: int) -> int:
        """Return the end of the window an entry between two cuts belongs to.

        An entry stamped before the first one is a straggler: it counts as appended
        then. One stamped past the second, by whoever wrote it, is in the last window.
        """
        counted_ms = max(append_ms, start_ms)
        if counted_ms >= end_ms:
            return end_ms
        return counted_ms - counted_ms % self.window_ms + self.window_ms

    def judge(self, entry: Entry, end_ms: int | None = None) -> Trade | InvalidTrade:
        """Return an entry's trade, or why it is refused.

        ``end_ms`` is the cut it stands before, if there is one yet.
        """
        append_ms = entry.append_ms
        if end_ms is not None:
            append_ms = min(append_ms, end_ms - 1)
        try:
            trade = decode(entry.payload, self.decoder)
            check_not_ahead(trade, append_ms * 1000, self.max_ahead_ms * 1000)
        except InvalidTrade as error:
            return error
        return trade


@dataclass(slots=True)
class Rebuilt:
    """A batch computed again.

    ``windows`` has the rows by window end and ISIN; a quiet window is not in it.
    ``read`` and ``refused`` count entries by partition, ``refused`` by reason too.
    """

    windows: dict[int, dict[str, Row]] = field(default_factory=dict)
    read: Counter[int] = field(default_factory=Counter)
    refused: dict[int, Counter[str]] = field(default_factory=dict)


def rebuild(
    entries: Iterable[Entry], start_ms: int, end_ms: int, rule: Rule
) -> Rebuilt:
    """Compute the windows of one batch from the entries between its two cuts."""
    made = Rebuilt()
    latest: dict[tuple[int, str], tuple[_Order, Trade]] = {}
    trades: Counter[tuple[int, str]] = Counter()
    for entry in entries:
        made.read[entry.partition] += 1
        trade = rule.judge(entry, end_ms)
        if isinstance(trade, InvalidTrade):
            reasons = made.refused.setdefault(entry.partition, Counter())
            reasons[trade.reason] += 1
            continue
        place = rule.window_of(entry.append_ms, start_ms, end_ms), trade.isin
        order = (trade.time_us, trade.seq, entry.position, entry.partition)
        trades[place] += 1
        if place not in latest or order > latest[place][0]:
            latest[place] = order, trade
    for (end, isin), (order, trade) in latest.items():
        version = encode_version(*order[:3])
        row = Row(isin, version, trades[end, isin], trade.to_row())
        made.windows.setdefault(end, {})[isin] = row
    return made


def holder(
    batches: Sequence[BatchEntry], partition: int, position: int
) -> BatchEntry | None:
    """Return the batch that read an entry of the log, None if it is not recorded."""
    for batch in batches:
        if batch.start.position(partition) < position <= batch.end.position(partition):
            return batch
    return None
