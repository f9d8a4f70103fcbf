"""What was measured of an engine, and the tables of it. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.peers.oracle import Verdict
from deploy.loadtest.figures.percentiles import nearest_rank


@dataclass(frozen=True, slots=True)
class Live:
    """One engine under one rate.

    ``lags_ms`` are from the end of a window to its last message, of windows that came
    whole; ``cores`` the mean processor, ``memory_mib`` the median PSS.
    """

    engine: str
    rate: int
    lags_ms: Sequence[float]
    windows: int
    messages: int
    cores: float
    memory_mib: float
    feed_behind_ms: float


@dataclass(frozen=True, slots=True)
class Silence:
    """What became of the last window before the feed stopped, and of all before it.

    ``came`` of its ``expected`` rows came within three windows; ``verdict`` is of every
    other window of the run.
    """

    engine: str
    ready_s: float
    expected: int
    came: int
    after_ms: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Drained:
    """How an engine worked off a backlog.

    ``seconds`` count from the first record, ``launch_s`` from the process's start;
    ``processor_s`` from the first record, ``processor_total_s`` from the start. Of
    ``late`` trades ``late_shown`` were published, ``late_counted`` are lost by the
    engine's own count.
    """

    engine: str
    trades: int
    seconds: float
    launch_s: float
    processor_s: float
    processor_total_s: float
    memory_mib: float
    verdict: Verdict
    late: int
    late_shown: int
    late_counted: int


def live_table(results: Sequence[Live]) -> str:
    """Return the live figures; lags over the windows of all rounds, else medians."""
    head = (
        "engine",
        *("trades/s", "windows", "p50, ms", "p99, ms", "max, ms"),
        *("messages a window", "cores", "memory, MiB", "feed behind, ms"),
    )
    rows = []
    for engine, rate in _distinct((r.engine, r.rate) for r in results):
        runs = [r for r in results if (r.engine, r.rate) == (engine, rate)]
        lags = sorted(lag for run in runs for lag in run.lags_ms)
        windows = sum(run.windows for run in runs)
        rows.append(
            (
                *(engine, f"{rate:,}"),
                str(windows) if len(lags) == windows else f"{len(lags)} of {windows}",
                *(_at(lags, share) for share in (500, 990, 1_000)),
                f"{sum(run.messages for run in runs) / max(1, windows):.1f}",
                f"{_mid(runs, lambda r: r.cores):.2f}",
                f"{_mid(runs, lambda r: r.memory_mib):,.0f}",
                f"{max(run.feed_behind_ms for run in runs):.0f}",
            )
        )
    return _table(head, rows)


def silence_table(results: Sequence[Silence]) -> str:
    """Return what became of the last windows, and how right the others were."""
    head = (
        *("engine", "ready after, s", "the last window in silence"),
        *("rows compared", "missing", "wrong", "backwards"),
    )
    rows = []
    for engine in _distinct(r.engine for r in results):
        runs = [r for r in results if r.engine == engine]
        rows.append(
            (
                *(engine, f"{_mid(runs, lambda r: r.ready_s):.0f}"),
                ", ".join(map(_fate, runs)),
                *_verdict([run.verdict for run in runs]),
            )
        )
    return _table(head, rows)


def drain_table(results: Sequence[Drained]) -> str:
    """Return how fast backlogs were worked off, medians, and how right it was."""
    head = (
        *("engine", "trades/s", "each round", "from launch, trades/s"),
        *("processor, µs a trade", "with the start, s", "memory, MiB"),
        *("rows compared", "missing", "wrong", "backwards"),
        *("late trades shown", "counted as lost"),
    )
    rows = []
    for engine in _distinct(r.engine for r in results):
        runs = [r for r in results if r.engine == engine]
        late = sum(run.late for run in runs)
        rows.append(
            (
                *(engine, f"{_mid(runs, lambda r: r.trades / r.seconds):,.0f}"),
                ", ".join(f"{run.trades / run.seconds:,.0f}" for run in runs),
                f"{_mid(runs, lambda r: r.trades / r.launch_s):,.0f}",
                f"{_mid(runs, lambda r: 1e6 * r.processor_s / r.trades):.1f}",
                f"{_mid(runs, lambda r: r.processor_total_s):.0f}",
                f"{_mid(runs, lambda r: r.memory_mib):,.0f}",
                *_verdict([run.verdict for run in runs]),
                f"{sum(run.late_shown for run in runs)} of {late}",
                f"{sum(run.late_counted for run in runs)}",
            )
        )
    return _table(head, rows)


def _fate(run: Silence) -> str:
    if run.came == 0:
        return "never came"
    if run.came < run.expected or run.after_ms is None:
        return f"{run.came} of {run.expected} rows came"
    return f"whole, after {run.after_ms:.0f} ms"


def _verdict(verdicts: Sequence[Verdict]) -> Iterator[str]:
    total = Verdict.total(verdicts)
    counts = (total.expected, total.missing, total.wrong, total.backwards)
    return (f"{count:,}" for count in counts)


def _distinct(names: Any) -> list[Any]:
    return list(dict.fromkeys(names))


def _mid(runs: Sequence[Any], value: Callable[[Any], float]) -> float:
    return median(map(value, runs))


def _at(lags: Sequence[float], permille: int) -> str:
    return f"{nearest_rank(lags, permille):.0f}" if lags else "-"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *rows))
