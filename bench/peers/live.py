"""One engine on a topic that is being fed: how late each window is, and silence."""

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fill import Log
from machine import Row, percentile, running_server

from bench.peers.comparison import Rows, compare
from bench.peers.listener import listening
from bench.peers.messages import WINDOW_MS, arrivals, rows_of
from bench.peers.meter import Meter, metered
from bench.peers.running import CHANNELS, running
from bench.peers.topics import read_topic

SILENT_WINDOWS = 3


class Feed(NamedTuple):
    """What to feed: at each rate some seconds of warm-up, then so many windows."""

    rates: Sequence[int]
    warm_up_s: float
    windows: int
    instruments: int


class Phase(NamedTuple):
    """A feed at one rate, and the time that counts of it, in ms since 1970."""

    rate: int
    from_ms: float
    to_ms: float
    behind_ms: float

    def windows(self) -> range:
        """Return the ends of the windows that lie in it."""
        first = -(-int(self.from_ms) // WINDOW_MS) + 1
        return range(first * WINDOW_MS, int(self.to_ms) + 1, WINDOW_MS)


def measure_live(engine: str, log: Log, feed: Feed) -> tuple[list[Row], Row]:
    """Run an engine on an empty topic under each rate, and then in silence.

    Lags are from a window's end to its last message, of windows that came whole.
    """
    with (
        running_server() as server,
        listening(server.port, server.folder, *CHANNELS) as listener,
    ):
        launched_s = time.monotonic()
        with running(engine, server, log) as run:
            run.wait_until_ready()
            ready_s = time.monotonic() - launched_s
            with metered(run.program.group) as meter:
                phases = [_feed(log, rate, feed) for rate in feed.rates]
                time.sleep((SILENT_WINDOWS + 0.5) * WINDOW_MS / 1_000)
            received = listener.news()
            rows = rows_of(run.rows(received))
    expected = read_topic(log).newest
    came = arrivals(received)
    lives = [_live(engine, phase, came, run.parts, meter) for phase in phases]
    return lives, _silence(engine, ready_s, expected, came, rows)


def _feed(log: Log, rate: int, feed: Feed) -> Phase:
    seconds = feed.warm_up_s + (feed.windows + 1) * WINDOW_MS / 1_000
    fed = log.feed(rate, seconds, feed.instruments)
    from_ms = fed.started_ms + feed.warm_up_s * 1_000
    return Phase(rate, from_ms, fed.ended_ms, fed.behind_ms)


def _live(
    engine: str,
    phase: Phase,
    came: Mapping[int, Sequence[float]],
    parts: int,
    meter: Meter,
) -> Row:
    windows = phase.windows()
    whole = [end_ms for end_ms in windows if len(came.get(end_ms, ())) >= parts]
    lags = [max(came[end_ms]) - end_ms for end_ms in whole] or [float("nan")]
    messages = sum(len(came.get(end_ms, ())) for end_ms in windows)
    spent_s = meter.processor_s(phase.to_ms) - meter.processor_s(phase.from_ms)
    return {
        "engine": engine,
        "trades/s": f"{phase.rate:,}",
        "windows": f"{len(whole)} of {len(windows)}",
        "p50, ms": f"{percentile(lags, 0.5):.0f}",
        "p99, ms": f"{percentile(lags, 0.99):.0f}",
        "max, ms": f"{max(lags):.0f}",
        "messages a window": f"{messages / max(1, len(windows)):.1f}",
        "cores": f"{spent_s * 1_000 / (phase.to_ms - phase.from_ms):.2f}",
        "memory, MiB": f"{meter.memory_mib(phase.from_ms, phase.to_ms):,.0f}",
        "feed behind, ms": f"{phase.behind_ms:.0f}",
    }


def _silence(
    engine: str,
    ready_s: float,
    expected: Rows,
    came: Mapping[int, Sequence[float]],
    rows: Rows,
) -> Row:
    """Return what became of the last window, and how right the others were."""
    last_ms = max(expected)
    due, there = expected.pop(last_ms), rows.pop(last_ms, {})
    right = sum(there.get(isin) == version for isin, version in due.items())
    fate = "never came"
    if right and came.get(last_ms):
        after_ms = max(came[last_ms]) - last_ms
        fate = f"{right} of {len(due)} rows, after {after_ms:.0f} ms"
    return {
        "engine": engine,
        "ready after, s": f"{ready_s:.0f}",
        "the last window in silence": fate,
        **compare(expected, rows),
    }
