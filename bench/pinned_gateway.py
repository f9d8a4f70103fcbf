"""A gateway on one core, windows for it, and the load test's clients on another."""

import gc
import multiprocessing
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from logging import ERROR
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zlib import crc32

import psutil
import structlog
from machine import KEYS, Server, running_server

from gateway.server import listen
from gateway.settings import GatewaySettings
from ingest.process.ports import free_port
from ingest.redis_keys import FORM
from ingest.sources.simulator import Simulator
from ingest.trade import Trade
from loadtest.client_mix import Audience
from loadtest.clients.crowd import Crowd, crowd
from loadtest.clients.targets import Target
from loadtest.judge.judging import KindJudgement
from loadtest.judge.published_run import PublishedRun
from loadtest.results import PROMPT
from loadtest.system.spawned import spawned
from throttle.contract.group import Group, GroupFigures, sector_key, units
from throttle.contract.row_sums import ONE, Amounts, RowSums
from throttle.contract.snapshot import Row, WindowSnapshot
from throttle.contract.trade_order import encode_version

LISTING = Simulator().listing()
INSTRUMENTS = sorted(instrument.isin for instrument in LISTING)
NO_LIMITS = {
    **dict.fromkeys(("max_clients", "max_clients_per_address"), 20_000),
    **dict.fromkeys(("max_connections", "max_connections_per_address"), 20_000),
    **{"requests_per_second": 20_000, "rows_per_second": 10_000_000},
}
WINDOW_S = 2.0
WINDOW_MS = 2_000
EPOCH = "bench"
JOINS_WITHIN_S = 300
SEVERAL_PERCENT = 29
"""So many of a hundred rows stand for several trades, as on a recorded day."""
_KEPT_WINDOWS = 400
_SENT_AFTER_S = 0.2
"""So long after all is stored: what the gateway waits for is the message alone."""


def make_row(isin: str, seq: int, price: str = "199500", **extra: Any) -> Row:
    """Return a row that is newer the greater ``seq`` is; its price is whole."""
    trade = Trade(isin, 1_773_964_802_000_000 + seq, seq, price, "40", extra)
    is_of_several = crc32(isin.encode(), seq) % 100 < SEVERAL_PERCENT
    sums = _make_sums(int(price)) if is_of_several else ONE
    return Row(isin, encode_version(trade.time_us, seq, seq), sums, trade.to_row())


def _make_sums(price: int) -> bytes:
    others = (Amounts.of_trade(str(price + step), "40") for step in (100, 0, 50))
    return RowSums(3, reduce(Amounts.fold, others)).encode()


def make_groups(count: int, window_ms: int) -> tuple[Group, ...]:
    figures = GroupFigures(
        12, 7, 4, 1, 37, units("1480"), units("295260000"), 5_000_000
    )
    names = (sector_key(f"Sector {number}") for number in range(count))
    return tuple(figures.encode(name, window_ms) for name in names)


@dataclass
class Stretch:
    """Windows that were published, and what they cost."""

    ends_ms: list[int] = field(default_factory=list)
    gateway_s: list[float] = field(default_factory=list)
    """How long the gateway used its core for each window."""
    clients_s: float = 0.0


class Bench:
    """A gateway, clients, and windows published to it as the throttle does."""

    def __init__(
        self,
        server: Server,
        port: int,
        gateway: psutil.Process,
        clients: Crowd,
        longest_s: "Synchronized[float]",
    ) -> None:
        self.server = server
        self.client = server.client
        self.port = port
        self._longest_s = longest_s
        self.groups = 0
        """Every window has figures of so many groups."""
        self.clients = clients
        self._gateway = gateway
        self._crowd = psutil.Process(clients.pids[0])
        self._run = PublishedRun(EPOCH, 0, WINDOW_MS)
        self._seq = 0

    def memory(self) -> float:
        time.sleep(1)
        return float(self._gateway.memory_info().rss)

    def longest_collection_s(self) -> float:
        """Return the most of the gateway's core for a full collection since asked."""
        longest_s, self._longest_s.value = self._longest_s.value, 0.0
        return longest_s

    def busy_s(self) -> float:
        return _busy_s(self._gateway)

    def core_s(self) -> float:
        """Return the same by the process's own clock, in nanoseconds; on Linux."""
        # As clock_getcpuclockid (3) makes it.
        return time.clock_gettime((~self._gateway.pid << 3) | 2)

    def connect(self, audience: Audience) -> None:
        within_s = audience.clients / 1_000
        self.clients.join(audience.members(INSTRUMENTS), within_s)
        self._wait_joined(audience.clients)

    def reconnect(self, count: int, within_s: float) -> tuple[float, float]:
        """Cut all connections; return seconds until all are back, and of the core."""
        busy_s, began_s = self.busy_s(), time.monotonic()
        self.clients.cut(within_s)
        self._wait_joined(count)
        return time.monotonic() - began_s, self.busy_s() - busy_s

    def publish(self, isins: Sequence[str], windows: int) -> list[int]:
        """Publish windows with all of these instruments; return their ends."""
        ends_ms = []
        for _ in range(windows):
            self._seq += 1
            ends_ms.append(self.publish_rows([make_row(i, self._seq) for i in isins]))
        return ends_ms

    def publish_rows(self, rows: Sequence[Row]) -> int:
        """Publish the next window when its time has come; return its end."""
        time.sleep(WINDOW_S - time.time() % WINDOW_S)
        window = round(time.time() / WINDOW_S) * WINDOW_MS
        self.publish_window(rows, window, time.time() + _SENT_AFTER_S)
        return window

    def publish_window(self, rows: Sequence[Row], window: int, at_s: float) -> None:
        """Store a window that ends then; announce it at a time, or at once."""
        offset = self._run.offset + 1
        snapshot = WindowSnapshot(
            EPOCH,
            offset,
            window,
            1,
            int(at_s * 1e6),
            tuple(rows),
            make_groups(self.groups, window),
            1 if self.groups else 0,
        )
        message = snapshot.encode()
        position = {"form": FORM, "epoch": EPOCH, "offset": offset, "window": window}
        with self.client.pipeline(transaction=True) as pipe:
            pipe.xadd(KEYS.windows, {"snapshot": message}, id=f"{offset}-0")
            values = {r.isin: b"%b %d %b" % (r.version, offset, r.body) for r in rows}
            pipe.hset(KEYS.last, mapping=values)
            pipe.hset(KEYS.meta, mapping={**position, "window_ms": WINDOW_MS})
            pipe.execute()
        time.sleep(max(0.0, at_s - time.time()))
        self.client.publish(KEYS.updates, message)
        self._run.add(message)

    def forget(self) -> None:
        """Let go of windows that nobody asks for again, here and in the log."""
        self.client.xtrim(KEYS.windows, maxlen=_KEPT_WINDOWS, approximate=False)
        del self._run.windows[:-1]

    def add_windows(self, stretch: Stretch, isins: Sequence[str], windows: int) -> None:
        """Publish windows, one after the other, and note what they cost."""
        clients_s = _busy_s(self._crowd)
        for _ in range(windows):
            busy_s = self.busy_s()
            stretch.ends_ms += self.publish(isins, 1)
            time.sleep(WINDOW_S * 0.75)
            stretch.gateway_s.append(self.busy_s() - busy_s)
        stretch.clients_s += _busy_s(self._crowd) - clients_s

    def judge(self, ends_ms: Sequence[int]) -> tuple[list[list[float]], list[float]]:
        """Return when each prompt client had each of these windows; then all leave.

        And by how much the time between two windows at a client differed from that
        between their ends, sorted.

        Raises SystemExit if a promise was broken, or a client did not get a window.
        """
        self.clients.settle(self._run.offset, within_s=WINDOW_S)
        span = min(ends_ms), max(ends_ms)
        judgement = self.clients.judge(self._run.reference(), *span, samples=0)
        prompt = KindJudgement()
        for kind, found in judgement.kinds.items():
            if kind in PROMPT:
                prompt.add(found)
        if judgement.fault_count or prompt.unseen:
            faults = [*judgement.faults, f"{prompt.unseen} windows never came"]
            raise SystemExit("\n".join(faults))
        self.clients.leave()
        # In the order of the clients, and everybody had every window.
        lags_ms = [prompt.lags_ms.get(end_ms, ()) for end_ms in ends_ms]
        gaps_ms = sorted(
            abs(late - soon)
            for before, after in pairwise(lags_ms)
            for soon, late in zip(before, after, strict=True)
        )
        fanouts_ms = [sorted(prompt.fanouts_ms.get(end_ms, ())) for end_ms in ends_ms]
        return fanouts_ms, gaps_ms

    def _wait_joined(self, count: int) -> None:
        joined = self.clients.wait_joined(JOINS_WITHIN_S, count)
        if joined < count:
            raise SystemExit(f"{joined} of {count} clients have joined")


@contextmanager
def started(peer: Path | None = None, **settings: Any) -> Iterator[Bench]:
    """Start everything anew, each instrument traded once; end it.

    ``settings`` are further ones of the gateway. ``peer`` is a program in its place.
    """
    spawn = multiprocessing.get_context("spawn")
    with running_server() as server:
        port, operators_port = free_port(), free_port()
        own = {"port": port, "operators_port": operators_port, "log_level": "warning"}
        chosen = {**NO_LIMITS, **own, "redis_url": server.url, **settings}
        longest_s = spawn.Value("d", 0.0)
        gateway_process: AbstractContextManager[int] = _gateway(chosen, longest_s)
        if peer is not None:
            gateway_process = _peer(peer, server, port)
        with (
            gateway_process as pid,
            crowd([Target("127.0.0.1", port)], processes=1) as clients,
        ):
            pin(1, clients.pids[0])
            process = psutil.Process(pid)
            bench = Bench(server, port, process, clients, longest_s)
            _wait_listening(process, port)
            bench.publish(INSTRUMENTS, 1)
            yield bench


@contextmanager
def _gateway(chosen: dict[str, Any], longest_s: "Synchronized[float]") -> Iterator[int]:
    with spawned(_serve, chosen, longest_s) as (_, process):
        assert process.pid is not None
        yield process.pid


@contextmanager
def _peer(program: Path, server: Server, port: int) -> Iterator[int]:
    """Run a fan-out of one core on core 0."""
    where = urlsplit(server.url).netloc, f"127.0.0.1:{port}"
    environment = {**os.environ, "GOMAXPROCS": "1"}
    with subprocess.Popen([program, *where], env=environment) as process:
        pin(0, process.pid)
        try:
            yield process.pid
        finally:
            process.terminate()


def stream_request(keys: Sequence[str]) -> bytes:
    """Return what opens a WebSocket that follows keys, without a library."""
    return (
        f"GET /v1/stream?keys={','.join(keys)} HTTP/1.1\r\n"
        "Host: bench\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ).encode()


def pin(core: int, pid: int = 0) -> None:
    """Keep a process on one core, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(pid, {cores[core % len(cores)]})


def _serve(
    _: Connection,
    chosen: dict[str, Any],
    longest_s: "Synchronized[float]",
) -> None:
    pin(0)
    began_s = 0.0

    def note(phase: str, info: dict[str, int]) -> None:
        nonlocal began_s
        if phase == "start":
            began_s = time.thread_time()
        elif info["generation"] == 2:
            longest_s.value = max(longest_s.value, time.thread_time() - began_s)

    gc.callbacks.append(note)
    # Lines between the rows of a table are in the way.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(ERROR))
    settings = GatewaySettings.model_validate(chosen)
    listen(settings).run()


def _wait_listening(gateway: psutil.Process, port: int) -> None:
    deadline = time.monotonic() + 90
    while port not in {each.laddr.port for each in gateway.net_connections("tcp4")}:
        if time.monotonic() > deadline:
            raise SystemExit("the gateway did not start")
        time.sleep(0.05)


def _busy_s(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)
