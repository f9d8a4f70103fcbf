"""Live progress of a run: one block in a terminal, a line now and then elsewhere."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from bench.load import words

EVERY_S = 10.0
"""How often a line is printed where no terminal shows the block."""


@dataclass(frozen=True, slots=True)
class Now:
    """How a run stands; None is not known."""

    phase: str
    """What is being done, for people: ``clients join``."""
    elapsed_s: float
    total_s: float | None = None
    due_rate: float | None = None
    append_rate: float | None = None
    behind_ms: float | None = None
    lag_p50_ms: float | None = None
    """Of windows just received by prompt clients."""
    lag_p99_ms: float | None = None
    clients: int = 0
    aimed: int = 0
    frame_rate: float | None = None
    byte_rate: float | None = None
    refused: int = 0
    closes: Mapping[str, int] = field(default_factory=dict)
    faults: int = 0


def clock(seconds: float) -> str:
    """Return a time of the run: ``1:05``, ``1:02:03``."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def figures(now: Now) -> list[tuple[str, str, bool]]:
    """Return the name of every figure, its words, and whether it is bad news."""
    closes = ", ".join(
        f"{code} {count:,}" for code, count in sorted(now.closes.items())
    )
    return [
        (
            "trades in",
            f"{words.rate(now.append_rate)}/s of {words.rate(now.due_rate)}/s due, "
            f"{words.duration(now.behind_ms)} behind",
            False,
        ),
        (
            "lag",
            f"p50 {words.duration(now.lag_p50_ms)}, "
            f"p99 {words.duration(now.lag_p99_ms)}",
            False,
        ),
        ("clients", f"{words.count(now.clients)} of {words.count(now.aimed)}", False),
        (
            "out",
            f"{words.rate(now.frame_rate)} frames/s, {words.size(now.byte_rate)}/s",
            False,
        ),
        ("closed", closes or "none", False),
        ("refused", words.count(now.refused), False),
        ("faults", words.count(now.faults), now.faults > 0),
    ]


def time_of(now: Now) -> str:
    """Return how far a run is: ``1:05 of 10:00``."""
    total = f" of {clock(now.total_s)}" if now.total_s is not None else ""
    return f"{clock(now.elapsed_s)}{total}"


def line(now: Now) -> str:
    """Return all of it in one line, for logs."""
    rest = "; ".join(f"{name} {text}" for name, text, _ in figures(now))
    return f"{time_of(now)} {now.phase}; {rest}"


def block(now: Now) -> Group:
    """Return all of it as a block, for a terminal."""
    table = Table.grid(padding=(0, 2))
    for name, text, is_bad in figures(now):
        table.add_row(
            Text(name, style="dim"), Text(text, style="bold red" if is_bad else "")
        )
    head = Text.assemble((now.phase, "bold"), "  ", (time_of(now), "dim"))
    return Group(head, table)


class Progress(AbstractContextManager["Progress"]):
    """Shows how a run stands for as long as it is entered.

    Not for several threads. ``clock_s`` is what tells when a line is due.
    """

    def __init__(
        self, console: Console, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._clock_s = clock_s
        self._live: Live | None = None
        self._phase = ""
        self._printed_s = float("-inf")

    def __enter__(self) -> "Progress":
        if self._console.is_terminal:
            self._live = Live(
                console=self._console, auto_refresh=False, transient=True
            ).__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, traceback)
            self._live = None

    def show(self, now: Now) -> None:
        """Show how it stands; without a terminal at most one line in ``EVERY_S``.

        A phase that begins is always shown.
        """
        if self._live is not None:
            self._live.update(block(now), refresh=True)
            return
        now_s = self._clock_s()
        if now.phase != self._phase or now_s - self._printed_s >= EVERY_S:
            self._phase, self._printed_s = now.phase, now_s
            self.say(line(now))

    def say(self, text: str) -> None:
        """Print one sentence that stays."""
        self._console.print(Text(text), soft_wrap=True)
