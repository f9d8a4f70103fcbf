"""Which fields rows have by position, and the sets of them that clients take. Pure.

What the feed's trades have beside the fields of every item are *further fields*. Those
of well-formed names that were seen have positions, too; the rest is in ``further``.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from gateway.positions.row_values import further_names

FIRST = ("price", "size", "age", "time", "seq", "trades")
COMMON = ("side", "venue", "session")
"""Further fields that may be asked for before any trade had them."""

LAST = (
    *("volume", "value", "high", "low", "revision"),
    *("updates", "corrects", "day", "further"),
)
EVERY = "*"
"""All fields but ``time``, which ``age`` says in fewer bytes."""

MOST_SETS = 16
"""So many sets of fields are in use at a time, beside those of ``EVERY``."""

MOST_FURTHER = 16
"""So many further fields have positions."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}", re.ASCII)


class UnknownField(ValueError):
    """A field that no row has by position."""


class TooManySets(ValueError):
    """Another set of fields is one too many."""


@dataclass(slots=True, eq=False)
class FieldSet:
    """Fields in the order in which a row has their values; it never changes.

    ``users`` is how many clients are sent rows of it.
    """

    names: tuple[str, ...]
    is_every: bool
    users: int = 0
    keys: tuple[bytes, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Have the names as rows have them."""
        self.keys = tuple(name.encode() for name in self.names)


class FieldSets:
    """The sets of fields in use: ``MOST_SETS`` at most, beside those of ``EVERY``.

    What ``EVERY`` stands for grows with the further fields that are seen, so there are
    few of those.
    """

    def __init__(self) -> None:
        self._further: dict[str, None] = {}
        self._learned: object = None
        self._sets: dict[tuple[str, ...], FieldSet] = {}

    def learn(self, bodies: Callable[[], Iterable[bytes]], as_of: object) -> None:
        """Give positions to the further fields of some rows, while there is room.

        Once for each ``as_of``: nothing is read again while that is the same.
        """
        if as_of == self._learned:
            return
        self._learned = as_of
        for body in bodies():
            for name in further_names(body):
                if len(self._further) >= MOST_FURTHER:
                    return
                if _NAME.fullmatch(name) and name not in (*FIRST, *LAST):
                    self._further[name] = None

    def take(self, wanted: Sequence[str]) -> FieldSet:
        """Return the set of some fields, or of ``EVERY``, until it is released.

        Its order is ours: what rows seldom have comes last. Raises UnknownField or
        TooManySets.
        """
        is_every = EVERY in wanted
        names = self._every() if is_every else self._in_order(wanted)
        fields = self._sets.get(names)
        if fields is None:
            if not is_every:
                self._check_room()
            fields = self._sets[names] = FieldSet(names, is_every)
        fields.users += 1
        return fields

    def release(self, fields: FieldSet) -> None:
        """Give back what ``take`` has returned."""
        fields.users -= 1
        if not fields.users:
            del self._sets[fields.names]

    def _every(self) -> tuple[str, ...]:
        return tuple(n for n in (*FIRST, *self._further, *LAST) if n != "time")

    def _in_order(self, wanted: Sequence[str]) -> tuple[str, ...]:
        known = dict.fromkeys((*FIRST, *self._further, *COMMON, *LAST))
        for name in wanted:
            if name not in known:
                names = ", ".join((*known, EVERY))
                raise UnknownField(f"fields: {name[:40]!r}: is none of {names}")
        return tuple(name for name in known if name in wanted)

    def _check_room(self) -> None:
        chosen = [s for s in self._sets.values() if not s.is_every]
        if len(chosen) >= MOST_SETS:
            taken = " or ".join(_as_given(s.names) for s in chosen[:3])
            raise TooManySets(
                f"fields: {MOST_SETS} sets of fields are in use, the most at a time: "
                f'take all, ["{EVERY}"], or a set in use, such as {taken}'
            )


def _as_given(names: Sequence[str]) -> str:
    """Return names as a client may give them."""
    return "[{}]".format(",".join(f'"{name}"' for name in names))
