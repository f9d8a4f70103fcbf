"""PURE: the newest windows as they went out: how late, how big, to how many."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, takewhile

from throttle.snapshot import WindowSnapshot

KEPT = 450
"""So many updates are remembered: a quarter of an hour of windows of 2 s."""


@dataclass(slots=True)
class Beat:
    """One update that was handed out.

    Lags are from the window's end: until the throttle had published it, by Redis'
    clock, and until the last client that had room for it was written to, by this
    machine's. ``merged`` is how many windows it stands for.
    """

    window: int
    offset: int
    rows: int
    trades: int
    publish_lag_ms: int
    fanout_lag_ms: int | None
    clients: int
    merged: int


class Pulse:
    """Remembers the last ``KEPT`` updates."""

    def __init__(self) -> None:
        self._beats: deque[Beat] = deque(maxlen=KEPT)
        self._unfinished: list[Beat] = []

    def __len__(self) -> int:
        return len(self._beats)

    @property
    def last(self) -> Beat | None:
        """The newest update."""
        return self._beats[-1] if self._beats else None

    @property
    def fanout_lag_ms(self) -> int | None:
        """The lag of the newest update that all clients were served with."""
        finished = (b.fanout_lag_ms for b in reversed(self._beats))
        return next((lag_ms for lag_ms in finished if lag_ms is not None), None)

    def begin(self, snapshot: WindowSnapshot, clients: int) -> None:
        """Note an update that is about to be offered to so many clients."""
        beat = Beat(
            snapshot.window,
            snapshot.offset,
            len(snapshot.rows),
            sum(row.trades for row in snapshot.rows),
            snapshot.published_us // 1_000 - snapshot.window,
            None,
            clients,
            snapshot.windows,
        )
        self._beats.append(beat)
        self._unfinished.append(beat)

    def finish(self, now_ms: int) -> None:
        """Note that everybody who was due something has been served."""
        for beat in self._unfinished:
            beat.fanout_lag_ms = now_ms - beat.window
        self._unfinished.clear()

    def newest(self, limit: int) -> Iterator[Beat]:
        """Yield up to so many of the newest updates, oldest first."""
        return islice(self._beats, max(0, len(self._beats) - limit), None)

    def after(self, seen: Beat | None) -> list[Beat]:
        """Return the updates newer than one, oldest first; all without one."""
        newer = list(takewhile(lambda beat: beat is not seen, reversed(self._beats)))
        return newer[::-1]
