"""Key sets: what clients watch. Those who watch the same share one. Pure."""

from collections.abc import Collection

from tickthrottle_client.tick_v1 import ALL


class KeySet:
    """ISINs in order, or ``EVERYTHING``; ``watchers`` is how many clients share it."""

    __slots__ = ("isins", "watchers")

    def __init__(self, *isins: str) -> None:
        self.isins = isins
        self.watchers = 0

    @property
    def is_shared(self) -> bool:
        """Whether what is built for it is worth keeping for the next client."""
        return self.watchers > 1 or self is EVERYTHING


NOTHING = KeySet()

EVERYTHING = KeySet(ALL)
"""The key set of a client that asked for ``*``: every issue, also those yet to come."""


class KeySets:
    """All key sets in use."""

    def __init__(self) -> None:
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
            key_set = self._key_sets.get(isins) or KeySet(*isins)
            self._key_sets[isins] = key_set
            key_set.watchers += 1
        self._leave(old)
        return key_set

    def _leave(self, key_set: KeySet) -> None:
        if key_set.watchers:
            key_set.watchers -= 1
            if not key_set.watchers:
                del self._key_sets[key_set.isins]
