"""Key sets: what clients watch. Those who watch the same share one. Pure."""

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter

from gateway.protocol.issue_numbers import IssueNumbers
from tickthrottle_client.tick_v1 import ALL


class KeySet:
    """ISINs in order, or ``EVERYTHING``; ``watchers`` is how many clients share it."""

    __slots__ = ("_getter", "_is_whole", "_known", "_numbers", "isins", "watchers")

    def __init__(self, numbers: IssueNumbers, isins: Iterable[str]) -> None:
        self.isins = tuple(isins)
        self.watchers = 0
        self._numbers = numbers
        self._resolve()

    @property
    def is_shared(self) -> bool:
        """Whether what is built for it is worth keeping for the next client."""
        return self.watchers > 1 or self is EVERYTHING

    def pick(self, by_number: Sequence[bytes | None]) -> list[bytes]:
        """Return what a list by the issues' numbers has of these, in order of ISINs.

        The list is as long as there are numbers.
        """
        if not self._is_whole and self._known != len(self._numbers):
            self._resolve()
        return list(filter(None, self._getter(by_number)))

    def _resolve(self) -> None:
        """Look up the numbers of the issues that have one."""
        numbers = [n for n in map(self._numbers.get, self.isins) if n is not None]
        self._known = len(self._numbers)
        self._is_whole = len(numbers) == len(self.isins)
        self._getter = _getter(numbers)


def _getter(
    numbers: Sequence[int],
) -> Callable[[Sequence[bytes | None]], Sequence[bytes | None]]:
    if len(numbers) > 1:
        return itemgetter(*numbers)
    # Of one number alone an itemgetter makes no tuple.
    start = numbers[0] if numbers else 0
    return itemgetter(slice(start, start + len(numbers)))


NOTHING = KeySet(IssueNumbers(), ())

EVERYTHING = KeySet(IssueNumbers(), (ALL,))
"""The key set of a client that asked for ``*``: every issue, also those yet to come."""


class KeySets:
    """All key sets in use."""

    def __init__(self, numbers: IssueNumbers) -> None:
        self._numbers = numbers
        self._key_sets: dict[tuple[str, ...], KeySet] = {}

    def __len__(self) -> int:
        return len(self._key_sets)

    def move(self, old: KeySet, keys: Collection[str]) -> KeySet:
        """Have a client that watched ``old`` watch ``keys``; return its key set."""
        if ALL in keys:
            key_set = EVERYTHING
        elif not keys:
            key_set = NOTHING
        else:
            isins = tuple(sorted(keys))
            key_set = self._key_sets.get(isins) or KeySet(self._numbers, isins)
            self._key_sets[isins] = key_set
            key_set.watchers += 1
        self._leave(old)
        return key_set

    def _leave(self, key_set: KeySet) -> None:
        if key_set.watchers:
            key_set.watchers -= 1
            if not key_set.watchers:
                del self._key_sets[key_set.isins]
