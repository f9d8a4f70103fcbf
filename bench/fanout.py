"""How fast one gateway process gets a window to all its clients.

The gateway runs on one core, all clients on another, in one process: a client of
another make (picows), which shares no code with the gateway. Windows are published to
a real server as the throttle does. Every client has to get every window.

A client's time runs from just before the window is published to the moment its frame
is read. With a large ``--clients`` the clients' own core is a limit too: its share of
busy time is printed.
"""

import argparse
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from statistics import median
from typing import Any

import psutil
from machine import end_on_signals, percentile, running_server

from bench.load.machine import describe_machine
from deploy.ports import free_port
from gateway.server import listen
from gateway.settings import GatewaySettings
from tests.conftest import eventually
from tests.gateway.crowd import Crowd, Returned, crowd, pin
from tests.gateway.publisher import Publisher
from tests.gateway.samples import make_isins, make_row
from tests.gateway.servers import Gateway
from throttle.snapshot import Row

ISSUES = make_isins(2_879)
KEYS_EACH = 30
WINDOW_S = 2.0
RECONNECT_WITHIN_S = 5.0


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
    windows = arguments.windows
    rows = []
    memory = []
    for count in counts if "a" in arguments.cases or "c" in arguments.cases else []:
        with started(writes_directly=not arguments.asgi) as bench:
            empty = bench.memory()
            bench.connect(count, KEYS_EACH)
            memory.append((count, (bench.memory() - empty) / count / 1_024))
            if "a" in arguments.cases:
                name = f"a: {count:,} clients, {KEYS_EACH} issues each"
                rows.append((name, bench.publish(ISSUES, windows=windows)))
    if "b" in arguments.cases:
        for count in (200, 1_000):
            with started(writes_directly=not arguments.asgi) as bench:
                bench.connect(count, 0)
                some = Random(1).sample(ISSUES, 900)
                name = f"b: {count:,} clients, `*`, 900 issues a window"
                rows.append((name, bench.publish(some, windows=windows)))
    if "e" in arguments.cases:
        with started(writes_directly=not arguments.asgi) as bench:
            bench.connect(5_000, KEYS_EACH)
            name = "e: 4,500 of 5,000, a tenth reads nothing"
            rows.append((name, bench.publish(ISSUES, windows=windows, stalled=500)))
    storm = None
    if "d" in arguments.cases:
        with started(writes_directly=not arguments.asgi) as bench:
            bench.connect(10_000, KEYS_EACH)
            bench.publish(ISSUES, windows=1)
            storm = bench.reconnect()
    report(rows, memory if "c" in arguments.cases else [], storm)


@dataclass
class Receipts:
    """What happened to the windows of one case."""

    first_ms: list[float] = field(default_factory=list)
    last_ms: list[float] = field(default_factory=list)
    all_ms: list[float] = field(default_factory=list)
    frames: int = 0
    bytes: int = 0
    gateway_cpu_s: float = 0
    clients_busy: float = 0


@dataclass(frozen=True)
class Delivery:
    """One window: when each client had it, in order, and what that cost."""

    times_ms: list[float]
    bytes: int
    gateway_cpu_s: float
    clients_cpu_s: float


@dataclass(frozen=True)
class Storm:
    """All clients came back."""

    returned: Returned
    gateway_cpu_s: float


def serve(writes_directly: bool, chosen: dict[str, Any]) -> None:
    """Run a gateway on the first core."""
    pin(0)
    most = {"max_clients": 20_000, "max_clients_per_address": 20_000}
    settings = GatewaySettings.model_validate({**most, **chosen})
    listen(settings, writes_directly=writes_directly).run()


class Bench:
    """A server, a gateway and a process full of clients."""

    def __init__(
        self, publisher: Publisher, gateway: Gateway, pid: int, clients: Crowd
    ) -> None:
        self.port = gateway.port
        self._publisher = publisher
        self._process = psutil.Process(pid)
        self._clients = clients
        self._count = 0

    def memory(self) -> float:
        """Return the gateway's resident memory, bytes."""
        time.sleep(1)
        return float(self._process.memory_info().rss)

    def connect(self, count: int, keys_each: int) -> None:
        """Connect clients and have them subscribe."""
        self._clients.connect(count, ISSUES, keys_each)
        self._count = count

    def reconnect(self) -> Storm:
        """Have all clients lose their connection and come back with their position."""
        busy_s = self.busy_s()
        returned = self._clients.reconnect(RECONNECT_WITHIN_S)
        return Storm(returned, self.busy_s() - busy_s)

    def publish(self, issues: list[str], *, windows: int, stalled: int = 0) -> Receipts:
        """Publish windows with all of these issues; gather who got them when."""
        receipts = Receipts()
        if stalled:
            self._clients.stall(stalled)
        for number in range(windows + 1):
            rows = [make_row(isin, seq=number + 2) for isin in issues]
            got = self.publish_window(rows, self._count - stalled)
            if number == 0:
                # The first one is for warming up.
                continue
            receipts.first_ms.append(got.times_ms[0])
            receipts.last_ms.append(got.times_ms[-1])
            receipts.all_ms += got.times_ms
            receipts.frames += len(got.times_ms)
            receipts.bytes += got.bytes
            receipts.gateway_cpu_s += got.gateway_cpu_s
            receipts.clients_busy += got.clients_cpu_s / (got.times_ms[-1] / 1e3)
        return receipts

    def publish_window(self, rows: list[Row], expected: int) -> Delivery:
        """Publish the next window when its time has come; gather who got it when."""
        time.sleep(WINDOW_S - time.time() % WINDOW_S)
        window = round(time.time() / WINDOW_S) * round(WINDOW_S * 1_000)
        busy_s = self.busy_s()
        # What the gateway waits for is the message: all else is stored before.
        snapshot = self._publisher.publish_lost(*rows, window=window)
        time.sleep(0.2)
        began_ns = time.monotonic_ns()
        self._publisher.repeat(snapshot)
        if not expected:
            return Delivery([], 0, self.busy_s() - busy_s, 0)
        got = self._clients.gather(self._publisher.offset, expected)
        times_ms = sorted((t - began_ns) / 1e6 for t in got.times_ns)
        return Delivery(times_ms, got.bytes, self.busy_s() - busy_s, got.cpu_s)

    def busy_s(self) -> float:
        """Return how long the gateway has used its core."""
        used = self._process.cpu_times()
        return float(used.user + used.system)


@contextmanager
def started(
    issues: Sequence[str] = ISSUES, *, writes_directly: bool = True, **settings: Any
) -> Iterator[Bench]:
    """Start everything anew, each of the issues traded once; end it.

    ``settings`` are further ones of the gateway.
    """
    spawn = multiprocessing.get_context("spawn")
    with running_server() as server:
        gateway = Gateway("127.0.0.1", free_port(), None, free_port())
        publisher = Publisher(server.client)
        publisher.publish(*(make_row(isin) for isin in issues))
        chosen = {
            "redis_url": server.url,
            "port": gateway.port,
            "ops_port": gateway.ops_port,
            **settings,
        }
        gateway_process = spawn.Process(target=serve, args=(writes_directly, chosen))
        gateway_process.start()
        try:
            eventually(gateway.is_loaded, within_s=30)
            assert gateway_process.pid is not None
            with crowd(gateway.port, core=1) as clients:
                yield Bench(publisher, gateway, gateway_process.pid, clients)
        finally:
            gateway_process.kill()
            gateway_process.join()


def report(
    rows: list[tuple[str, Receipts]],
    memory: list[tuple[int, float]],
    storm: Storm | None,
) -> None:
    """Print the tables."""
    print(f"Machine: {describe_machine()}")
    if rows:
        print(
            "\nms from the publish; the last client of a window: median and worst "
            "window\n\n"
            "| case | first | p50 | p99 | last | worst last | KB a frame | frames/s of "
            "a gateway core | us a frame | clients' core busy |\n"
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
        )
    for name, got in rows:
        windows = len(got.last_ms)
        print(
            f"| {name} | {median(got.first_ms):.0f} "
            f"| {percentile(got.all_ms, 0.5):.0f} "
            f"| {percentile(got.all_ms, 0.99):.0f} | {median(got.last_ms):.0f} "
            f"| {max(got.last_ms):.0f} | {got.bytes / got.frames / 1e3:.1f} "
            f"| {got.frames / got.gateway_cpu_s:,.0f} "
            f"| {got.gateway_cpu_s / got.frames * 1e6:.1f} "
            f"| {got.clients_busy / windows:.0%} |"
        )
    if memory:
        print("\n| c: idle clients | KiB of gateway memory each |\n| ---: | ---: |")
        for count, kib in memory:
            print(f"| {count:,} | {kib:.1f} |")
    if storm:
        took, wall_s = storm.returned.took_ms, storm.returned.wall_s
        each_us = storm.gateway_cpu_s / len(took) * 1e6
        print(
            f"\nd: {len(took):,} clients came back within {wall_s:.1f} s "
            f"({RECONNECT_WITHIN_S:g} s of them on purpose); from connecting to the "
            f"end of the snapshot: p50 {percentile(took, 0.5):.0f} ms, "
            f"p99 {percentile(took, 0.99):.0f} ms, max {max(took):.0f} ms; "
            f"{storm.returned.refusals:,} refusals on the way; "
            f"{each_us:.0f} us of the gateway's core each"
        )


if __name__ == "__main__":
    main()
