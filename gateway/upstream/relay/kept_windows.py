"""The newest windows as messages, for gateways that follow this one. Pure."""

from collections import deque
from collections.abc import Callable

from gateway.stream.board import Position
from throttle.contract.snapshot import WindowSnapshot

MOST_BYTES = 16_777_216
"""So much is kept: some 80 windows of 900 rows."""


class KeptWindows:
    """Each window has a serial number here, without a hole, whatever its epoch is.

    Nothing is kept before ``is_wanted``. ``on_news`` are called after each window.
    """

    def __init__(self) -> None:
        self.is_wanted = False
        self.on_news: set[Callable[[], None]] = set()
        self.next = 0
        self._kept: deque[tuple[str, int, bytes]] = deque()
        self._bytes = 0

    def follow(self, snapshot: WindowSnapshot) -> None:
        """Take the next window in."""
        if self.is_wanted:
            message = snapshot.encode()
            # A message of several windows is the answer to no question about one.
            offset = snapshot.offset if snapshot.windows == 1 else 0
            self._kept.append((snapshot.epoch, offset, message))
            self._bytes += len(message)
            self.next += 1
            while self._bytes > MOST_BYTES and len(self._kept) > 1:
                self._bytes -= len(self._kept.popleft()[-1])
        for tell in self.on_news:
            tell()

    def restart(self, position: Position) -> None:
        """Go on: what lies before ``position`` is followed by a hole, as it is told."""
        for tell in self.on_news:
            tell()

    def after(self, serial: int) -> tuple[int, list[bytes]]:
        """Return the messages from a number on, and how many of them are gone."""
        first = self.next - len(self._kept)
        kept = [message for *_, message in self._kept]
        return max(0, first - serial), kept[max(0, serial - first) :]

    def between(self, epoch: str, first: int, last: int) -> list[bytes] | None:
        """Return the windows with these offsets, None unless all are kept, one each."""
        kept = [
            (offset, message)
            for of, offset, message in self._kept
            if of == epoch and first <= offset <= last
        ]
        offsets = [offset for offset, _ in kept]
        return [m for _, m in kept] if offsets == [*range(first, last + 1)] else None
