"""Whether a feed takes anything of the trades that come to it. Pure."""

NOTHING_FOR_S = 7.0
"""A feed that has taken nothing for so long, while trades came, takes nothing."""

QUIET_AFTER_S = 60.0
"""When nothing came for so long, what was left before says nothing any more."""


class Uptake:
    """Compares what a feed took with what it left, from one look to the next."""

    def __init__(self) -> None:
        self._taken = self._left = 0
        self._since_s: float | None = None
        self._came_s = 0.0

    def takes_nothing(self, taken: int, left: int, now_s: float) -> bool:
        """Tell whether trades have come for a while and none was taken.

        ``taken`` and ``left`` are counts since the start. What came again was taken
        before, so it counts as taken. ``now_s`` is of any clock that never goes back.
        """
        if taken != self._taken:
            self._since_s = None
        elif left != self._left:
            self._came_s = now_s
            if self._since_s is None:
                self._since_s = now_s
        elif now_s - self._came_s > QUIET_AFTER_S:
            self._since_s = None
        self._taken, self._left = taken, left
        return self._since_s is not None and now_s - self._since_s >= NOTHING_FOR_S
