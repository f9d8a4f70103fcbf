"""One engine on a topic that is full: how fast the backlog is worked off."""

import time

from machine import Row, running_server

from bench.peers.comparison import compare
from bench.peers.listener import Listener, listening
from bench.peers.messages import WINDOW_MS, Received, arrivals, rows_of
from bench.peers.meter import metered
from bench.peers.running import CHANNELS, Running, running
from bench.peers.topics import Backlog

SETTLE_WINDOWS = 3
"""Until what is late has come as well, if it comes."""

_ASK_EVERY_S = 0.1


def measure_drain(engine: str, backlog: Backlog, within_s: float) -> Row:
    """Run an engine on a backlog until a subscriber has its last window."""
    with (
        running_server() as server,
        listening(server.port, server.folder, *CHANNELS) as listener,
    ):
        launched_ms = time.time() * 1_000
        with (
            running(engine, server, backlog.log) as run,
            metered(run.program.group) as meter,
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
    total_s = meter.processor_s(ended_ms)
    seconds = (ended_ms - began_ms) / 1_000
    spent_s = total_s - meter.processor_s(began_ms)
    return {
        "engine": engine,
        "trades/s": f"{trades / seconds:,.0f}",
        "from launch, trades/s": f"{trades * 1_000 / (ended_ms - launched_ms):,.0f}",
        "processor, µs a trade": f"{1e6 * spent_s / trades:.1f}",
        "with the start, s": f"{total_s:.0f}",
        "memory, MiB": f"{meter.memory_mib(began_ms, ended_ms):,.0f}",
        **compare(backlog.expected.newest, regular),
        "late trades shown": f"{len(backlog.late & shown)} of {len(backlog.late)}",
        "counted as lost": f"{run.late()}",
    }


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
