"""How fast one gateway process gets a window to all its clients.

The gateway runs on one core, all clients on another, in one process: those of the load
test, which check every frame. Windows are published to a real server as the throttle
does. Every client has to get every window.

A client's time runs from the moment the window is published to the moment its frame
is read. With a large ``--clients`` the clients' own core is a limit too: its share of
busy time is printed.
"""

import argparse
from collections.abc import Sequence
from random import Random
from statistics import median

from machine import end_on_signals, percentile
from pinned_gateway import ISSUES, WINDOW_S, Bench, Stretch, started

from deploy.loadtest.client_mix import Audience, Kind
from deploy.loadtest.system.machine import describe_machine

NEVER_S = 3_600.0
STORM = 10_000
CUT_WITHIN_S = 5.0
HEAD = """ms from the publish; the last client of a window: median and worst window

| case | first | p50 | p99 | last | worst last | KB a frame \
| frames/s of a gateway core | us a frame | clients' core busy |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


def main() -> None:
    """Run the cases that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default="abcde", help="which of a, b, c, d, e")
    parser.add_argument("--clients", default="1000,5000,15000", help="for a and c")
    parser.add_argument("--windows", type=int, default=10, help="of each case")
    parser.add_argument("--asgi", action="store_true", help="write through ASGI")
    arguments = parser.parse_args()
    end_on_signals()
    counts = [int(count) for count in arguments.clients.split(",")]
    cases, windows = set(arguments.cases), arguments.windows
    traded = Random(1).sample(ISSUES, 900)
    memory, storm = [], ""
    print(f"Machine: {describe_machine()}\n\n{HEAD}")
    for count in counts if cases & {"a", "c"} else []:
        with started(writes_directly=not arguments.asgi) as bench:
            empty = bench.memory()
            bench.connect(Audience(count))
            memory.append((count, (bench.memory() - empty) / count / 1_024))
            if "a" in cases:
                measure(bench, f"a: {count:,} clients, 30 issues each", ISSUES, windows)
    for count in (200, 1_000) if "b" in cases else ():
        with started(writes_directly=not arguments.asgi) as bench:
            bench.connect(Audience(count, {"market": 1}))
            name = f"b: {count:,} clients, `*`, 900 issues a window"
            measure(bench, name, traded, windows)
    if "e" in cases:
        with started(writes_directly=not arguments.asgi) as bench:
            tenth: dict[Kind, float] = {"watch": 9, "stalled": 1}
            bench.connect(
                Audience(5_000, tenth, stall_s=NEVER_S, slow_watch_market=False)
            )
            name = "e: 4,500 of 5,000, a tenth reads nothing"
            measure(bench, name, ISSUES, windows)
    if "d" in cases:
        with started(writes_directly=not arguments.asgi) as bench:
            storm = measure_storm(bench, STORM)
    if "c" in cases:
        print("\n| c: idle clients | KiB of gateway memory each |\n| ---: | ---: |")
        for count, kib in memory:
            print(f"| {count:,} | {kib:.1f} |")
    if storm:
        print(f"\n{storm}")


def measure(bench: Bench, name: str, isins: Sequence[str], windows: int) -> None:
    """Publish windows, the first for warming up; print what became of the others.

    Raises SystemExit if a promise was broken, or a client did not get a window.
    """
    bench.publish(isins, 1)
    bench.clients.ticks()
    stretch = Stretch()
    bench.add_windows(stretch, isins, windows)
    seen = bench.clients.ticks().seen
    times_ms = bench.judge(stretch.ends_ms)
    together = [time_ms for window in times_ms for time_ms in window]
    lasts = [window[-1] for window in times_ms]
    gateway_s = sum(stretch.gateway_s)
    print(
        f"| {name} | {median(window[0] for window in times_ms):.0f} "
        f"| {percentile(together, 0.5):.0f} | {percentile(together, 0.99):.0f} "
        f"| {median(lasts):.0f} | {max(lasts):.0f} "
        f"| {seen.bytes / seen.frames / 1e3:.1f} "
        f"| {len(together) / gateway_s:,.0f} | {gateway_s / len(together) * 1e6:.1f} "
        f"| {stretch.clients_s / (windows * WINDOW_S):.0%} |",
        flush=True,
    )


def measure_storm(bench: Bench, count: int) -> str:
    """Have all clients lose their connection and come back with their position."""
    bench.connect(Audience(count))
    bench.publish(ISSUES, 1)
    bench.clients.ticks()
    took_s, gateway_s = bench.reconnect(count, CUT_WITHIN_S)
    seen = bench.clients.ticks().seen
    each_us = gateway_s / count * 1e6
    return (
        f"d: {count:,} clients lost their connection and were back within "
        f"{took_s:.1f} s ({CUT_WITHIN_S:g} s of them on purpose), {seen.resumed:,} "
        f"of them resumed; {seen.refused:,} refusals on the way; {each_us:.0f} us "
        "of the gateway's core each"
    )


if __name__ == "__main__":
    main()
