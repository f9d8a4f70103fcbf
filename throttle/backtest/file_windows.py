"""Windows of trades by their own times, by the rules that recompute a log's. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from ingest.tradelog.contract import Ranges
from throttle.audit.compare import PublishedVersions
from throttle.audit.recompute import Entry, WindowRule, recompute
from throttle.audit.standing_again import NOTHING_TAKEN, StandingLog
from throttle.contract.cut import Cut
from throttle.contract.ledger import BatchEntry
from throttle.contract.snapshot import Row, WindowSnapshot

EPOCH = "file"
"""The epoch of windows that nobody has published."""


AHEAD_MS = 1
"""An entry's stamp is in whole milliseconds, so its trade may be ahead of it."""


class TimedEntries:
    """Entries in the order of time, in one partition; positions count from 0.

    An entry is there since the millisecond of its trade.
    """

    def __init__(self, payloads: Iterable[tuple[int, bytes]]) -> None:
        """Take times (us since 1970), none older than the one before, and payloads."""
        self.entries: Sequence[Entry] = [
            Entry(0, position, time_us // 1_000, payload)
            for position, (time_us, payload) in enumerate(payloads)
        ]

    def between(self, ranges: Ranges) -> Sequence[Entry]:
        """Return the entries of a range of positions (``LogEntries.between``)."""
        after, upto = ranges[0]
        return self.entries[max(after + 1, 0) : upto + 1]

    def batches(self, window_ms: int) -> Iterator[BatchEntry]:
        """Yield a batch for each window that has an entry, as a live job has them."""
        position = -1
        windows = groupby(self.entries, lambda entry: entry.append_ms // window_ms)
        for offset, (number, of_window) in enumerate(windows, 1):
            start = Cut(number * window_ms, (position,), (None,))
            position += sum(1 for _ in of_window)
            end = Cut((number + 1) * window_ms, (position,), (None,))
            yield BatchEntry(offset, offset, 0, start, end, 1, ())


def windows_of(log: TimedEntries, window_ms: int) -> Iterator[WindowSnapshot]:
    """Yield the windows in which something was traded or taken back, oldest first.

    Each as a live job would have published it at its end, had the trades come at their
    own times; without the days so far.
    """
    rule = WindowRule(window_ms, max_ahead_ms=AHEAD_MS)
    batches = list(log.batches(window_ms))
    shown, standing = PublishedVersions(), StandingLog(log.between, rule, batches)
    for batch in batches:
        start_ms, end_ms = batch.start.end_ms, batch.end.end_ms
        after, upto = batch.start.position(0), batch.end.position(0)
        made = recompute(log.between({0: (after, upto)}), start_ms, end_ms, rule)
        computed = made.windows.get(end_ms, {})
        taken = NOTHING_TAKEN
        if made.taking_back:
            taken = standing.taken_by(batch, made.taking_back, computed)
        rows: list[Row] = []
        for isin in sorted(computed.keys() | taken.rows.keys()):
            again = taken.rows.get(isin)
            row = computed[isin].row if again is None else again.row
            due, _ = shown.due(row, () if again is None else again.gone)
            if due is not None:
                rows.append(due)
        shown.learn(rows)
        published_us = end_ms * 1_000
        yield WindowSnapshot(EPOCH, batch.offset, end_ms, 1, published_us, tuple(rows))
