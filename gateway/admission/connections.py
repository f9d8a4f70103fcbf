"""Which connection has to go when there are too many that are no streams. Pure."""

from collections.abc import Hashable
from typing import Generic, TypeVar

from gateway.admission.shared_figures import Tally

C = TypeVar("C", bound=Hashable)


class PlainConnections(Generic[C]):
    """The connections that are no streams: waiting for a request, or being answered.

    There are ``most`` of them, ``most_per_address`` from one address, and ``room``
    connections in all with the streams. Whoever comes when it is full gets in, and the
    one goes that has waited longest for a request: a stranger who holds connections
    cannot keep others out. Only where all are being answered, or the others belong to
    other workers, the newest goes itself.
    """

    def __init__(
        self, most: int, most_per_address: int, room: int, tally: Tally | None = None
    ) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._room = room
        self._addresses: dict[C, str] = {}
        self._tally = tally or Tally()
        # Those that wait for a request, in order of how long.
        self._waiting: dict[C, None] = {}
        self._waiting_at: dict[str, dict[C, None]] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def enter(
        self, connection: C, address: str, open_count: int, spare: int = 0
    ) -> C | None:
        """Count a connection in; return whom to cut for it, which may be itself.

        ``open_count`` is the number of all connections without this one. ``spare`` is
        how many more than usual there may be.
        """
        if self._tally.of(address) >= self._most_per_address + spare:
            leaver = next(iter(self._waiting_at.get(address, ())), connection)
        elif (
            self._tally.total >= self._most + spare or open_count >= self._room + spare
        ):
            leaver = next(iter(self._waiting), connection)
        else:
            self.wait(connection, address)
            return None
        if leaver is not connection:
            self.leave(leaver)
            self.wait(connection, address)
        return leaver

    def wait(self, connection: C, address: str) -> None:
        """Note that a connection waits for a request; count it in if it is not."""
        if connection not in self._addresses:
            self._addresses[connection] = address
            self._tally.add(address, 1)
        if connection not in self._waiting:
            self._waiting[connection] = None
            self._waiting_at.setdefault(address, {})[connection] = None

    def answer(self, connection: C) -> None:
        """Note that a connection's request is being answered: it does not go."""
        if connection in self._waiting:
            del self._waiting[connection]
            address = self._addresses[connection]
            del self._waiting_at[address][connection]
            if not self._waiting_at[address]:
                del self._waiting_at[address]

    def put_off(self, connection: C) -> None:
        """Note that a connection's answer has to wait: it may go like one without."""
        if connection in self._addresses:
            self.wait(connection, self._addresses[connection])

    def leave(self, connection: C) -> None:
        """Count a connection out that has ended or become a stream, if it is in."""
        if connection in self._addresses:
            self.answer(connection)
            address = self._addresses.pop(connection)
            self._tally.add(address, -1)
