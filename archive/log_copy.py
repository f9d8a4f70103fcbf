"""A log on its way into an archive: what is stored of it, what was read, and waits."""

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

    def begin(self, segments: Sequence[Segment]) -> None:
        """Go on from what is stored."""
        self._stored, self._seen = Coverage(segments), Coverage(segments)
        self.last = max(segments, default=None)
        self.clear()

    def find_place(self) -> None:
        """Look for the newest entry that is stored. Raises redis.RedisError."""
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
        self.last = segment
        gaps = find_gaps([*before, segment], self.product)
        return [gap for gap in gaps if not (before and gap.kind == "before")]
