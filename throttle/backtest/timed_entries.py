"""The trades of a file as a log that was appended at their own times. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from ingest.tradelog.contract import Ranges
from throttle.audit.recompute import Entry
from throttle.contract.cut import Cut
from throttle.contract.ledger import BatchEntry

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
