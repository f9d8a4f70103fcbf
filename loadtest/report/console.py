"""Live progress of a run: one line in a terminal, one now and then elsewhere."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from rich.console import Console
from rich.text import Text

from loadtest.feed.fed import add_up
from loadtest.figures import words
from loadtest.figures.percentiles import summarize
from loadtest.judge.tallies import total
from loadtest.report.recorder import Moment
from loadtest.results import ClientTally

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
        "trades in": f"{words.rate(fed.append_rate)}/s, "
        f"{words.duration(fed.behind_ms)} behind",
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
        self._status = console.status("") if console.is_terminal else None
        self._phase = ""
        self._printed_s = float("-inf")

    def __enter__(self) -> "RunDisplay":
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, phase: str, elapsed_s: float, found: Mapping[str, str]) -> None:
        """Show ``figures``; without a terminal at most one line in ``EVERY_S``.

        ``phase`` is what is being done, for people: ``clients join``. One that begins
        is always shown.
        """
        rest = "; ".join(f"{name} {text}" for name, text in found.items())
        line = f"{clock(elapsed_s)} {phase}; {rest}"
        if self._status is not None:
            self._status.update(Text(line))
            return
        now_s = self._clock_s()
        if phase != self._phase or now_s - self._printed_s >= EVERY_S:
            self._phase, self._printed_s = phase, now_s
            self.say(line)

    def say(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)
