"""The newest status of each instrument, venue and kind. Pure."""

from collections.abc import Iterable, Set

from gateway.stream.statuses.newest_statuses import NewestStatuses
from ingest.statuses.status_entry import StatusEntry


class StatusBoard:
    """What is current, as of ``number`` of ``epoch``; None before the first look.

    ``newest`` has the newest ones, current or not.
    """

    def __init__(self) -> None:
        self.epoch: str | None = None
        self.number = 0
        self.newest = NewestStatuses()
        self._current: dict[str, dict[str, StatusEntry]] = {}

    @property
    def isins(self) -> Set[str]:
        """The instruments that have a status."""
        return self._current.keys()

    def replace(self, epoch: str, number: int, entries: Iterable[StatusEntry]) -> None:
        """Take over all that is current."""
        self._current = {}
        for entry in entries:
            self._keep(entry)
        self.epoch, self.number = epoch, number

    def put(self, entry: StatusEntry) -> None:
        """Take the next one in. One that came late does not become current."""
        self.number = max(self.number, entry.number)
        self.newest.put(entry)
        self._keep(entry)

    def _keep(self, entry: StatusEntry) -> None:
        slot = entry.status.slot
        of_isin = self._current.setdefault(entry.status.isin, {})
        if slot not in of_isin or of_isin[slot].order <= entry.order:
            of_isin[slot] = entry

    def pick(self, isins: Iterable[str]) -> list[StatusEntry]:
        """Return the current ones of some instruments, which may have none."""
        return [e for isin in isins for e in self._current.get(isin, {}).values()]
