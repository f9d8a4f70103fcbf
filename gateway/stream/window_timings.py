"""The newest windows as they went out: how late, how big, to how many. Pure."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Annotated

from pydantic import Field

from throttle.contract.snapshot import WindowSnapshot

KEPT = 450
"""Updates that are remembered: a quarter of an hour of windows of 2 s."""


@dataclass(slots=True)
class WindowTiming:
    """One update that was handed out.

    Lags are from the window's end: until the throttle had published it, by Redis'
    clock, and until the last client that had room for it was written to, by this
    machine's. ``merged`` is how many windows it stands for.
    """

    window: Annotated[int, Field(examples=[1773964804000])]
    offset: Annotated[int, Field(examples=[1235])]
    rows: Annotated[int, Field(examples=[312])]
    trades: Annotated[int, Field(examples=[1498])]
    publish_lag_ms: Annotated[int, Field(examples=[181])]
    fanout_lag_ms: Annotated[int | None, Field(examples=[204])]
    clients: Annotated[int, Field(examples=[120])]
    merged: Annotated[int, Field(examples=[1])]


class WindowTimings:
    """Remembers the last ``KEPT`` updates."""

    def __init__(self) -> None:
        self._timings: deque[WindowTiming] = deque(maxlen=KEPT)
        self._unfinished: list[WindowTiming] = []

    def __len__(self) -> int:
        return len(self._timings)

    def begin(self, snapshot: WindowSnapshot, clients: int) -> None:
        """Note an update that is about to be offered to ``clients`` clients."""
        timing = WindowTiming(
            snapshot.window,
            snapshot.offset,
            len(snapshot.rows),
            snapshot.trades,
            snapshot.published_us // 1_000 - snapshot.window,
            None,
            clients,
            snapshot.windows,
        )
        self._timings.append(timing)
        self._unfinished.append(timing)

    def finish(self, now_ms: int) -> None:
        """Note that everybody who was due something has been served."""
        for timing in self._unfinished:
            timing.fanout_lag_ms = now_ms - timing.window
        self._unfinished.clear()

    def newest(self, limit: int) -> Iterator[WindowTiming]:
        """Yield up to ``limit`` of the newest updates, oldest first."""
        return islice(self._timings, max(0, len(self._timings) - limit), None)

    def after(self, seen: WindowTiming | None) -> list[WindowTiming]:
        """Return the updates newer than one, oldest first; all without one."""
        newer = list(
            takewhile(lambda timing: timing is not seen, reversed(self._timings))
        )
        return newer[::-1]
