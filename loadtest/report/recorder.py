"""What was seen second by second, kept for the report. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from loadtest.feed.fed import Fed
from loadtest.judge.tallies import CrowdTick
from loadtest.results import Points, Seconds


@dataclass(frozen=True, slots=True)
class Moment:
    """About a second, up to ``at_ms``: what happened within it."""

    at_ms: float
    seconds: float
    fed: Fed
    tick: CrowdTick

    @property
    def clients(self) -> int:
        return self.tick.connected.total()


class Recorder:
    """Has ``moments`` in the order of their times.

    Frames come by the window: their rates are told of the last ``window_ms``.
    """

    def __init__(self, window_ms: int) -> None:
        self.moments: list[Moment] = []
        self._window_ms = window_ms

    def axis(self, from_ms: float, to_ms: float) -> list[float]:
        """Return the times of what was seen within ``(from_ms, to_ms]``."""
        return [one.at_ms for one in self._within(from_ms, to_ms)]

    def seconds(self, from_ms: float, to_ms: float, machine_cpu: Points) -> Seconds:
        """Return the series within ``(from_ms, to_ms]``.

        ``machine_cpu`` is how many cores the machine used, along the ``axis``.
        """
        moments = self._within(from_ms, to_ms)
        return Seconds(
            at_ms=[moment.at_ms for moment in moments],
            append_rate=[moment.fed.append_rate for moment in moments],
            behind_ms=[moment.fed.behind_ms for moment in moments],
            clients=[moment.clients for moment in moments],
            frame_rate=self._rates(attrgetter("tick.seen.frames"), from_ms, to_ms),
            item_rate=self._rates(attrgetter("tick.seen.items"), from_ms, to_ms),
            byte_rate=self._rates(attrgetter("tick.seen.bytes"), from_ms, to_ms),
            machine_cpu=machine_cpu,
        )

    def _rates(
        self, counts: Callable[[Moment], int], from_ms: float, to_ms: float
    ) -> list[float]:
        """Return how many there were a second, at each moment over the last window."""
        length = max(1, round(self._window_ms / 1_000))
        rates = []
        for end, moment in enumerate(self.moments, 1):
            if from_ms < moment.at_ms <= to_ms:
                last = self.moments[max(0, end - length) : end]
                rates.append(sum(map(counts, last)) / sum(m.seconds for m in last))
        return rates

    def _within(self, from_ms: float, to_ms: float) -> list[Moment]:
        return [one for one in self.moments if from_ms < one.at_ms <= to_ms]
