"""The newest figures of every group, and when they may be shown. Pure.

Several jobs may publish a window in parts, each with figures of its own part. They are
added up, and shown once the window is whole: with as many parts as
windows had lately, so that nobody has to know which jobs there are. With one job that
is every update at once.

Rejected: showing a part at once and the sum later, as with instruments. Half a market
would look like the whole, in every window. Rejected, too: adding up over windows for
clients that are slow. An instrument that traded in three windows would count three
times.
"""

import json
from collections import deque
from collections.abc import Iterable, Sequence
from copy import copy
from typing import NamedTuple

from throttle.contract.group import (
    CHANGE_PLACES,
    MEAN_PLACES,
    Group,
    GroupFigures,
    StoredGroup,
    units,
)
from throttle.contract.snapshot import WindowSnapshot

REMEMBERED = 3
"""A window is whole with as many parts as the most that one of so many before had.

A job that dies holds figures back for this long; one that is late by a window once does
not make what the others publish look like the whole.
"""


class WholeWindows:
    """Knows with which update the newest window is whole: at most one of a window."""

    def __init__(self) -> None:
        self._window: int | None = None
        self._parts = 0
        self._before: deque[int] = deque(maxlen=REMEMBERED)

    @property
    def wanted(self) -> int:
        """How many parts a window is taken to have."""
        return max(self._before, default=1)

    def is_whole_with(self, window: int) -> bool:
        """Take an update of a window in; say whether the newest is whole just now."""
        if self._window is None or window > self._window:
            if self._parts:
                self._before.append(self._parts)
            self._window, self._parts = window, 0
        elif window < self._window:
            return False
        self._parts += 1
        return self._parts == self.wanted


class _Figures(NamedTuple):
    """A group's figures, their window, and the offset of the update they came with."""

    group: Group
    window: int
    offset: int


class GroupBoard:
    """The newest figures of every group: those of the last window in which it traded.

    What is shown is of a whole window, and shown once. Figures that parts are added to
    later are shown anew with the next window, unless the group has newer ones by then.
    """

    def __init__(self) -> None:
        self._shown: dict[str, _Figures] = {}
        self._pending: dict[str, _Figures] = {}
        self._windows = WholeWindows()

    def __len__(self) -> int:
        return len(self._shown)

    @property
    def parts(self) -> int:
        """In how many updates a window comes, as far as it is known."""
        return self._windows.wanted

    def stored(self) -> list[StoredGroup]:
        """Return what is shown of every group, for another board to catch up."""
        return [StoredGroup(f.offset, f.group) for f in self._shown.values()]

    def copy(self) -> "GroupBoard":
        """Return a board that shows the same, and goes on doing so."""
        board = GroupBoard()
        board._shown, board._windows = dict(self._shown), copy(self._windows)
        return board

    def get(self, key: str) -> bytes | None:
        """Return a group's figures as JSON, None if it has none."""
        shown = self._shown.get(key)
        return None if shown is None else shown.group.body

    def keys(self) -> list[str]:
        """Return the keys of all groups that have figures, in order."""
        return sorted(self._shown)

    def newer(self, keys: Iterable[str], offset: int) -> list[str]:
        """Return the groups among ``keys`` that were shown after ``offset``.

        Where windows come in parts, also some that were shown a little before: on
        another gateway that may have been a little later.
        """
        after = offset - (self._windows.wanted - 1)
        return [
            key
            for key in keys
            if (shown := self._shown.get(key)) is not None and shown.offset > after
        ]

    def apply(self, snapshot: WindowSnapshot) -> tuple[dict[str, bytes], int]:
        """Take an update in; return what may be shown now, by the groups' keys.

        With it comes how many figures are left out: of a window older than the one
        that the group has figures of.
        """
        late = sum(not self._add(group, snapshot) for group in snapshot.groups)
        if not self._windows.is_whole_with(snapshot.window):
            return {}, late
        shown = {
            key: figures._replace(offset=snapshot.offset)
            for key, figures in self._pending.items()
        }
        self._pending.clear()
        self._shown.update(shown)
        return {key: figures.group.body for key, figures in shown.items()}, late

    def catch_up(
        self, stored: Iterable[StoredGroup], recent: Sequence[WindowSnapshot] = ()
    ) -> dict[str, bytes]:
        """Take in stored figures, all at least as new as those here; return the news.

        ``recent`` are the newest updates, oldest first, where windows come in parts:
        what is stored of a group is the last part alone.
        """
        before = {key: figures.group for key, figures in self._shown.items()}
        self._shown.clear()
        self._pending.clear()
        self._windows = WholeWindows()
        for offset, group in stored:
            self._shown[group.key] = _Figures(group, _read(group)[0], offset)
        for snapshot in recent:
            for group in snapshot.groups:
                self._shown.pop(group.key, None)
        for snapshot in recent:
            self.apply(snapshot)
        return {
            key: figures.group.body
            for key, figures in self._shown.items()
            if figures.group != before.get(key)
        }

    def _add(self, group: Group, snapshot: WindowSnapshot) -> bool:
        """Take a group's figures of a window in, unless there are newer ones."""
        newest = self._pending.get(group.key) or self._shown.get(group.key)
        window = snapshot.window
        if newest is not None and window < newest.window:
            return False
        if newest is not None and window == newest.window:
            group = add_parts(newest.group, group)
        self._pending[group.key] = _Figures(group, window, snapshot.offset)
        return True


def add_parts(one: Group, other: Group) -> Group:
    """Return the figures of two parts of one window together.

    Sums are exact. An instrument that is in both parts counts twice. The mean change is
    weighted by the instruments that have one, and as exact as the means of the parts.
    """
    window, sum_ = _read(one)
    _, more = _read(other)
    for name in GroupFigures.__slots__:
        setattr(sum_, name, getattr(sum_, name) + getattr(more, name))
    return sum_.encode(one.key, window)


def _read(group: Group) -> tuple[int, GroupFigures]:
    """Return the window that figures are of, and them. Raises ValueError."""
    try:
        return _parse(group.body)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"group {group.body!r}: {error!r}") from None


def _parse(text: bytes) -> tuple[int, GroupFigures]:
    # As text: volume and value may have more digits than a double keeps.
    body = json.loads(text, parse_float=str, parse_int=str)
    names = ("instruments", "advancing", "declining", "unchanged", "trades")
    counts = {name: int(body[name]) for name in names}
    amounts = {name: units(body[name]) for name in ("volume", "value")}
    figures = GroupFigures(**counts, **amounts)
    mean = body["mean_change_pct"]
    if mean is not None:
        finer = 10 ** (CHANGE_PLACES - MEAN_PLACES)
        figures.changes = int(mean.replace(".", "")) * finer * figures.priced
    return int(body["window"]), figures
