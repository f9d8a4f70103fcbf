"""Views: what clients watch. Those who watch the same share one. Does no I/O."""

from collections.abc import Collection

ALL = "*"


class View:
    """ISINs in order, or ``EVERYTHING``; ``watchers`` is how many clients share it."""

    __slots__ = ("isins", "watchers")

    def __init__(self, *isins: str) -> None:
        self.isins = isins
        self.watchers = 0

    @property
    def is_shared(self) -> bool:
        """Whether what is built for it is worth keeping for the next client."""
        return self.watchers > 1 or self is EVERYTHING


NOTHING = View()

EVERYTHING = View(ALL)
"""The view of a client that asked for ``*``: every issue, also those yet to come."""


class Views:
    """All views in use."""

    def __init__(self) -> None:
        self._views: dict[tuple[str, ...], View] = {}

    def __len__(self) -> int:
        return len(self._views)

    def move(self, old: View, keys: Collection[str]) -> View:
        """Have a client that watched ``old`` watch ``keys``; return its view."""
        if ALL in keys:
            view = EVERYTHING
        elif not keys:
            view = NOTHING
        else:
            isins = tuple(sorted(keys))
            known = self._views.get(isins)
            view = self._views[isins] = known or View(*isins)
            view.watchers += 1
        self._leave(old)
        return view

    def _leave(self, view: View) -> None:
        if view.watchers:
            view.watchers -= 1
            if not view.watchers:
                del self._views[view.isins]
