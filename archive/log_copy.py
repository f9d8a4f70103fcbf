"""Copies one log into an archive: what is stored of it, and what was read and waits."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from archive.contract.archive_gap import ArchiveGap, find_gaps
from archive.contract.logged_run import Logged
from archive.contract.segment import Coverage, Product, Segment, check_epoch
from archive.log_follower import LogFollower

L = TypeVar("L", bound=Logged)

MOST_PENDING_BYTES = 33_554_432
"""This much of a log is stored at a time at most, however far behind the archive is."""

MOST_PENDING = 1_000


class LogCopy(Generic[L]):
    """One log and its copy; ``pending`` was read and is not stored yet, oldest first.

    ``last`` is the segment that was stored last, None before the first.
    """

    def __init__(self, product: Product, follower: LogFollower[L]) -> None:
        self.product = product
        self.pending: list[L] = []
        self.last: Segment | None = None
        self._follower = follower
        self._pending_bytes = 0
        self._stored, self._seen = Coverage(), Coverage()
        # Which epoch came first, second, and so on.
        self._epochs: dict[str, int] = {}

    def begin(self, segments: Sequence[Segment]) -> None:
        """Go on from what is stored: the whole log is read for what is not."""
        self._stored, self._seen = Coverage(segments), Coverage(segments)
        self.last = max(segments, default=None)
        for segment in sorted(segments):
            self._order_of(segment)
        self._follower.begin()
        self.clear()

    def find_place(self) -> None:
        """Have what is older than the newest stored entry not be read.

        Raises redis.RedisError.
        """
        self._follower.begin_after(self._stored)

    def collect(self) -> bool:
        """Read on; return whether there may be more than was taken.

        Raises redis.RedisError, after which it may be called again, and ValueError.
        """
        for entry in self._follower.read_on(self._seen):
            check_epoch(entry.epoch)
            self.pending.append(entry)
            self._seen.add(entry.epoch, entry.offset, entry.offset)
            self._pending_bytes += entry.size_bytes
            if (
                self._pending_bytes >= MOST_PENDING_BYTES
                or len(self.pending) >= MOST_PENDING
            ):
                return True
        return False

    def clear(self) -> None:
        """Forget what waits: it is stored."""
        self.pending.clear()
        self._pending_bytes = 0

    def has(self, segment: Segment) -> bool:
        """Tell whether a segment is stored."""
        return self._stored.has(segment.epoch, segment.last)

    def took(self, segment: Segment) -> list[ArchiveGap]:
        """Note that a segment is stored; return what is missing before it."""
        before = [] if self.last is None else [self.last]
        self._stored.add(segment.epoch, segment.first, segment.last)
        newest = max(self._order_of(s) for s in (*before, segment))
        if newest != self._order_of(segment):
            # It was set aside, and is stored again.
            return []
        self.last = segment
        gaps = find_gaps([*before, segment], self.product)
        return [gap for gap in gaps if not (before and gap.kind == "before")]

    def _order_of(self, segment: Segment) -> tuple[int, int]:
        """Return what orders segments as the log has them, whatever clocks did."""
        number = self._epochs.setdefault(segment.epoch, len(self._epochs))
        return number, segment.first
