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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from statistics import median

import psutil
from machine import describe_machine, end_on_signals, percentile, running_server

from gateway.app import create_app
from gateway.server import bind, create_server
from gateway.settings import GatewaySettings
from tests.conftest import eventually, free_port
from tests.gateway.crowd import Crowd, Returned, crowd, pin
from tests.gateway.publisher import Publisher
from tests.gateway.samples import make_isins, make_row
from tests.gateway.servers import Gateway

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
    rows = []
    memory = []
    for count in counts if "a" in arguments.cases or "c" in arguments.cases else []:
        with started(arguments) as bench:
            empty = bench.memory()
            bench.connect(count, KEYS_EACH)
            memory.append((count, (bench.memory() - empty) / count / 1_024))
            if "a" in arguments.cases:
                name = f"a: {count:,} clients, {KEYS_EACH} issues each"
                rows.append((name, bench.publish(ISSUES)))
    if "b" in arguments.cases:
        for count in (200, 1_000):
            with started(arguments) as bench:
                bench.connect(count, 0)
                some = Random(1).sample(ISSUES, 900)
                name = f"b: {count:,} clients, `*`, 900 issues a window"
                rows.append((name, bench.publish(some)))
    if "e" in arguments.cases:
        with started(arguments) as bench:
            bench.connect(5_000, KEYS_EACH)
            name = "e: 4,500 of 5,000, a tenth reads nothing"
            rows.append((name, bench.publish(ISSUES, stalled=500)))
    storm = None
    if "d" in arguments.cases:
        with started(arguments) as bench:
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
class Storm:
    """All clients came back."""

    returned: Returned
    gateway_cpu_s: float


def serve(redis_url: str, port: int, *, writes_directly: bool) -> None:
    """Run a gateway on the first core."""
    pin(0)
    settings = GatewaySettings(
        redis_url=redis_url,
        port=port,
        max_clients=20_000,
        max_clients_per_address=20_000,
    )
    sock = bind(settings)
    server = create_server(
        create_app(settings), settings, writes_directly=writes_directly
    )
    server.run(sockets=[sock])


class Bench:
    """A server, a gateway and a process full of clients."""

    def __init__(
        self, publisher: Publisher, pid: int, clients: Crowd, windows: int
    ) -> None:
        self._publisher = publisher
        self._windows = windows
        self._process = psutil.Process(pid)
        self._clients = clients
        self._count = 0
        self._seq = 1

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
        busy_s = self._busy_s()
        returned = self._clients.reconnect(RECONNECT_WITHIN_S)
        return Storm(returned, self._busy_s() - busy_s)

    def publish(
        self, issues: list[str], *, windows: int | None = None, stalled: int = 0
    ) -> Receipts:
        """Publish windows with all of these issues; gather who got them when."""
        receipts = Receipts()
        if stalled:
            self._clients.stall(stalled)
        for number in range((windows or self._windows) + 1):
            self._seq += 1
            rows = [make_row(isin, seq=self._seq) for isin in issues]
            time.sleep(WINDOW_S - time.monotonic() % WINDOW_S)
            busy_s = self._busy_s()
            # What the gateway waits for is the message: all else is stored before.
            snapshot = self._publisher.publish_lost(*rows)
            time.sleep(0.2)
            began_ns = time.monotonic_ns()
            self._publisher.repeat(snapshot)
            expected = self._count - stalled
            got = self._clients.gather(self._publisher.offset, expected)
            if number == 0:
                # The first one is for warming up.
                continue
            times = sorted((t - began_ns) / 1e6 for t in got.times_ns)
            receipts.first_ms.append(times[0])
            receipts.last_ms.append(times[-1])
            receipts.all_ms += times
            receipts.frames += len(times)
            receipts.bytes += got.bytes
            receipts.gateway_cpu_s += self._busy_s() - busy_s
            receipts.clients_busy += got.cpu_s / (times[-1] / 1e3)
        return receipts

    def _busy_s(self) -> float:
        used = self._process.cpu_times()
        return float(used.user + used.system)


@contextmanager
def started(arguments: argparse.Namespace) -> Iterator[Bench]:
    """Start everything anew; end it."""
    spawn = multiprocessing.get_context("spawn")
    with running_server() as server:
        port = free_port()
        publisher = Publisher(server.client)
        publisher.publish(*(make_row(isin) for isin in ISSUES))
        gateway_process = spawn.Process(
            target=serve,
            args=(server.url, port),
            kwargs={"writes_directly": not arguments.asgi},
        )
        gateway_process.start()
        try:
            gateway = Gateway("127.0.0.1", port, None)
            eventually(gateway.is_loaded, within_s=30)
            assert gateway_process.pid is not None
            with crowd(port, core=1) as clients:
                yield Bench(publisher, gateway_process.pid, clients, arguments.windows)
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
            f"{each_us:.0f} us of the gateway's core each"
        )


if __name__ == "__main__":
    main()
