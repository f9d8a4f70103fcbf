"""What was published in a run, window by window. Pure."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import NamedTuple

import orjson

from loadtest.judge.reference import Change, Reference
from loadtest.judge.rows import to_item
from throttle.contract.snapshot import Row, WindowSnapshot

Firsts = Mapping[int, Sequence[float]]
"""By offset, for each row in its order: when its first news entered the log, in ms;
NaN where that is not known.
"""


class HeldWindow(NamedTuple):
    """A published window, its rows still as they came."""

    offset: int
    end_ms: int
    windows: int
    published_ms: float
    message: bytes

    @property
    def lag_ms(self) -> float:
        return self.published_ms - self.end_ms

    def rows(self) -> tuple[Row, ...]:
        return WindowSnapshot.decode(self.message).rows


class PublishedRun:
    """Takes in every message of the window log from an offset on, in one epoch.

    Whatever breaks the numbering is a fault, in words; messages of another epoch are
    left out. Rows are decoded when they are asked for: while the load runs, they only
    cost memory.
    """

    def __init__(self, epoch: str, offset: int, window_ms: int) -> None:
        self.epoch = epoch
        self.window_ms = window_ms
        self.windows: list[HeldWindow] = []
        self.faults: list[str] = []
        self.offset = offset
        """The newest that was taken in."""
        self._is_lost = False

    @property
    def end_ms(self) -> int | None:
        """The end of the newest window, None if none came."""
        return self.windows[-1].end_ms if self.windows else None

    def add(self, message: bytes) -> None:
        head = message.partition(b"\n")[0]
        try:
            header = orjson.loads(head)
            epoch = header["epoch"]
            held = HeldWindow(
                int(header["offset"]),
                int(header["window"]),
                int(header["windows"]),
                header["published"] / 1_000,
                message,
            )
        except (ValueError, KeyError, TypeError) as error:
            self.faults.append(f"the window log holds {head[:120]!r}: {error!r}")
            return
        if epoch != self.epoch:
            self.begin_anew(epoch)
            return
        self._check_offset(held)
        if held.offset > self.offset:
            self.offset = held.offset
            self.windows.append(held)

    def begin_anew(self, epoch: str | None) -> None:
        """Take note that the stream has another epoch, or is gone; only once."""
        if not self._is_lost:
            self._is_lost = True
            other = "is gone" if epoch is None else f"began anew as {epoch}"
            self.faults.append(
                f"the stream {self.epoch} {other} after the offset {self.offset}"
            )

    def reference(self, firsts: Firsts | None = None) -> Reference:
        """Return the truth that clients are judged by."""
        windows: dict[int, tuple[int, float]] = {}
        instruments: dict[str, list[Change]] = {}
        for held in self.windows:
            for back in range(held.windows):
                end_ms = held.end_ms - back * self.window_ms
                windows[held.offset - back] = end_ms, held.published_ms
            rows = held.rows()
            known = (firsts or {}).get(held.offset) or [nan] * len(rows)
            for row, first_ms in zip(rows, known, strict=True):
                changes = instruments.setdefault(row.isin, [])
                # Twice in one window is a fault that the audit and the clients tell.
                if not changes or changes[-1].offset < held.offset:
                    changes.append(_change(held.offset, row, first_ms))
        return Reference(self.epoch, windows, instruments, self.window_ms)

    def _check_offset(self, held: HeldWindow) -> None:
        if held.offset <= self.offset:
            self.faults.append(
                f"offset {held.offset}: came again after {self.offset} (window "
                f"{held.end_ms})"
            )
        elif held.offset - held.windows != self.offset:
            self.faults.append(
                f"offset {held.offset}: stands for {held.windows} windows, the one "
                f"before it was {self.offset}"
            )


def _change(offset: int, row: Row, first_ms: float) -> Change:
    _, time_us, seq, price, _ = to_item(orjson.loads(row.body), row.body)
    trades, amounts = row.row_sums
    return Change(offset, time_us, seq, price, trades, first_ms, amounts)
