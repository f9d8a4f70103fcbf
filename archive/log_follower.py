"""Reads a log in Redis from where the archive has stored it, in order."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import redis

from archive.contract.logged_run import Logged
from archive.contract.segment import Coverage

L = TypeVar("L", bound=Logged)

PIECE = 8
"""Entries that are read at a time; one has a few hundred kilobytes at most."""

Decode = Callable[[Mapping[bytes, bytes]], L]


class LogFollower(Generic[L]):
    """One log, the stream ``key``, which need not be there. Methods raise
    redis.RedisError, and ValueError for what nobody of ours has written.

    The last entry that was read is its anchor: as long as that is in the log, what
    comes after it has not been read. Where it is not, because the log was trimmed or
    is another one, the whole log is looked through.
    """

    def __init__(self, client: redis.Redis, key: str, decode: Decode[L]) -> None:
        self._client = client
        self._key = key
        self._decode = decode
        self._anchor: tuple[bytes, str, int] | None = None

    def begin(self) -> None:
        """Look through the whole log."""
        self._anchor = None

    def begin_after(self, coverage: Coverage) -> None:
        """Look for the newest of the entries that are stored."""
        self.begin()
        end = "+"
        while any(coverage.ends()):
            entries: Any = self._client.xrevrange(self._key, end, "-", count=PIECE)
            for entry_id, fields in entries:
                logged = self._decode(fields)
                if coverage.has(logged.epoch, logged.offset):
                    self._anchor = entry_id, logged.epoch, logged.offset
                    return
            if len(entries) < PIECE:
                return
            end = f"({entries[-1][0].decode()}"

    def read_on(self, coverage: Coverage) -> Iterator[L]:
        """Yield what is not stored and was not read, until there is no more for now."""
        start = "-"
        if self._anchor is not None:
            # With the anchor itself: one round trip says whether it is still there.
            entries = self._range(self._anchor[0].decode(), PIECE + 1)
            if entries and self._is_anchor(entries[0]):
                yield from self._take(entries[1:], coverage)
                if len(entries) <= PIECE:
                    return
                start = f"({entries[-1][0].decode()}"
            else:
                self._anchor = None
        while True:
            entries = self._range(start, PIECE)
            yield from self._take(entries, coverage)
            if len(entries) < PIECE:
                return
            start = f"({entries[-1][0].decode()}"

    def _take(self, entries: Any, coverage: Coverage) -> Iterator[L]:
        for entry_id, fields in entries:
            logged = self._decode(fields)
            # Before it is handed on: whoever takes it has it.
            self._anchor = entry_id, logged.epoch, logged.offset
            if not coverage.has(logged.epoch, logged.offset):
                yield logged

    def _range(self, start: str, count: int) -> Any:
        return self._client.xrange(self._key, start, "+", count=count)

    def _is_anchor(self, entry: Any) -> bool:
        logged = self._decode(entry[1])
        return (entry[0], logged.epoch, logged.offset) == self._anchor
