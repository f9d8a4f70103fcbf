"""The mailbox: what one client has not been sent yet. Pure.

It remembers which instruments and groups are pending, and the sums of their trades,
never their values: those are read from the board when a frame is built. So it is
bounded by what the client watches, and a client that reads slowly can only ever get the
newest.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from gateway.protocol.key_sets import NOTHING, KeySet
from gateway.stream.frames import Update
from gateway.stream.pending_rows import PendingRow, PendingRows


@dataclass(frozen=True, slots=True)
class SnapshotPiece:
    """Instruments and groups to be sent as a piece of a snapshot.

    ``offset`` is safe to resume from once the ``final`` piece arrived: whatever the
    client has not been sent yet changed after it.
    """

    names: tuple[str, ...]
    offset: int
    final: bool


@dataclass(frozen=True, slots=True)
class Merged:
    """What is to be sent as one update that stands for several windows.

    ``rows`` has the instruments, and groups with None.
    """

    rows: Mapping[str, PendingRow | None]
    windows: int


@dataclass(slots=True, eq=False)
class Mailbox:
    """Fills with ``offer`` and ``request_snapshot``, drains with ``take``.

    An instrument, or a group, is sent in a snapshot before it is in any update, and is
    at most once in what a ``take`` returns. Snapshots asked for before the first was
    finished are finished together. A client that keeps up gets the update it was
    offered, which it shares with all others; nothing is copied for it.
    ``resume_offset`` is the one up to which the client has everything, while the
    mailbox is not empty. ``rows`` are to be sent in an update, and have to be folded.
    """

    key_set: KeySet = NOTHING
    rows: PendingRows = field(default_factory=PendingRows)
    is_snapshot_due: bool = False
    resume_offset: int = 0
    _update: Update | None = None
    _windows: int = 0
    _unsent: dict[str, None] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Nothing is left to send, so the client has everything up to now."""
        return self._update is None and not (
            self._windows or self.rows.by_name or self.is_snapshot_due
        )

    @property
    def pending(self) -> int:
        """How many instruments and groups are left to send."""
        count = len(self._unsent) + len(self.rows.by_name)
        return count + (self._update.count(self.key_set) if self._update else 0)

    def watch(self, key_set: KeySet) -> None:
        """Change what the client watches; what it no longer watches is not sent."""
        self._spill()
        self.key_set = key_set
        if self._unsent or self.rows.by_name:
            watched = key_set.watched({*self._unsent, *self.rows.by_name})
            self._unsent = {name: None for name in self._unsent if name in watched}
            self.rows.retain(watched)

    def request_snapshot(self, names: Iterable[str], offset: int) -> None:
        """Have instruments and groups sent in a snapshot, empty if there are none.

        ``offset`` is that of the board now.
        """
        if self.is_empty:
            self.resume_offset = offset
        self._spill()
        self.is_snapshot_due = True
        for name in names:
            self._unsent[name] = None
            self.rows.by_name.pop(name, None)

    def restart(self, names: Iterable[str], offset: int) -> None:
        """Forget what is pending and have ``names`` sent: another epoch has begun."""
        self._update, self._windows, self._unsent = None, 0, {}
        self.rows.take()
        self.is_snapshot_due = False
        self.request_snapshot(names, offset)

    def offer(self, update: Update) -> None:
        """Take in an update already on the board.

        An instrument still to be sent in a snapshot is left to it: the snapshot will
        read the value of this update or a newer one.
        """
        if not self.is_empty:
            self._spill()
            self._add(update)
        elif update.count(self.key_set):
            self._update = update
            self.resume_offset = update.position.offset - update.windows

    def take(self, limit: int) -> SnapshotPiece | Update | Merged | None:
        """Return what to send next, None if there is nothing.

        Snapshots come before updates, in pieces of at most ``limit`` names.
        """
        if self.is_snapshot_due:
            names = tuple(islice(self._unsent, limit))
            for name in names:
                del self._unsent[name]
            self.is_snapshot_due = bool(self._unsent)
            return SnapshotPiece(names, self.resume_offset, not self._unsent)
        update, self._update = self._update, None
        if update is not None:
            return update
        merged, self._windows = Merged(self.rows.take(), self._windows), 0
        return merged if merged.rows else None

    def _spill(self) -> None:
        update, self._update = self._update, None
        if update is not None:
            self._add(update)

    def _add(self, update: Update) -> None:
        self._windows += update.windows
        names = update.names(self.key_set)
        if self._unsent:
            names = [name for name in names if name not in self._unsent]
        self.rows.add(update.shared_rows, names)
