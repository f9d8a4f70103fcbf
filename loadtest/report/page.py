"""One HTML page from a result: the terminal's words, and every series drawn. Pure.

Everything is in the page: it loads nothing and has no script.
"""

from collections.abc import Mapping, Sequence
from html import escape
from io import StringIO
from string import Template

from rich.console import Console

from loadtest.figures import words
from loadtest.report.terminal import summary
from loadtest.results import Outcome, Points, Result

WIDTH, HEIGHT = 900, 150
COLOURS = ("#1f6feb", "#b35900", "#1a7f37", "#8250df", "#bf3989", "#57606a", "#0a7b83")
PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width"><title>$title</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; padding: 0 1em;
  max-width: 62em; color: #1f2328; background: #fff }
pre { font: 13px/1.4 ui-monospace, monospace; overflow-x: auto }
h2 { font-size: 1.1em; margin: 1.5em 0 0 }
svg { width: 100%; background: #f6f8fa }
polyline { fill: none; stroke-width: 1.5; vector-effect: non-scaling-stroke }
</style></head><body>
<h1>$title</h1>
<p>$command<br>$machine</p>
$summary
$plots
</body></html>
""")
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render(result: Result) -> str:
    console = Console(width=110, record=True, file=StringIO(), legacy_windows=False)
    console.print(summary(result))
    return PAGE.substitute(
        policy=POLICY,
        title=escape(result.title),
        command=escape(result.command),
        machine=escape(result.machine),
        summary=console.export_html(
            inline_styles=True, code_format='<pre tabindex="0">{code}</pre>'
        ),
        plots="\n".join(
            _plot(title, at_ms, lines)
            for title, at_ms, lines in _series(result.outcome)
            if at_ms
        ),
    )


def _series(outcome: Outcome) -> list[tuple[str, Sequence[float], dict[str, Points]]]:
    """Return what is drawn: a title with the unit, an axis, and lines by name."""
    seconds, windows = outcome.seconds, outcome.windows
    lag = {
        "p50": windows.lag_p50_ms,
        "p99": windows.lag_p99_ms,
        "longest": windows.lag_max_ms,
        "publish": windows.publish_ms,
    }
    staleness = {
        "mean": windows.staleness_mean_ms,
        "p99": windows.staleness_p99_ms,
    }
    cpu = {process.name: process.cpu for process in outcome.processes}
    memory = {process.name: process.memory_mib for process in outcome.processes}
    return [
        ("Lag, ms", windows.end_ms, lag),
        ("Staleness, ms", windows.end_ms, staleness),
        ("Trades in a window", windows.end_ms, {"trades": windows.trades}),
        ("Clients with a merged window", windows.end_ms, {"merged": windows.merged}),
        ("Trades a second", seconds.at_ms, {"trades": seconds.append_rate}),
        ("Feed behind, ms", seconds.at_ms, {"behind": seconds.behind_ms}),
        ("Clients connected", seconds.at_ms, {"clients": seconds.clients}),
        ("Bytes a second to clients", seconds.at_ms, {"bytes": seconds.byte_rate}),
        ("Cores", seconds.at_ms, {"machine": seconds.machine_cpu, **cpu}),
        ("Memory, MiB", seconds.at_ms, memory),
    ]


def _plot(title: str, at_ms: Sequence[float], lines: Mapping[str, Points]) -> str:
    """Return a drawing from 0 to the greatest value, and what each line reached."""
    most = max((p for points in lines.values() for p in points if p), default=0) or 1
    shapes, legend = [], []
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        shapes += [
            f'<polyline stroke="{colour}" points="{stretch}"/>'
            for stretch in stretches(at_ms, points, most)
        ]
        reached = max((p for p in points if p is not None), default=None)
        legend.append(
            f'<span style="color: {colour}">{escape(name.strip())}</span>'
            f" up to {_figure(reached)}"
        )
    return (
        f"<h2>{escape(title)}</h2><div>{', '.join(legend)}; "
        f"{words.duration(at_ms[-1] - at_ms[0])}</div>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(title)} over time">{"".join(shapes)}</svg>'
    )


def stretches(at_ms: Sequence[float], points: Points, most: float) -> list[str]:
    """Return the corners of a line, as many stretches as what is unknown leaves."""
    span_ms = (at_ms[-1] - at_ms[0]) or 1
    found: list[list[str]] = [[]]
    for moment_ms, point in zip(at_ms, points, strict=True):
        if point is None:
            found.append([])
        else:
            x = (moment_ms - at_ms[0]) / span_ms * WIDTH
            found[-1].append(f"{x:.1f},{HEIGHT - point / most * HEIGHT:.1f}")
    return [" ".join(corners) for corners in found if corners]


def _figure(value: float | None) -> str:
    return words.NONE if value is None else f"{value:,.{0 if value >= 10 else 2}f}"
