"""The newest statuses of all instruments, for clients that come back. Pure."""

from collections import deque
from collections.abc import Iterable, Sequence

from ingest.statuses.status_entry import StatusEntry

MOST_REMEMBERED = 1_000
"""So many of the newest statuses a client may ask for that comes back."""


class NewestStatuses:
    """Statuses without a hole from the number ``first`` on, oldest first."""

    def __init__(self) -> None:
        self.first = 1
        self._entries: deque[StatusEntry] = deque()

    def replace(self, first: int, entries: Iterable[StatusEntry]) -> None:
        """Take over those from ``first`` on."""
        self.first = first
        self._entries.clear()
        for entry in entries:
            self.put(entry)

    def put(self, entry: StatusEntry) -> None:
        """Take the next one in."""
        self._entries.append(entry)
        if len(self._entries) > MOST_REMEMBERED:
            self.first = self._entries.popleft().number + 1

    def after(self, number: int) -> tuple[int, Sequence[StatusEntry]]:
        """Return those above a number, and how many above it are not there any more."""
        lost = max(0, self.first - 1 - number)
        return lost, [entry for entry in self._entries if entry.number > number]
