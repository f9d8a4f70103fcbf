"""Room for the bytes of requests, shared between those who send them. Pure.

Each sender may hold as many bytes as are free for all others (Choudhury and Hahne,
"Dynamic queue length thresholds for shared-memory packet switches", IEEE/ACM ToN 6(2),
1998, with a factor of one). So one greedy sender gets a half of the room, two get a
third each, and there is always room left for the next one.
"""

from collections import Counter
from collections.abc import Iterable

WAITING_BYTES = 67_108_864
"""Most bytes of requests that are read or wait for the log; then 429."""


class Full(RuntimeError):
    """There is no room for a request now; there may be in a moment."""


class Room:
    """Bytes of requests that are read or wait for the log, in all and by sender.

    A request counts for several senders: for its address, and for whoever holds its
    token. Not for use by several threads.
    """

    def __init__(self, most_bytes: int = WAITING_BYTES) -> None:
        self._most_bytes = most_bytes
        self._held: Counter[str] = Counter()
        self.bytes = 0
        """Bytes of all requests together."""

    def reserve(self, senders: Iterable[str], size: int) -> "Reservation":
        """Return the reservation of a request of ``size`` bytes. Raises Full.

        There is at least one sender. A request of any size gets in where no other is.
        """
        reservation = Reservation(self, tuple(dict.fromkeys(senders)))
        reservation.resize(size)
        return reservation

    def change(self, senders: tuple[str, ...], before: int, size: int) -> None:
        """Have a reservation of ``before`` bytes be of ``size``. Raises Full."""
        others = self.bytes - before
        free = self._most_bytes - others - size
        of_senders = max(self._held[sender] for sender in senders) - before
        if size > before and others and (free < 0 or of_senders > free):
            raise Full
        self.bytes += size - before
        for sender in senders:
            self._held[sender] += size - before
            if not self._held[sender]:
                del self._held[sender]


class Reservation:
    """What one request holds of the room."""

    def __init__(self, room: Room, senders: tuple[str, ...]) -> None:
        self._room = room
        self._senders = senders
        self._size = 0

    def resize(self, size: int) -> None:
        """Hold ``size`` bytes from now on. Raises Full, and holds what it held then."""
        self._room.change(self._senders, self._size, size)
        self._size = size

    def leave(self) -> None:
        """Give everything back; once is enough."""
        self.resize(0)
