"""How fast one gateway process gets a window to all its clients.

The gateway runs on one core, all clients on another, in one process: those of the load
test, which check every frame. Windows are published to a real server as the throttle
does. Every client has to get every window.

A client's time runs from the moment the window is published to the moment its frame
is read. With a large ``--clients`` the clients' own core is a limit too: its share of
busy time is printed.
"""

import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from statistics import median

import psutil
from machine import Row, options, percentile, print_machine, print_rows
from pinned_gateway import INSTRUMENTS, WINDOW_S, Bench, Stretch, pin, started

from gateway.protocol.key_sets import ALL
from ingest.process.descriptors import raise_descriptor_limit
from loadtest.client_mix import Audience, Kind, Member
from loadtest.clients.crowd import crowd
from loadtest.clients.targets import Target
from loadtest.system.spawned import spawned

NEVER_S = 3_600.0
STORM = 10_000
CUT_WITHIN_S = 5.0
IDLE_S = 30.0
SIZE = "KB a frame"
GAP = "a client's gap, p99"
TITLE = "ms from the publish; the last client: median and worst window"
REST_S = 1.0
"""Between two rounds: caches are as cold as between windows."""


def main() -> None:
    arguments = options(
        __doc__,
        cases=("abcdeop", "which of them; g: o by a peer in Go, which has to be there"),
        clients=("1000,5000,15000", "for o, a and c"),
        windows=(10, "of each case"),
        groups=(0, "of o and a, as well: windows with figures of so many groups"),
        by_position=(False, "rows of o, a and c by position"),
    )
    rows: list[Row] = []
    idle: list[Row] = []
    try:
        run_cases(arguments, rows, idle)
    finally:
        # Also what was measured before a client missed a window.
        print_rows(TITLE, rows)
        if idle:
            print_rows("Idle clients; the longest collections of the gateway, ms", idle)
        print_machine()


def run_cases(arguments: Namespace, rows: list[Row], idle: list[Row]) -> None:
    counts = [int(count) for count in arguments.clients.split(",")]
    cases, windows = set(arguments.cases), arguments.windows
    traded = Random(1).sample(INSTRUMENTS, 900)
    mix: dict[Kind, float] = {"compact" if arguments.by_position else "watch": 1}
    for count in counts if "g" in cases else []:
        with built_peer() as peer, started(peer) as bench:
            bench.connect(Audience(count))
            name = f"g: {count:,} clients, 900 instruments changed, the peer in Go"
            rows.append(measure(bench, name, traded, windows))
    for count in counts if cases & {"a", "c", "o"} else []:
        frame_kb: list[float] = []
        with started() as bench:
            idle_row = connect_idle(bench, Audience(count, mix))
            idle += [idle_row] if "c" in cases else []
            both = {"o": traded, "a": INSTRUMENTS}
            for number, case in enumerate(sorted(cases & both.keys(), reverse=True)):
                if number:
                    # They leave when they are judged.
                    bench.connect(Audience(count, mix))
                changed = f"{len(both[case]):,} instruments changed"
                name = f"{case}: {count:,} clients, {changed}"
                rows.append(measure(bench, name, both[case], windows))
                frame_kb.append(float(rows[-1][SIZE]))
                if arguments.groups:
                    bench.connect(Audience(count, mix))
                    bench.groups = arguments.groups
                    name += f", {bench.groups} groups"
                    rows.append(measure(bench, name, both[case], windows))
                    bench.groups = 0
        rows += [floor_of(count, round(size * 1e3), windows) for size in frame_kb]
    for count in (200, 1_000) if "b" in cases else ():
        with started() as bench:
            bench.connect(Audience(count, {"market": 1}))
            name = f"b: {count:,} clients, `*`, 900 instruments a window"
            rows.append(measure(bench, name, traded, windows))
    if "e" in cases:
        with started() as bench:
            bench.connect(Audience(4_500))
            name = "e: 4,500 clients, nobody else"
            rows.append(measure(bench, name, INSTRUMENTS, windows))
            tenth: dict[Kind, float] = {"watch": 9, "stalled": 1}
            bench.connect(
                Audience(5_000, tenth, stall_s=NEVER_S, slow_watch_market=False)
            )
            name = "e: the same beside 500 that read nothing"
            rows.append(measure(bench, name, INSTRUMENTS, windows))
    if "p" in cases:
        with (
            started() as bench,
            crowd([Target("127.0.0.1", bench.port)], processes=1) as audience,
        ):
            # What polls shares the clients' core, and must not hold them up.
            pin(1, audience.pids[0])
            psutil.Process(audience.pids[0]).nice(19)
            bench.connect(Audience(5_000))
            name = "p: 5,000 clients, nobody else"
            rows.append(measure(bench, name, INSTRUMENTS, windows))
            bench.connect(Audience(5_000))
            audience.join(polling_members(), within_s=WINDOW_S)
            name = "p: the same beside an audience that polls"
            rows.append(measure(bench, name, INSTRUMENTS, windows))
    if "d" in cases:
        with started() as bench:
            print(f"{measure_storm(bench, STORM)}\n")


@contextmanager
def built_peer() -> Iterator[Path]:
    """Build the fan-out in Go; it is there until the block ends."""
    source = Path(__file__).parent / "peers" / "fanout"
    with tempfile.TemporaryDirectory(prefix="fanout-") as folder:
        program = Path(folder) / "fanout"
        subprocess.run(["go", "build", "-C", source, "-o", program, "."], check=True)
        yield program


def polling_members() -> list[Member]:
    """Return 500 pages that poll an instrument, and 20 programs that poll the board.

    Every window has all instruments, so every window makes every entity tag worthless.
    """
    asked = [(isin, 10.0) for isin in INSTRUMENTS[:500]] + [(ALL, 2.0)] * 20
    return [
        Member(number, "polling", (key,), every_s)
        for number, (key, every_s) in enumerate(asked)
    ]


def measure(bench: Bench, name: str, isins: Sequence[str], windows: int) -> Row:
    """Publish windows, the first for warming up; return what became of the others.

    Raises SystemExit if a promise was broken, or a client did not get a window.
    """
    print(name, file=sys.stderr, flush=True)
    bench.publish(isins, 1)
    bench.clients.ticks()
    stretch = Stretch()
    bench.add_windows(stretch, isins, windows)
    seen = bench.clients.ticks().seen
    times_ms, gaps_ms = bench.judge(stretch.ends_ms)
    together = [time_ms for window in times_ms for time_ms in window]
    lasts = [window[-1] for window in times_ms]
    gateway_s = sum(stretch.gateway_s)
    return {
        "case": name,
        "first": f"{median(window[0] for window in times_ms):.0f}",
        "p50": f"{percentile(together, 0.5):.0f}",
        "p99": f"{percentile(together, 0.99):.0f}",
        "last": f"{median(lasts):.0f}",
        "worst last": f"{max(lasts):.0f}",
        GAP: f"{WINDOW_S:g} s ± {percentile(gaps_ms, 0.99):.0f} ms",
        SIZE: f"{seen.bytes / seen.frames / 1e3:.1f}",
        "frames/s of a gateway core": f"{len(together) / gateway_s:,.0f}",
        "us a frame": f"{gateway_s / len(together) * 1e6:.1f}",
        "clients' core busy": f"{stretch.clients_s / (windows * WINDOW_S):.0%}",
    }


def floor_of(count: int, size: int, windows: int) -> Row:
    """Return what a loop takes that only writes frames of this size to sockets.

    It is Python's ``os.write``, which costs 0.2 us beside the system call; on core 0.
    """
    with spawned(_measure_floor, count, size, windows) as (ours, _):
        each_us, last_ms = ours.recv()
    name = f"floor: {count:,} sockets, a loop that only writes"
    cells = ("", "", "", f"{last_ms:.0f}", "", "", f"{size / 1e3:.1f}")
    names = ("case", "first", "p50", "p99", "last", "worst last", GAP, SIZE)
    return dict(zip(names, (name, *cells), strict=True)) | {
        "frames/s of a gateway core": f"{1e6 / each_us:,.0f}",
        "us a frame": f"{each_us:.1f}",
        "clients' core busy": "",
    }


@contextmanager
def reading(count: int) -> Iterator[list[socket.socket]]:
    """Yield the near ends of so many loopback connections; all is read on core 1."""
    raise_descriptor_limit()
    with spawned(_read, count) as (ours, _), ExitStack() as stack:
        address = ours.recv()
        near = [
            stack.enter_context(socket.create_connection(address)) for _ in range(count)
        ]
        # All are accepted.
        ours.recv()
        yield near


def _measure_floor(results: Connection, count: int, size: int, rounds: int) -> None:
    pin(0)
    took: list[tuple[float, float]] = []
    with reading(count) as near:
        descriptors = [each.fileno() for each in near]
        for number in range(rounds):
            # A frame of its own for each, as for clients with lists of their own.
            frames = [os.urandom(16) + bytes(size - 16) for _ in descriptors]
            time.sleep(REST_S)
            began_s, busy_s = time.perf_counter(), time.process_time()
            for descriptor, frame in zip(descriptors, frames, strict=True):
                os.write(descriptor, frame)
            if number:
                now_s = time.perf_counter()
                took.append((time.process_time() - busy_s, now_s - began_s))
    each_us = median(busy_s for busy_s, _ in took) / count * 1e6
    results.send((each_us, 1e3 * median(wall_s for _, wall_s in took)))


def _read(ready: Connection, count: int) -> None:
    pin(1)
    raise_descriptor_limit()
    with socket.create_server(("127.0.0.1", 0), backlog=4_096) as server:
        ready.send(server.getsockname())
        chosen = selectors.DefaultSelector()
        for _ in range(count):
            far, _ = server.accept()
            chosen.register(far, selectors.EVENT_READ, far)
        ready.send(None)
        while True:
            for key, _ in chosen.select():
                if not key.data.recv(65_536):
                    return


def connect_idle(bench: Bench, audience: Audience) -> Row:
    """Connect clients; return what they cost while nothing is published."""
    empty = bench.memory()
    bench.longest_collection_s()
    bench.connect(audience)
    count = audience.clients
    each_kib = (bench.memory() - empty) / count / 1_024
    joining_s = bench.longest_collection_s()
    busy_s = bench.busy_s()
    time.sleep(IDLE_S)
    return {
        "clients": f"{count:,}",
        "KiB of gateway memory each": f"{each_kib:.1f}",
        "of its core": f"{(bench.busy_s() - busy_s) / IDLE_S:.1%}",
        "as they came": f"{joining_s * 1e3:.0f}",
        "then": f"{bench.longest_collection_s() * 1e3:.0f}",
    }


def measure_storm(bench: Bench, count: int) -> str:
    """Have all clients lose their connection and come back with their position."""
    bench.connect(Audience(count))
    bench.publish(INSTRUMENTS, 1)
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
