"""How fast one gateway process gets a window to all its clients.

The gateway runs on one core, all clients on another, in one process: a client of
another make (picows), which shares no code with the gateway. Windows are published to
a real server as the throttle does. Every client has to get every window.

A client's time runs from just before the window is published to the moment its frame
is read. With a large ``--clients`` the clients' own core is a limit too: its share of
busy time is printed.
"""

import argparse
import asyncio
import multiprocessing
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from random import Random
from statistics import median
from typing import Any

import orjson
import psutil
from machine import describe_machine, end_on_signals, percentile, running_server
from picows import WSFrame, WSListener, WSMsgType, WSTransport, ws_connect

from gateway.app import create_app
from gateway.server import bind, create_server
from gateway.settings import GatewaySettings
from tests.conftest import eventually, free_port
from tests.gateway.publisher import Publisher
from tests.gateway.samples import make_isins, make_row
from tests.gateway.servers import Gateway

ISSUES = make_isins(2_879)
KEYS_EACH = 30
WINDOW_S = 2.0
CONNECTING_AT_ONCE = 100


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


def pin(core: int) -> None:
    """Keep this process on one core, where the system can."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if cores:
        os.sched_setaffinity(0, {cores[core % len(cores)]})


class Bench:
    """A server, a gateway and a process full of clients."""

    def __init__(
        self, publisher: Publisher, gateway: Gateway, pid: int, clients: Connection
    ) -> None:
        self._publisher = publisher
        self._gateway = gateway
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
        self._ask("connect", count, keys_each)
        self._count = count

    def reconnect(self) -> dict[str, Any]:
        """Have all clients lose their connection and come back with their position."""
        busy_s = self._busy_s()
        answer: dict[str, Any] = self._ask("reconnect")
        answer["cpu_s"] = self._busy_s() - busy_s
        return answer

    def publish(
        self, issues: list[str], *, windows: int | None = None, stalled: int = 0
    ) -> Receipts:
        """Publish windows with all of these issues; gather who got them when."""
        receipts = Receipts()
        if stalled:
            self._ask("stall", stalled)
        for number in range((windows or WINDOWS) + 1):
            self._seq += 1
            rows = [make_row(isin, seq=self._seq) for isin in issues]
            time.sleep(WINDOW_S - time.monotonic() % WINDOW_S)
            busy_s = self._busy_s()
            began_ns = time.monotonic_ns()
            self._publisher.publish(*rows)
            expected = self._count - stalled
            times_ns, size, client_cpu_s = self._ask(
                "gather", self._publisher.offset, expected
            )
            if number == 0:
                # The first one is for warming up.
                continue
            times = sorted((t - began_ns) / 1e6 for t in times_ns)
            receipts.first_ms.append(times[0])
            receipts.last_ms.append(times[-1])
            receipts.all_ms += times
            receipts.frames += len(times)
            receipts.bytes += size
            receipts.gateway_cpu_s += self._busy_s() - busy_s
            receipts.clients_busy += client_cpu_s / (times[-1] / 1e3)
        return receipts

    def _busy_s(self) -> float:
        used = self._process.cpu_times()
        return float(used.user + used.system)

    def _ask(self, what: str, *arguments: Any) -> Any:
        self._clients.send((what, *arguments))
        answer = self._clients.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer


WINDOWS = 10


@contextmanager
def started(arguments: argparse.Namespace) -> Iterator[Bench]:
    """Start everything anew; end it."""
    global WINDOWS
    WINDOWS = arguments.windows
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
        ours, theirs = spawn.Pipe()
        clients_process = spawn.Process(target=run_clients, args=(theirs, port))
        gateway_process.start()
        clients_process.start()
        try:
            gateway = Gateway("127.0.0.1", port, None)
            eventually(lambda: is_loaded(gateway), within_s=30)
            assert gateway_process.pid is not None
            yield Bench(publisher, gateway, gateway_process.pid, ours)
        finally:
            for process in (clients_process, gateway_process):
                process.kill()
                process.join()


def is_loaded(gateway: Gateway) -> bool:
    """Say whether the gateway has read the stored state."""
    try:
        return gateway.count("reloads") > 0
    except OSError:
        return False


class Listener(WSListener):
    """One client: notes when each update came."""

    def __init__(self, clients: "Clients", keys: list[str]) -> None:
        self.transport: WSTransport | None = None
        self.keys = keys
        self.position: dict[str, Any] | None = None
        self.is_ready = asyncio.Event()
        self._clients = clients

    def on_ws_connected(self, transport: WSTransport) -> None:
        """Subscribe."""
        self.transport = transport
        message: dict[str, Any] = {"op": "subscribe", "keys": self.keys}
        if self.position is not None:
            message["since"] = self.position
        transport.send(WSMsgType.TEXT, orjson.dumps(message))

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        """Note an update; the end of a snapshot means ready."""
        if frame.msg_type == WSMsgType.PING:
            transport.send_pong(frame.get_payload_as_bytes())
            return
        now_ns = time.monotonic_ns()
        head = bytes(frame.get_payload_as_memoryview()[:90])
        if head.startswith(b'{"type":"update"'):
            offset = int(head.split(b'"offset":', 1)[1].split(b",", 1)[0])
            self._clients.note(offset, now_ns, frame.payload_size)
        elif head.startswith(b'{"type":"snapshot"') and b'"final":true' in head:
            message = orjson.loads(frame.get_payload_as_bytes())
            self.position = {"epoch": message["epoch"], "offset": message["offset"]}
            self.is_ready.set()


class Clients:
    """All clients of a process, told by a pipe what to do."""

    def __init__(self, port: int) -> None:
        self._url = f"ws://127.0.0.1:{port}/v1/stream"
        self._listeners: list[Listener] = []
        self._times_ns: dict[int, list[int]] = {}
        self._bytes: dict[int, int] = {}
        self._arrived = asyncio.Event()

    def note(self, offset: int, now_ns: int, size: int) -> None:
        """Note the receipt of a frame."""
        self._times_ns.setdefault(offset, []).append(now_ns)
        self._bytes[offset] = self._bytes.get(offset, 0) + size
        self._arrived.set()

    async def connect(self, count: int, keys_each: int) -> None:
        """Connect so many new clients, each with its own keys; 0 keys: everything."""
        chance = Random(7)
        for _ in range(count):
            keys = chance.sample(ISSUES, keys_each) if keys_each else ["*"]
            self._listeners.append(Listener(self, keys))
        await self._open_all(CONNECTING_AT_ONCE)

    async def reconnect(self) -> dict[str, Any]:
        """Cut all connections, connect anew; return how long each one took."""
        for listener in self._listeners:
            assert listener.transport is not None
            listener.transport.disconnect(graceful=False)
            listener.is_ready.clear()
        await asyncio.sleep(2)
        return await self._open_all(len(self._listeners), spread_s=5)

    async def stall(self, count: int) -> None:
        """Have the first of them read nothing any more."""
        for listener in self._listeners[:count]:
            assert listener.transport is not None
            listener.transport.underlying_transport.pause_reading()

    async def gather(self, offset: int, expected: int) -> tuple[list[int], int, float]:
        """Return when an update reached how many clients, once it reached them all."""
        busy_s = time.process_time()
        deadline_s = time.monotonic() + 60
        while len(self._times_ns.get(offset, [])) < expected:
            if time.monotonic() > deadline_s:
                got = len(self._times_ns.get(offset, []))
                raise RuntimeError(f"update {offset} reached {got} of {expected}")
            self._arrived.clear()
            await self._arrived.wait()
        size = self._bytes.pop(offset)
        return self._times_ns.pop(offset), size, time.process_time() - busy_s

    async def _open_all(self, at_once: int, spread_s: float = 0) -> dict[str, Any]:
        limit = asyncio.Semaphore(at_once)
        chance = Random(9)
        began_s = time.monotonic()

        async def open_one(listener: Listener) -> float:
            await asyncio.sleep(chance.random() * spread_s)
            async with limit:
                own_s = time.monotonic()
                await ws_connect(
                    lambda: listener, self._url, websocket_handshake_timeout=60
                )
                await listener.is_ready.wait()
                return (time.monotonic() - own_s) * 1e3

        took_ms = await asyncio.gather(*map(open_one, self._listeners))
        return {"took_ms": took_ms, "wall_s": time.monotonic() - began_s}


def run_clients(pipe: Connection, port: int) -> None:
    """Run the clients' process on the second core."""
    pin(1)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    import uvloop

    uvloop.run(obey(pipe, port))


async def obey(pipe: Connection, port: int) -> None:
    """Do what the pipe says."""
    clients = Clients(port)
    loop = asyncio.get_running_loop()
    while True:
        what, *arguments = await loop.run_in_executor(None, pipe.recv)
        try:
            pipe.send(await getattr(clients, what)(*arguments))
        except Exception as error:  # noqa: BLE001 - the other process raises it
            pipe.send(error)


def report(
    rows: list[tuple[str, Receipts]],
    memory: list[tuple[int, float]],
    storm: dict[str, Any] | None,
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
        took = storm["took_ms"]
        print(
            f"\nd: {len(took):,} clients came back within {storm['wall_s']:.1f} s "
            f"(5 s of them on purpose); from connecting to the end of the snapshot: "
            f"p50 {percentile(took, 0.5):.0f} ms, p99 {percentile(took, 0.99):.0f} ms, "
            f"max {max(took):.0f} ms; {storm['cpu_s'] / len(took) * 1e6:.0f} us of the "
            "gateway's core each"
        )


if __name__ == "__main__":
    main()
