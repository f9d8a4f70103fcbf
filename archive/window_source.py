"""Reads the window log from where the archive has stored it, in order."""

from collections.abc import Iterator
from typing import Any

import redis

from archive.contract.logged_window import LoggedWindow
from archive.contract.segment import Coverage
from throttle.contract.redis_keys import Keys

PIECE = 8
"""Windows that are read at a time; one has a few hundred kilobytes at most."""

_FIELD = b"snapshot"


class WindowSource:
    """The window log of one namespace. Methods raise redis.RedisError, and ValueError
    for what no throttle has written.

    The last window that was read is its anchor: as long as that is in the log, what
    comes after it has not been read. Where it is not, because the log was trimmed or
    is another one, the whole log is looked through.
    """

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._anchor: tuple[str, int] | None = None

    def begin_after(self, coverage: Coverage) -> None:
        """Look for the newest of the windows that are stored."""
        self._anchor = None
        for epoch, offset in coverage.ends():
            is_newer = self._anchor is None or offset > self._anchor[1]
            if is_newer and self._is_there(epoch, offset):
                self._anchor = epoch, offset

    def read_on(self, coverage: Coverage) -> Iterator[LoggedWindow]:
        """Yield what is not stored and was not read, until there is no more for now."""
        start = "-"
        if self._anchor is not None:
            # With the anchor itself: one round trip says whether it is still there.
            epoch, offset = self._anchor
            entries = self._range(f"{offset}-0", PIECE + 1)
            if entries and _is_of(entries[0], epoch, offset):
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

    def window_ms(self) -> int:
        """Return the length of the published windows, 2,000 before the first."""
        value: Any = self._client.hget(self._keys.meta, "window_ms")
        return 2_000 if value is None else int(value)

    def _take(self, entries: Any, coverage: Coverage) -> Iterator[LoggedWindow]:
        for _, fields in entries:
            window = LoggedWindow.decode(fields.get(_FIELD, b""))
            # Before it is handed on: whoever takes it has it.
            self._anchor = window.epoch, window.offset
            if not coverage.has(window.epoch, window.offset):
                yield window

    def _range(self, start: str, count: int) -> Any:
        return self._client.xrange(self._keys.windows, start, "+", count=count)

    def _is_there(self, epoch: str, offset: int) -> bool:
        entries: Any = self._client.xrange(
            self._keys.windows, f"{offset}-0", f"{offset}-0"
        )
        return bool(entries) and _is_of(entries[0], epoch, offset)


def _is_of(entry: Any, epoch: str, offset: int) -> bool:
    window = LoggedWindow.decode(entry[1].get(_FIELD, b""))
    return (window.epoch, window.offset) == (epoch, offset)
