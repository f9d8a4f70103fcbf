"""Which reasons of an outage were told already: each once, and not too many. Pure."""

MOST = 8
"""So many different reasons of one outage are told."""


class OutageReasons:
    """Remembers what was told since an outage began.

    The first reason may be another one than the one that stays: a server that is busy
    while it starts, and turns out to be of the wrong kind.
    """

    def __init__(self) -> None:
        self._told: set[str] = set()

    def is_news(self, reason: str) -> bool:
        """Say whether a reason is to be told, and remember it."""
        if reason in self._told or len(self._told) == MOST:
            return False
        self._told.add(reason)
        return True

    def end(self) -> None:
        """Forget everything: the outage is over."""
        self._told.clear()
