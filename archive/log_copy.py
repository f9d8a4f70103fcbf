"""Copies one log in Redis into an archive: what is stored of it, and what waits."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic

import redis

from archive.contract.archive_gap import ArchiveGap, find_gaps
from archive.contract.logged import L
from archive.contract.segment import Coverage, Product, Segment, check_epoch

MOST_PENDING_BYTES = 33_554_432
"""This much of a log is stored at a time at most, however far behind the archive is."""

MOST_PENDING = 1_000

PIECE = 8
"""Entries that are read at a time; one has a few hundred kilobytes at most."""


class LogCopy(Generic[L]):
    """One log, the stream ``key``, which need not be there, and its copy.

    ``pending`` was read and is not stored yet, oldest first. ``last`` is the segment
    that was stored last, None before the first.

    The last entry that was read is its anchor: as long as that is in the log, what
    comes after it has not been read. Where it is not, because the log was trimmed or
    is another one, the whole log is looked through.
    """

    def __init__(
        self,
        client: redis.Redis,
        key: str,
        product: Product,
        decode: Callable[[bytes, Mapping[bytes, bytes]], L],
    ) -> None:
        self._client = client
        self._key = key
        self.product = product
        self._decode = decode
        self._anchor: tuple[bytes, str, int] | None = None
        self.pending: list[L] = []
        self.last: Segment | None = None
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
        self._anchor = None
        self.clear()

    def find_place(self) -> None:
        """Have what is older than the newest stored entry not be read.

        Raises redis.RedisError and ValueError.
        """
        self._anchor = None
        end = "+"
        while any(self._stored.ends()):
            entries: Any = self._client.xrevrange(self._key, end, "-", count=PIECE)
            for entry_id, fields in entries:
                logged = self._decode(entry_id, fields)
                if self._stored.has(logged.epoch, logged.offset):
                    self._anchor = entry_id, logged.epoch, logged.offset
                    return
            if len(entries) < PIECE:
                return
            end = f"({entries[-1][0].decode()}"

    def collect(self) -> bool:
        """Read on; return whether there may be more than was taken.

        Raises redis.RedisError, after which it may be called again, and ValueError for
        what nobody of ours has written.
        """
        for entry in self._read_on():
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
        self.pending.clear()
        self._pending_bytes = 0

    def has(self, segment: Segment) -> bool:
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

    def _read_on(self) -> Iterator[L]:
        """Yield what is not stored and was not read, until there is no more for now."""
        start = "-"
        if self._anchor is not None:
            # With the anchor itself: one round trip says whether it is still there.
            entries = self._range(self._anchor[0].decode(), PIECE + 1)
            if entries and self._is_anchor(*entries[0]):
                yield from self._take(entries[1:])
                if len(entries) <= PIECE:
                    return
                start = f"({entries[-1][0].decode()}"
            else:
                self._anchor = None
        while True:
            entries = self._range(start, PIECE)
            yield from self._take(entries)
            if len(entries) < PIECE:
                return
            start = f"({entries[-1][0].decode()}"

    def _take(self, entries: Any) -> Iterator[L]:
        for entry_id, fields in entries:
            logged = self._decode(entry_id, fields)
            # Before it is handed on: whoever takes it has it.
            self._anchor = entry_id, logged.epoch, logged.offset
            if not self._seen.has(logged.epoch, logged.offset):
                yield logged

    def _range(self, start: str, count: int) -> Any:
        return self._client.xrange(self._key, start, "+", count=count)

    def _is_anchor(self, entry_id: bytes, fields: Mapping[bytes, bytes]) -> bool:
        logged = self._decode(entry_id, fields)
        return (entry_id, logged.epoch, logged.offset) == self._anchor
