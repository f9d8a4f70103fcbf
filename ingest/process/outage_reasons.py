"""Which reasons of an outage were told already: each once, and not too many. Pure."""

MOST = 8


class OutageReasons:
    """Remembers what was told since an outage began: the first reason may not stay."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def is_news(self, reason: str) -> bool:
        """Say whether a reason is to be told, and remember it."""
        if reason in self._told or len(self._told) == MOST:
            return False
        self._told.add(reason)
        return True

    def end(self) -> None:
        self._told.clear()
