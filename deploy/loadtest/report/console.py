"""Live progress of a run: one block in a terminal, a line now and then elsewhere."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from deploy.loadtest.feed.fed import add_up
from deploy.loadtest.figures import words
from deploy.loadtest.figures.percentiles import summarize
from deploy.loadtest.judge.tallies import ClientTally, total
from deploy.loadtest.report.recorder import Moment

EVERY_S = 10.0
"""How often a line is printed where no terminal shows the block."""


def figures(
    moments: Sequence[Moment], so_far: ClientTally, aimed: int
) -> dict[str, str]:
    """Return every figure by its name, in words.

    Rates and lags are those of some ``moments``, counts of trouble those ``so_far``.
    """
    seconds = sum(moment.seconds for moment in moments)
    fed = add_up(moment.fed for moment in moments)
    seen = total(moment.tick.seen for moment in moments)
    lag = summarize(lag_ms for moment in moments for lag_ms in moment.tick.lags_ms)
    closes = (f"{code} {count:,}" for code, count in sorted(so_far.closes.items()))
    return {
        "trades in": f"{words.rate(fed.append_rate)}/s of {words.rate(fed.due_rate)}/s "
        f"due, {words.duration(fed.behind_ms)} behind",
        "lag": f"p50 {words.duration(lag.p50)}, p99 {words.duration(lag.p99)}",
        "clients": f"{words.count(moments[-1].clients)} of {words.count(aimed)}",
        "out": f"{words.rate(seen.frames / seconds)} frames/s, "
        f"{words.size(seen.bytes / seconds)}/s",
        "closed": ", ".join(closes) or "none",
        "refused": words.count(so_far.refused),
        "faults": words.count(so_far.faults),
    }


def clock(seconds: float) -> str:
    """Return a time of the run: ``1:05``, ``1:02:03``."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class RunDisplay(AbstractContextManager["RunDisplay"]):
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

    def __enter__(self) -> "RunDisplay":
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

    def show(self, phase: str, elapsed_s: float, found: Mapping[str, str]) -> None:
        """Show ``figures``; without a terminal at most one line in ``EVERY_S``.

        ``phase`` is what is being done, for people: ``clients join``. One that begins
        is always shown.
        """
        if self._live is not None:
            table = Table.grid(padding=(0, 2))
            for name, text in found.items():
                is_bad = name == "faults" and text != "0"
                style = "bold red" if is_bad else ""
                table.add_row(Text(name, style="dim"), Text(text, style=style))
            head = Text.assemble((phase, "bold"), "  ", (clock(elapsed_s), "dim"))
            self._live.update(Group(head, table), refresh=True)
            return
        now_s = self._clock_s()
        if phase != self._phase or now_s - self._printed_s >= EVERY_S:
            self._phase, self._printed_s = phase, now_s
            rest = "; ".join(f"{name} {text}" for name, text in found.items())
            self.say(f"{clock(elapsed_s)} {phase}; {rest}")

    def say(self, text: str) -> None:
        """Print one sentence that stays."""
        self._console.print(Text(text), soft_wrap=True)
