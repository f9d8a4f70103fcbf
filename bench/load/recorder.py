"""PURE: what was seen second by second, kept for the report."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter

from bench.load.results import Points, Seconds


@dataclass(frozen=True, slots=True)
class Fed:
    """What a feed did within ``seconds`` of its own clock; none if it does not run."""

    seconds: float = 0.0
    due: int = 0
    acknowledged: int = 0
    behind_ms: float = 0.0

    @property
    def due_rate(self) -> float:
        """Trades that fell due, a second."""
        return self.due / self.seconds if self.seconds else 0.0

    @property
    def append_rate(self) -> float:
        """Trades that were acknowledged, a second."""
        return self.acknowledged / self.seconds if self.seconds else 0.0


def add_up(parts: Iterable[Fed]) -> Fed:
    """Return what a feed did in all of them; ``behind_ms`` is the longest."""
    every = list(parts)
    return Fed(
        sum(one.seconds for one in every),
        sum(one.due for one in every),
        sum(one.acknowledged for one in every),
        max((one.behind_ms for one in every), default=0.0),
    )


@dataclass(frozen=True, slots=True)
class Moment:
    """About a second, up to ``at_ms``: what happened within it."""

    at_ms: float
    seconds: float
    fed: Fed
    clients: int
    """Connected at its end."""
    frames: int
    items: int
    bytes: int


class Recorder:
    """Keeps moments in the order of their times.

    Frames come by the window: their rates are told of the last ``window_ms``.
    """

    def __init__(self, window_ms: int) -> None:
        self._moments: list[Moment] = []
        self._window_ms = window_ms

    def add(self, moment: Moment) -> None:
        """Keep one more, later than those before."""
        self._moments.append(moment)

    def axis(self, from_ms: float, to_ms: float) -> list[float]:
        """Return the times of what was seen within ``(from_ms, to_ms]``."""
        return [one.at_ms for one in self._within(from_ms, to_ms)]

    def seconds(
        self,
        from_ms: float,
        to_ms: float,
        machine_cpu: Points,
    ) -> Seconds:
        """Return the series within ``(from_ms, to_ms]``.

        ``machine_cpu`` is how many cores the machine used, along the ``axis``.
        """
        found = self._within(from_ms, to_ms)
        return Seconds(
            at_ms=[one.at_ms for one in found],
            due_rate=[one.fed.due_rate for one in found],
            append_rate=[one.fed.append_rate for one in found],
            behind_ms=[one.fed.behind_ms for one in found],
            clients=[one.clients for one in found],
            frame_rate=self._rates(attrgetter("frames"), from_ms, to_ms),
            item_rate=self._rates(attrgetter("items"), from_ms, to_ms),
            byte_rate=self._rates(attrgetter("bytes"), from_ms, to_ms),
            machine_cpu=machine_cpu,
        )

    def _rates(
        self, counts: Callable[[Moment], int], from_ms: float, to_ms: float
    ) -> list[float]:
        """Return how many there were a second, at each moment over the last window."""
        length = max(1, round(self._window_ms / 1_000))
        rates = []
        for end, moment in enumerate(self._moments, 1):
            if from_ms < moment.at_ms <= to_ms:
                last = self._moments[max(0, end - length) : end]
                rates.append(sum(map(counts, last)) / sum(m.seconds for m in last))
        return rates

    def _within(self, from_ms: float, to_ms: float) -> list[Moment]:
        return [one for one in self._moments if from_ms < one.at_ms <= to_ms]
