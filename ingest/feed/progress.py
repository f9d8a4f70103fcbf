"""What an operator sees of a running feed: a progress bar, or log lines."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from ingest.feed.pacer import FeedProgress, FeedReport

LOG_EVERY_S = 10.0

Display = Callable[[FeedProgress], None]

log = structlog.get_logger()


@contextmanager
def open_display(title: str, total: float | None) -> Iterator[Display]:
    """Yield what shows progress: a bar if stderr is a terminal, else log lines.

    ``total`` is the expected number of trades, None when nobody knows.
    """
    if not sys.stderr.isatty():
        yield LogDisplay(title)
        return
    columns = (
        *(SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=20)),
        TextColumn("{task.fields[status]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total, status="")
        yield lambda progress: bar.update(
            task, completed=progress.acknowledged, status=status_line(progress)
        )


def log_report(title: str, report: FeedReport) -> None:
    """Log what became of a feed."""
    log.info(
        f"{title}: stopped" if report.stopped else f"{title}: finished",
        acknowledged=report.acknowledged,
        refused=dict(report.refused),
        retried=report.retried,
        in_doubt=report.in_doubt,
        unsent=report.unsent,
        dropped_at_cap=report.dropped_at_cap,
        seconds=round(report.seconds, 1),
        max_lag_s=round(report.max_lag_s, 3),
        **{
            name: dict(counts)
            for name in ("left_out", "unknown_conditions")
            if (counts := getattr(report, name))
        },
    )
    for refusal in report.refusals:
        log.warning(f"{title}: refused", row=refusal)


class LogDisplay:
    """One log line every 10 s of the feed."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._next_s = LOG_EVERY_S

    def __call__(self, progress: FeedProgress) -> None:
        if progress.elapsed_s < self._next_s:
            return
        self._next_s = progress.elapsed_s + LOG_EVERY_S
        log.info(
            self._title,
            acknowledged=progress.acknowledged,
            rate=round(progress.rate, 1),
            lag_s=round(progress.lag_s, 3),
            refused=progress.refused,
            retried=progress.retried,
            dropped_at_cap=progress.dropped_at_cap,
        )


def status_line(progress: FeedProgress) -> str:
    """Return the numbers of a feed in words; what is zero and bad stays unsaid."""
    parts = [
        f"{progress.acknowledged:,} trades",
        f"{progress.rate:,.0f}/s",
        f"{progress.lag_s:.2f} s behind",
        f"{progress.refused:,} refused",
    ]
    if progress.retried:
        parts.append(f"{progress.retried:,} tried again")
    if progress.dropped_at_cap:
        parts.append(f"{progress.dropped_at_cap:,} dropped: the log is full")
    return ", ".join(parts)
