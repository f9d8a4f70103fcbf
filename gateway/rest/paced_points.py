"""What of an instrument's history a token with an interval may see. Pure.

One point of each interval: its newest, which is what was shown while the next one went
on. Intervals begin at multiples of their length, and whatever bounds are asked for,
only whole ones are told of; else bounds could name every window in turn.
"""

from collections.abc import Iterable, Iterator
from dataclasses import Field, replace
from typing import Any, ClassVar, Protocol, TypeVar


class HistoryPoint(Protocol):
    """An instrument's latest trade of a window, a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def window(self) -> int:
        """The window's end."""

    @property
    def trades(self) -> int:
        """How many trades the point stands for."""


P = TypeVar("P", bound=HistoryPoint)


def paced_points(
    newest_first: Iterable[P], interval_ms: int, upto_ms: int
) -> Iterator[P]:
    """Yield the newest point of each interval, newest first; 0: each point.

    Its trades are those of all points of its interval. An interval whose last window
    ends after ``upto_ms`` is left out: clients have a window before its point is here.
    """
    newest: P | None = None
    over_ms = whole_until(upto_ms, interval_ms) if interval_ms else None
    for point in newest_first:
        if over_ms is not None and point.window > over_ms:
            continue
        if newest is not None and _number(newest, interval_ms) == _number(
            point, interval_ms
        ):
            newest = replace(newest, trades=newest.trades + point.trades)
            continue
        if newest is not None:
            yield newest
        newest = point
    if newest is not None:
        yield newest


def whole_from(from_ms: int | None, interval_ms: int) -> int | None:
    """Return where the interval begins in which a window would end at ``from_ms``."""
    if from_ms is None or not interval_ms:
        return from_ms
    return max(0, (-(-from_ms // interval_ms) - 1) * interval_ms + 1)


def whole_until(to_ms: int | None, interval_ms: int) -> int | None:
    """Return where the last interval ends that is over at ``to_ms``."""
    if to_ms is None or not interval_ms:
        return to_ms
    return to_ms // interval_ms * interval_ms


def _number(point: HistoryPoint, interval_ms: int) -> int:
    """Return which interval a window is in: that which begins before its end."""
    return -(-point.window // max(1, interval_ms))
