"""Which plots a report has, and what each of them shows. Pure."""

from collections.abc import Iterable

from bench.load.page.plot import Limit, Line, Plot, Unit
from bench.load.results import Outcome, Points
from bench.load.thresholds import parse

ORDER = ("lag", "staleness", "merged", "rate", "behind", "conflation", "clients")
OUT = ("frames", "items", "bytes", "cpu")


def plots(outcome: Outcome) -> list[Plot]:
    """Return every plot of an outcome of which something was measured."""
    every = {one.name: one for one in (*_by_window(outcome), *_by_second(outcome))}
    return [
        plot
        for plot in map(every.__getitem__, (*ORDER, *OUT))
        if any(point is not None for line in plot.lines for point in line.points)
    ]


def _by_window(outcome: Outcome) -> Iterable[Plot]:
    windows = outcome.windows
    yield Plot(
        "lag",
        "Lag",
        "From a window's end until clients that read promptly had it, percentiles over "
        "those clients; beneath, until the window was published.",
        "ms",
        windows.end_ms,
        [
            Line("published", windows.publish_ms, "line-strong", is_filled=True),
            Line("p50", windows.lag_p50_ms, "green"),
            Line("p90", windows.lag_p90_ms, "accent", (6, 3)),
            Line("p99", windows.lag_p99_ms, "amber"),
            Line("longest", windows.lag_max_ms, "red", (2, 3)),
        ],
        _limits(outcome, "lag"),
        per="windows",
        size="whole",
    )
    yield Plot(
        "staleness",
        "Staleness",
        "At random moments, for random keys of random clients: for how long a newer "
        "trade than the shown one had been in the log.",
        "ms",
        windows.end_ms,
        [
            Line("mean", windows.staleness_mean_ms, "accent", is_filled=True),
            Line("p99", windows.staleness_p99_ms, "amber", (6, 3)),
        ],
        _limits(outcome, "staleness"),
        per="windows",
    )
    yield Plot(
        "conflation",
        "Trades and rows of every window",
        "Trades that fell into a window, and the rows published in their place.",
        "count",
        windows.end_ms,
        [
            Line("trades", windows.trades, "accent", is_filled=True),
            Line("rows", windows.rows, "amber", (6, 3)),
        ],
        per="windows",
    )
    yield Plot(
        "merged",
        "Merged windows",
        "Prompt clients that got this window together with a later one, because they "
        "or the gateway were behind.",
        "count",
        windows.end_ms,
        [Line("clients", windows.merged, "amber", is_filled=True)],
        per="windows",
    )


def _by_second(outcome: Outcome) -> Iterable[Plot]:
    seconds = outcome.seconds
    yield Plot(
        "rate",
        "Trades in",
        "Trades that fell due each second, and those that the log acknowledged.",
        "count",
        seconds.at_ms,
        [
            Line("appended", seconds.append_rate, "accent", is_filled=True),
            Line("due", seconds.due_rate, "amber", (6, 3)),
        ],
    )
    yield Plot(
        "behind",
        "The feed behind its schedule",
        "Longest time from a trade's due moment to its acknowledgement.",
        "ms",
        seconds.at_ms,
        [Line("behind", seconds.behind_ms, "accent", is_filled=True)],
        _limits(outcome, "feed.behind"),
    )
    yield Plot(
        "clients",
        "Clients",
        "Connected at the same time.",
        "count",
        seconds.at_ms,
        # Of clients the fewest are kept: what is worth seeing is when they were lost.
        [Line("connected", seconds.clients, "accent", is_filled=True, keeps="least")],
    )
    out = "Received by all clients each second, over a window"
    for name, title, about, points in (
        ("frames", "Frames out", f"{out}.", seconds.frame_rate),
        ("items", "Prices out", f"{out}, in those frames.", seconds.item_rate),
        ("bytes", "Bytes out", f"{out}, payload.", seconds.byte_rate),
    ):
        line = Line(title.split()[0].lower(), points, "accent", is_filled=True)
        unit: Unit = "bytes" if name == "bytes" else "count"
        yield Plot(name, title, about, unit, seconds.at_ms, [line], size="third")
    yield Plot(
        "cpu",
        "CPU",
        "Cores in use: by the whole machine, by what was tested, and by the load test.",
        "cores",
        seconds.at_ms,
        [
            Line("machine", seconds.machine_cpu, "line-strong", is_filled=True),
            Line("tested", _used(outcome, is_ours=False), "accent"),
            Line("load test", _used(outcome, is_ours=True), "amber", (6, 3)),
        ],
        size="whole",
    )


def _used(outcome: Outcome, is_ours: bool) -> Points:
    """Return the CPU of all processes of one side; unknown where none is known."""
    chosen = [one.cpu for one in outcome.processes if one.is_ours is is_ours]
    sums: list[float | None] = []
    for number in range(len(outcome.seconds.at_ms)):
        known = [cpu[number] for cpu in chosen if number < len(cpu)]
        numbers = [one for one in known if one is not None]
        sums.append(sum(numbers) if numbers else None)
    return sums


def _limits(outcome: Outcome, family: str) -> list[Limit]:
    """Return the thresholds of a family of times, as lines."""
    found = []
    for check in outcome.checks:
        try:
            rule = parse(check.rule)
        except ValueError:
            continue  # A rule of a newer version: it is in the verdict all the same.
        if rule.metric.rpartition(".")[0] == family:
            found.append(Limit(rule.limit, check.rule))
    return found
