"""Key sets: what clients watch. Those who watch the same share one. Pure."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeAlias

from ingest.instrument_table.known_instruments import Instruments, has_members
from ingest.series import instrument_of, is_series
from tickthrottle_client.tick_v1 import ALL, ALL_GROUPS, GROUP, is_group

Bodies: TypeAlias = Sequence[bytes | None]


class InstrumentNumbers(dict[str, int]):
    """The number of each ISIN that was ever published, from 0, in order of arrival.

    A list by number is faster than a dictionary. Asking for an ISIN numbers it; ``get``
    does not. A number never changes, and what strangers ask for is not numbered, so
    there are as many as instruments were traded.
    """

    def __missing__(self, isin: str) -> int:
        """Number an ISIN that was never published before."""
        self[isin] = number = len(self)
        return number


@dataclass(slots=True, eq=False)
class KeySet:
    """The instruments and groups that some keys stand for; it never changes.

    ``keys`` are in order, and so are ``isins`` and ``groups``. It ``is_everything`` if
    it stands for every instrument, and ``isins`` are the series that it stands for
    beside them. ``watchers`` is how many clients share it, ``follows`` whether another
    table may make others of its keys.
    """

    _numbers: InstrumentNumbers
    keys: tuple[str, ...]
    isins: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    is_everything: bool = False
    follows: bool = False
    watchers: int = 0
    _known: int = -1
    _is_whole: bool = False
    _getter: Callable[[Bodies], Bodies] = itemgetter(slice(0))

    @property
    def is_shared(self) -> bool:
        """Whether what is built for it is worth keeping for the next client."""
        return self.watchers > 1 or self is EVERYTHING

    def watched(self, names: Iterable[str]) -> set[str]:
        """Return those of some instruments and groups that it stands for."""
        isins, groups = frozenset(self.isins), frozenset(self.groups)
        return {
            name
            for name in names
            if (
                name in groups or ALL_GROUPS in groups
                if is_group(name)
                else name in isins or (self.is_everything and not is_series(name))
            )
        }

    def holds(self, isin: str) -> bool:
        """Say whether it stands for an instrument, or for a series of it."""
        # The key of a series begins with its instrument's, so it is the next one.
        at = bisect_left(self.isins, isin)
        is_there = at < len(self.isins) and instrument_of(self.isins[at]) == isin
        return self.is_everything or is_there

    def among(self, isins: Collection[str]) -> Collection[str]:
        """Return which of some instruments it may stand for; none that it does is left
        out. As fast as the shorter of both allows.
        """
        if self.is_everything or len(isins) <= len(self.isins):
            return isins
        return dict.fromkeys(map(instrument_of, self.isins))

    def pick_groups(self, bodies: Mapping[str, bytes]) -> list[str]:
        """Return which of these groups it stands for, in order."""
        if not self.groups or not bodies:
            return []
        if ALL_GROUPS in self.groups:
            return sorted(bodies)
        return [key for key in self.groups if key in bodies]

    def pick(self, by_number: Bodies) -> list[bytes]:
        """Return what a list by instruments' numbers has of these, in order of ISINs.

        The list is as long as there are numbers.
        """
        if not self._is_whole and self._known != len(self._numbers):
            self._resolve()
        return list(filter(None, self._getter(by_number)))

    def _resolve(self) -> None:
        """Look up the numbers of the instruments that have one."""
        numbers = [n for n in map(self._numbers.get, self.isins) if n is not None]
        self._known = len(self._numbers)
        self._is_whole = len(numbers) == len(self.isins)
        self._getter = _getter(numbers)


def _getter(numbers: Sequence[int]) -> Callable[[Bodies], Bodies]:
    if len(numbers) > 1:
        return itemgetter(*numbers)
    # Of one number alone an itemgetter makes no tuple.
    start = numbers[0] if numbers else 0
    return itemgetter(slice(start, start + len(numbers)))


NOTHING = KeySet(InstrumentNumbers(), ())

EVERYTHING = KeySet(InstrumentNumbers(), (ALL,), is_everything=True)
"""The key set of a client that asked for ``*``: all instruments, new ones, too."""


class KeySets:
    """All key sets in use, and the table that says what markets and sectors are.

    ``changed`` are the keys that stand for others since the newest table, ``renames``
    those of them that it calls otherwise: old to new.
    """

    def __init__(self, numbers: InstrumentNumbers) -> None:
        self._numbers = numbers
        self._key_sets: dict[tuple[str, ...], KeySet] = {}
        self._members: dict[str, tuple[str, ...]] = {}
        self.instruments = Instruments()
        self.changed: frozenset[str] = frozenset()
        self.renames: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._key_sets)

    def change_instruments(self, instruments: Instruments) -> None:
        """Take another table in. Who holds a key that changed has to ``move`` again."""
        renames = self.instruments.renames(instruments)
        # Figures follow a name, whichever instruments they are of.
        of_groups = {GROUP + old: GROUP + new for old, new in renames.items()}
        self.renames = renames | of_groups
        self.changed = self.instruments.regrouped(instruments).union(of_groups)
        self.instruments = instruments
        self._members.clear()
        # They stay what they are for who holds them; nobody comes to them any more.
        self._key_sets = {
            keys: key_set
            for keys, key_set in self._key_sets.items()
            if not key_set.follows or self.changed.isdisjoint(keys)
        }

    def members(self, key: str) -> tuple[str, ...]:
        """Return the ISINs of a market or sector in order, none of one not known."""
        isins = self._members.get(key)
        if isins is None:
            isins = tuple(sorted(self.instruments.members(key) or ()))
            # Names that nobody has are strangers' words.
            if isins:
                self._members[key] = isins
        return isins

    def expand(self, keys: Iterable[str]) -> Iterator[str]:
        """Yield the ISINs that keys stand for, groups left out; one may come twice."""
        for key in keys:
            if has_members(key):
                yield from self.members(key)
            elif not is_group(key):
                yield key

    def move(self, old: KeySet, keys: Collection[str]) -> KeySet:
        """Have a client that watched ``old`` watch ``keys``; return its key set."""
        if ALL in keys:
            # What else it asked for among instruments makes no difference.
            keys = [ALL, *filter(is_group, keys), *filter(is_series, keys)]
        if not keys:
            key_set = NOTHING
        elif len(keys) == 1 and ALL in keys:
            key_set = EVERYTHING
        else:
            names = tuple(sorted(keys))
            key_set = self._key_sets.get(names) or self._create(names)
            self._key_sets[names] = key_set
            key_set.watchers += 1
        self._leave(old)
        return key_set

    def _create(self, names: tuple[str, ...]) -> KeySet:
        groups = tuple(filter(is_group, names))
        if ALL in names:
            series = tuple(filter(is_series, names))
            return KeySet(self._numbers, names, series, groups, True, follows=True)
        if not groups and not any(map(has_members, names)):
            return KeySet(self._numbers, names, names)
        isins = tuple(sorted(set(self.expand(names))))
        return KeySet(self._numbers, names, isins, groups, follows=True)

    def _leave(self, key_set: KeySet) -> None:
        if key_set.watchers:
            key_set.watchers -= 1
            if not key_set.watchers and self._key_sets.get(key_set.keys) is key_set:
                del self._key_sets[key_set.keys]
