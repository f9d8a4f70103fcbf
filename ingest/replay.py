"""A recorded tape as a schedule of events."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from math import isfinite
from pathlib import Path
from typing import Literal

from ingest.event import Event, Refusals
from ingest.tape import read_tape
from ingest.trade import Trade

_BETWEEN_PASSES_US = 1_000


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How a tape is played. Raises ValueError for options outside their bounds."""

    path: Path

    speed: float = 1.0
    """Times the tape's own pace, 0.001 to 1,000,000."""

    rate: float | None = None
    """Trades a second, 0.001 to 1,000,000, whatever the tape's own times are."""

    stamp: Literal["now", "recorded"] = "now"
    """``now``: exchange times move to the present and follow the pace; equal ones
    stay equal and none overtakes another. At a fixed ``rate`` a trade is stamped with
    its due time. ``recorded``: they stay as they are, so from the second pass on
    every trade is stale.
    """

    loop: int = 1
    """How often the tape is played, 0 for ever."""

    max_gap_s: float | None = None
    """Longest silence of the tape that is kept, in seconds of the tape, above 0; a
    longer one is shortened to it. None keeps all.
    """

    def __post_init__(self) -> None:
        """Check the bounds."""
        _check("speed", self.speed, 0.001, 1_000_000)
        if self.rate is not None:
            _check("rate", self.rate, 0.001, 1_000_000)
            if self.speed != 1.0 or self.max_gap_s is not None:
                raise ValueError("a fixed rate has no use for speed or max_gap_s")
        if self.max_gap_s is not None:
            _check("max_gap_s", self.max_gap_s, 0.001, 10**9)
        _check("loop", self.loop, 0, 10**9)
        if self.stamp not in ("now", "recorded"):
            raise ValueError(f"stamp {self.stamp!r}: must be now or recorded")


def replay(
    options: ReplayOptions, start_us: int, refusals: Refusals
) -> Iterator[Event]:
    """Yield a tape's trades as events of a feed that starts at ``start_us``.

    ``start_us`` is in microseconds since 1970 UTC. A pass begins 1 ms after the
    newest stamp of the pass before; ``refusals`` counts the bad lines of every pass.
    Raises TapeError as ``read_tape`` does.
    """
    pace = _AtRate(options.rate) if options.rate else _ByTape(options)
    for _ in range(options.loop) if options.loop else count():
        pace.rewind()
        for trade in read_tape(options.path, refusals):
            due_us, offset_us = pace.schedule(trade)
            if options.stamp == "now":
                trade = _restamp(trade, start_us + offset_us)
            yield Event(due_us, trade.isin, trade.to_wire())


def _restamp(trade: Trade, time_us: int) -> Trade:
    return Trade(trade.isin, time_us, trade.seq, trade.price, trade.size, trade.extra)


def _check(name: str, value: float, lowest: float, highest: float) -> None:
    if not (isfinite(value) and lowest <= value <= highest):
        raise ValueError(f"{name} {value}: must be from {lowest:,} to {highest:,}")


class _AtRate:
    """Evenly spaced: the due time is the stamp."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._played = 0

    def rewind(self) -> None:
        """Go on with the next pass: nothing to do, the count goes on."""

    def schedule(self, trade: Trade) -> tuple[int, int]:
        due_us = int(self._played * 1e6 / self._rate)
        self._played += 1
        return due_us, due_us


class _ByTape:
    """By the tape's own times: a stamp may step back, a due time never does."""

    def __init__(self, options: ReplayOptions) -> None:
        self._speed = options.speed
        self._silence = _Silence(options.max_gap_s)
        self._due_us = 0
        self._newest_us = 0
        self._lowest_us = 0
        self._begin_us = 0

    def rewind(self) -> None:
        """Begin the next pass behind the newest stamp of the one before."""
        if self._silence.started:
            # A tape may step back below its first stamp: leave room for that too.
            self._begin_us = self._newest_us + _BETWEEN_PASSES_US - self._lowest_us
        self._silence.rewind()

    def schedule(self, trade: Trade) -> tuple[int, int]:
        """Return when the trade is due and its stamp, both in us since the start."""
        along_us = int(self._silence.shorten(trade.time_us) // self._speed)
        self._lowest_us = min(self._lowest_us, along_us)
        offset_us = self._begin_us + along_us
        self._newest_us = max(self._newest_us, offset_us)
        self._due_us = max(self._due_us, offset_us)
        return self._due_us, offset_us


class _Silence:
    """Tape times counted from the first one, with long gaps shortened."""

    def __init__(self, max_gap_s: float | None) -> None:
        self._max_gap_us = None if max_gap_s is None else int(max_gap_s * 1e6)
        self.started = False
        self.rewind()

    def rewind(self) -> None:
        self._first_us: int | None = None
        self._newest_us = 0
        self._cut_us = self._cut_before_us = self._gap_from_us = 0

    def shorten(self, time_us: int) -> int:
        """Return where a tape time stands; never swaps two of them."""
        if self._first_us is None:
            self._first_us = self._newest_us = self._gap_from_us = time_us
            self.started = True
        gap_us = time_us - self._newest_us
        if self._max_gap_us is not None and gap_us > self._max_gap_us:
            self._gap_from_us = self._newest_us
            self._cut_before_us = self._cut_us
            self._cut_us += gap_us - self._max_gap_us
        self._newest_us = max(self._newest_us, time_us)
        along_us = time_us - self._cut_us
        if time_us <= self._gap_from_us:
            # Late, from before the gap: as it would have been without it.
            along_us = time_us - self._cut_before_us
        else:
            along_us = max(along_us, self._gap_from_us - self._cut_before_us)
        return along_us - self._first_us
