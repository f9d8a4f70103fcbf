"""One engine on a topic that is fed, then silent, or full: how late, and how fast."""

import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from fill import Log
from machine import Row, percentile, running_server

from bench.peers.comparison import Rows, compare
from bench.peers.listener import Listener, listening
from bench.peers.messages import WINDOW_MS, Received, arrivals, rows_of
from bench.peers.running import CHANNELS, Running, running
from bench.peers.topics import Backlog, read_topic
from cli.local.process_tree import Named, job_family
from loadtest.figures.percentiles import mean_of
from loadtest.system.usage import Usage, usage_of

SILENT_WINDOWS = 3
SETTLE_WINDOWS = 3
"""Until what is late has come as well, if it comes."""

_ASK_EVERY_S = 0.1


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
            with usage_of(lambda: _family(run), list) as usage:
                phases = [_feed(log, rate, feed) for rate in feed.rates]
                time.sleep((SILENT_WINDOWS + 0.5) * WINDOW_MS / 1_000)
            received = listener.news()
            rows = rows_of(run.rows(received))
    expected = read_topic(log).newest
    came = arrivals(received)
    lives = [_live(engine, phase, came, run.parts, usage) for phase in phases]
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
    usage: Usage,
) -> Row:
    windows = phase.windows()
    whole = [end_ms for end_ms in windows if len(came.get(end_ms, ())) >= parts]
    lags = [max(came[end_ms]) - end_ms for end_ms in whole] or [float("nan")]
    messages = sum(len(came.get(end_ms, ())) for end_ms in windows)
    cores, looks_mib = _used(usage, phase.from_ms, phase.to_ms)
    return {
        "engine": engine,
        "trades/s": f"{phase.rate:,}",
        "windows": f"{len(whole)} of {len(windows)}",
        "p50, ms": f"{percentile(lags, 0.5):.0f}",
        "p99, ms": f"{percentile(lags, 0.99):.0f}",
        "max, ms": f"{max(lags):.0f}",
        "messages a window": f"{messages / max(1, len(windows)):.1f}",
        "cores": f"{cores:.2f}",
        "memory, MiB": f"{median(looks_mib):,.0f}",
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


def measure_drain(engine: str, backlog: Backlog, within_s: float) -> Row:
    """Run an engine on a backlog until a subscriber has its last window."""
    with (
        running_server() as server,
        listening(server.port, server.folder, *CHANNELS) as listener,
    ):
        launched_ms = time.time() * 1_000
        with (
            running(engine, server, backlog.log) as run,
            usage_of(lambda: _family(run), list) as usage,
        ):
            received, ended_ms = _wait(
                run, listener, max(backlog.expected.newest), within_s
            )
            time.sleep(SETTLE_WINDOWS * WINDOW_MS / 1_000)
            began_ms = run.began_ms()
            received += listener.news()
            rows = rows_of(run.rows(received))
    trades = backlog.expected.entries
    shown = {(isin, version) for one in rows.values() for isin, version in one.items()}
    late = {isin for isin, _ in backlog.late}
    regular = {
        end_ms: {isin: v for isin, v in one.items() if isin not in late}
        for end_ms, one in rows.items()
    }
    seconds = (ended_ms - began_ms) / 1_000
    cores, _ = _used(usage, began_ms, ended_ms)
    total_s = _used(usage, launched_ms, ended_ms)[0] * (ended_ms - launched_ms) / 1_000
    # A drain may take less time than lies between two looks at the memory.
    _, looks_mib = _used(usage, launched_ms, ended_ms + SETTLE_WINDOWS * WINDOW_MS)
    return {
        "engine": engine,
        "trades/s": f"{trades / seconds:,.0f}",
        "from launch, trades/s": f"{trades * 1_000 / (ended_ms - launched_ms):,.0f}",
        "processor, µs a trade": f"{1e6 * cores * seconds / trades:.1f}",
        "with the start, s": f"{total_s:.0f}",
        "peak memory, MiB": f"{max(looks_mib):,.0f}",
        **compare(backlog.expected.newest, regular),
        "late trades shown": f"{len(backlog.late & shown)} of {len(backlog.late)}",
        "counted as lost": f"{run.late()}",
    }


def _family(run: Running) -> list[Named]:
    """Return an engine's processes, all under one name: they are added up."""
    return [Named("engine", one.process) for one in job_family("", run.program.group)]


def _used(usage: Usage, from_ms: float, to_ms: float) -> tuple[float, list[float]]:
    """Return how many cores were used between two moments, and MiB at each look."""
    [engine] = usage.processes(range(int(from_ms), int(to_ms), 1_000))
    looks_mib = [mib for mib in engine.memory_mib if mib is not None]
    return mean_of(engine.cpu) or 0.0, looks_mib


def _wait(
    run: Running, listener: Listener, target_ms: int, within_s: float
) -> tuple[list[Received], float]:
    """Wait for a window; return what has come, and when that window was whole."""
    received: list[Received] = []
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        received += listener.news()
        times = arrivals(received).get(target_ms, ())
        if len(times) >= run.parts:
            return received, max(times)
        run.program.check_runs()
        time.sleep(_ASK_EVERY_S)
    raise SystemExit(f"the backlog was not worked off within {within_s:g} s")
