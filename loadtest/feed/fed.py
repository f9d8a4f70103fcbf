"""What a feed did within some time. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fed:
    """What a feed did within ``seconds`` of its own clock; none if it does not run."""

    seconds: float = 0.0
    acknowledged: int = 0
    behind_ms: float = 0.0
    """Longest time from due to acknowledged, or waited so far."""

    @property
    def append_rate(self) -> float:
        return self.acknowledged / self.seconds if self.seconds else 0.0


def add_up(parts: Iterable[Fed]) -> Fed:
    """Return what a feed did in all of them; ``behind_ms`` is the longest."""
    every = list(parts)
    return Fed(
        sum(one.seconds for one in every),
        sum(one.acknowledged for one in every),
        max((one.behind_ms for one in every), default=0.0),
    )
