"""One address that asks for all it may: what it does to others.

A gateway with the limits it has by default, on one core; on the other its clients, who
have addresses of their own, somebody who asks over REST ten times a second, and with
the lowest priority the greedy one. It takes each resource to its documented limit, one
after the other and then all at once, in turns with nobody: so that the machine's moods
fall on both.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from decimal import Decimal
from http.client import HTTPConnection, HTTPException
from itertools import count, permutations
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event, Thread

import redis
from machine import NAMESPACE, end_on_signals, percentile
from pinned_gateway import INSTRUMENTS, WINDOW_S, Bench, Stretch, pin, started
from stored_days import store_days
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from gateway.settings import GatewaySettings
from ingest.redis_keys import AnalyticsKeys
from loadtest.client_mix import Audience
from loadtest.system.machine import describe_machine
from throttle.contract.bar_intervals import DayBar
from throttle.contract.bars import Bar

GREEDY = "127.0.0.200"
"""Where it comes from; nobody else does."""

MINUTES = 1_440
"""Bars of an instrument in Redis: as many as the job keeps by default."""

WITH_BARS = INSTRUMENTS[:100]

DAYS, MINUTES_A_DAY, WINDOWS_A_DAY = 40, 390, 2_000
"""What is archived of each of them: as many bars as a day of trading has."""

STREAMS = 200
BAR_STREAMS = 5
EVERY_S = 0.1
"""Messages of a stream a second are limited to ten by default."""

REQUESTS_AT_ONCE = 64
PATIENCE_S = 5.0
PROBE_S = 0.1
IN_TURN = 4
"""So many windows are published before it is the other one's turn."""

MOST_RISE_MS, MOST_REST_MS = 50, 200

Answers = Counter[str]


async def ask_for_boards(port: int, answers: Answers) -> None:
    """Subscribe to everything and out of it again, on many streams."""

    async def toggle(stream: ClientConnection) -> None:
        while True:
            for op in ("subscribe", "unsubscribe"):
                await stream.send(json.dumps({"op": op, "keys": ["*"]}))
                await asyncio.sleep(EVERY_S)

    await _hold_streams(port, answers, STREAMS, toggle)


async def ask_for_bars(port: int, answers: Answers) -> None:
    """Subscribe to longer bars, of which each is made of many."""
    keys = [f"bars:1h:{isin}" for isin in WITH_BARS]

    async def ask(stream: ClientConnection) -> None:
        while True:
            for op in ("subscribe", "unsubscribe"):
                message = {"op": op, "keys": keys}
                last = {"last": 16} if op == "subscribe" else {}
                await stream.send(json.dumps(message | last))
                await asyncio.sleep(EVERY_S)

    await _hold_streams(port, answers, BAR_STREAMS, ask)


async def open_streams(port: int, answers: Answers) -> None:
    """Open streams with everything, and go as soon as they are open."""

    async def leave(stream: ClientConnection) -> None:
        await asyncio.sleep(EVERY_S)

    await _hold_streams(port, answers, 16, leave)


async def ask_for_quotes(port: int, answers: Answers) -> None:
    """Ask for whole boards, each another one."""
    names = ("name", "code", "market", "sector", "prev_close", "day")
    orders = list(permutations(names))
    numbers = count()

    def path() -> str:
        number = next(numbers)
        fields = ",".join(orders[number % len(orders)][: 1 + number % len(names)])
        some = ",".join(INSTRUMENTS[number % 1_000 : number % 1_000 + 300])
        return f"/v1/quotes?fields={fields}" + (f"&isins={some}" if number % 2 else "")

    await _ask_often(port, answers, path)


async def ask_for_archive(port: int, answers: Answers) -> None:
    """Ask for day bars and histories of the archive, and wait for them."""
    await _ask_often(port, answers, _path_of_days())


async def ask_for_days(port: int, answers: Answers) -> None:
    """Ask for day bars and charts as far back as they go, and leave at once."""
    await _ask_often(port, answers, _path_of_days(), leaves=True)


def _path_of_days() -> Callable[[], str]:
    """Return what names day bars and charts as far back as they go, each another."""
    numbers = count()

    def path() -> str:
        number = next(numbers)
        isin = WITH_BARS[number % len(WITH_BARS)]
        if number % 3 == 0:
            return f"/v1/quotes/{isin}/history?limit={20_000 - number % 1_000}"
        if number % 3 == 1:
            return f"/v1/instruments/{isin}/windows?limit=1000"
        return f"/v1/bars/{isin}?interval=1d&limit={1_000 - number % 500}"

    return path


RESOURCES: dict[str, Callable[[int, Answers], Awaitable[None]]] = {
    "boards": ask_for_boards,
    "bars": ask_for_bars,
    "streams": open_streams,
    "quotes": ask_for_quotes,
    "days and charts": ask_for_archive,
    "the same, left at once": ask_for_days,
}


async def _hold_streams(
    port: int,
    answers: Answers,
    streams: int,
    use: Callable[[ClientConnection], Awaitable[None]],
) -> None:
    url = f"ws://127.0.0.1:{port}/v1/stream?keys=*"
    limit = asyncio.Semaphore(streams)

    async def read(stream: ClientConnection) -> None:
        while True:
            frame = await stream.recv(decode=False)
            answers["put off"] += b'"rate_limited"' in frame[:200]

    async def hold() -> None:
        while True:
            async with limit:
                try:
                    async with connect(
                        url, compression=None, local_addr=(GREEDY, 0), max_size=None
                    ) as stream:
                        answers["opened"] += 1
                        reading = asyncio.create_task(read(stream))
                        try:
                            await use(stream)
                        finally:
                            reading.cancel()
                except (OSError, WebSocketException):
                    answers["closed"] += 1
            await asyncio.sleep(EVERY_S)

    await asyncio.gather(*(hold() for _ in range(streams)))


async def _ask_often(
    port: int, answers: Answers, path: Callable[[], str], *, leaves: bool = False
) -> None:
    """Ask as fast as the limit lets it; by far more than that."""

    async def ask() -> None:
        while True:
            try:
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", port, local_addr=(GREEDY, 0)
                )
                head = f"GET {path()} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                writer.write(head.encode())
                if leaves:
                    await asyncio.sleep(0.01)
                    answers["left"] += 1
                else:
                    async with asyncio.timeout(60):
                        answers[(await reader.read(12))[9:].decode()] += 1
                        while await reader.read(65_536):
                            pass
                writer.transport.abort()
            except (OSError, TimeoutError):
                answers["cut"] += 1
            await asyncio.sleep(REQUESTS_AT_ONCE / 200)

    await asyncio.gather(*(ask() for _ in range(REQUESTS_AT_ONCE)))


def be_greedy(port: int, orders: Connection) -> None:
    """Do what is ordered, in a process of its own, until there is another order."""
    pin(1)
    os.nice(19)

    async def work(names: list[str], answers: Answers) -> None:
        jobs = [asyncio.create_task(RESOURCES[n](port, answers)) for n in names]
        await asyncio.to_thread(orders.poll, None)
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)

    while True:
        answers: Answers = Counter()
        asyncio.run(work(orders.recv(), answers))
        # That it is enough.
        orders.recv()
        orders.send(answers)


class Asker:
    """Somebody who asks over REST, and how long he waits, in milliseconds.

    ``worked_ms`` is what the gateway has used of its core meanwhile, which does not
    depend on who else uses the machine.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.worked_ms: list[float] = []
        self._stopping = Event()
        self.waited_ms: list[float] = []
        self.failed = 0
        self._thread = Thread(target=self._ask)
        self._thread.start()

    def end(self) -> None:
        """Ask no more."""
        self._stopping.set()
        self._thread.join()

    def _ask(self) -> None:
        isin = WITH_BARS[0]
        paths = ("/v1/quotes", f"/v1/quotes/{isin}", f"/v1/instruments/{isin}/windows")
        paths += (f"/v1/bars/{isin}", f"/v1/quotes/{isin}/history", "/v1/version")
        for number in count():
            if self._stopping.is_set():
                return
            began_s, core_s = time.monotonic(), self._bench.core_s()
            port = self._bench.port
            try:
                connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
                connection.request("GET", paths[number % len(paths)])
                answer = connection.getresponse()
                answer.read()
                self.failed += answer.status != 200
                connection.close()
            except (OSError, HTTPException):
                self.failed += 1
            self.waited_ms.append((time.monotonic() - began_s) * 1_000)
            self.worked_ms.append((self._bench.core_s() - core_s) * 1_000)
            self._stopping.wait(max(0.0, began_s + PROBE_S - time.monotonic()))


def store_bars(client: redis.Redis) -> None:
    """Store a day of minutes of some instruments, as the analytics job does."""
    keys = AnalyticsKeys(NAMESPACE)
    end_ms = round(time.time() // 60 * 60_000)
    first_ms = end_ms - MINUTES * 60_000
    price = Decimal("199500")
    with client.pipeline(transaction=False) as pipe:
        for isin in INSTRUMENTS:
            bar = Bar(
                *(isin, first_ms, first_ms + 60_000, price, price, price, price),
                *(Decimal(40), price * 40, 1, True, 0),
            )
            pipe.hset(keys.days, isin, DayBar(bar, first_ms, end_ms).encode())
        for isin in WITH_BARS:
            lines: dict[bytes, int] = {}
            for start_ms in range(first_ms, end_ms, 60_000):
                bar = Bar(
                    *(isin, start_ms, start_ms + 60_000, price, price, price, price),
                    *(Decimal(40), price * 40, 1, True, 0),
                )
                lines[bar.encode()] = start_ms
            pipe.zadd(keys.bars(isin), lines)  # type: ignore[arg-type]
            pipe.hset(keys.last_bars, isin, bar.encode())
        progress = {"epoch": "bench", "sequence": 1, "clock": end_ms}
        pipe.hset(keys.progress("bars"), mapping=progress | {"bars_ms": 60_000})
        pipe.execute()


class Turn:
    """What others had while the greedy one was at something, or at nothing."""

    def __init__(self) -> None:
        self.stretch = Stretch()
        self.rest_ms: list[float] = []
        self.worked_ms: list[float] = []
        self.failed = 0
        self.answers: Answers = Counter()

    def add(self, bench: Bench, windows: int) -> None:
        """Publish windows and ask meanwhile."""
        asker = Asker(bench)
        bench.add_windows(self.stretch, INSTRUMENTS, windows)
        asker.end()
        self.rest_ms += asker.waited_ms
        self.worked_ms += asker.worked_ms
        self.failed += asker.failed


def main() -> None:
    """Measure updates and REST of others with and without one greedy address."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=1_000, help="of the stream")
    parser.add_argument("--seconds", type=float, default=60, help="of each resource")
    parser.add_argument("--only", choices=[*RESOURCES, "all"], help="one resource")
    options = parser.parse_args()
    end_on_signals()
    rounds = max(1, round(options.seconds / (IN_TURN * WINDOW_S)))
    each = {name: [name] for name in RESOURCES} | {"all": [*RESOURCES]}
    if options.only:
        each = {options.only: each[options.only]}
    turns = {"nobody": Turn()} | {name: Turn() for name in each}
    usual = GatewaySettings.model_fields
    limits = {
        name: usual[name].default
        for name in (
            *("max_clients_per_address", "requests_per_second"),
            *("rows_per_second", "max_connections", "max_connections_per_address"),
        )
        if name in usual
    }
    spawn = multiprocessing.get_context("spawn")
    orders, theirs = spawn.Pipe()
    with (
        TemporaryDirectory() as folder,
        started(archive_dir=Path(folder), **limits) as bench,
    ):
        store_days(Path(folder), WITH_BARS, DAYS, MINUTES_A_DAY, WINDOWS_A_DAY)
        store_bars(bench.client)
        greedy = spawn.Process(target=be_greedy, args=(bench.port, theirs))
        greedy.start()
        try:
            bench.connect(Audience(options.clients))
            bench.publish(INSTRUMENTS, 2)
            for name, resources in each.items():
                for _ in range(rounds):
                    turns["nobody"].add(bench, IN_TURN)
                    orders.send(resources)
                    turns[name].add(bench, IN_TURN)
                    orders.send([])
                    turns[name].answers += orders.recv()
        finally:
            greedy.kill()
            greedy.join()
        ends_ms = [end for turn in turns.values() for end in turn.stretch.ends_ms]
        times_ms = dict(zip(ends_ms, bench.judge(ends_ms), strict=True))
    print(f"Machine: {describe_machine()}")
    report(turns, times_ms, options.clients)


def report(
    turns: dict[str, Turn], times_ms: dict[int, list[float]], clients: int
) -> None:
    """Print what others had, and whether that is as it should be."""
    print(
        f"\nms until {clients:,} clients had a window, and until REST answered; p99 of "
        "updates: the median of windows\n\n"
        "| one address asks for | updates p50 | p99 | REST p50 | p99 | of the "
        "core p50 | p99 | failed | the gateway's core | what it got |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
    )
    p99s_ms: dict[str, tuple[float, float]] = {}
    for name, turn in turns.items():
        windows = [times_ms[end_ms] for end_ms in turn.stretch.ends_ms]
        together = [value for window in windows for value in window]
        update_ms = median(percentile(window, 0.99) for window in windows)
        rest_ms = percentile(turn.rest_ms, 0.99)
        p99s_ms[name] = update_ms, rest_ms
        busy = median(turn.stretch.gateway_s) / WINDOW_S
        got = ", ".join(f"{text}: {n:,}" for text, n in turn.answers.most_common(5))
        print(
            f"| {name} | {percentile(together, 0.5):.0f} | {update_ms:.0f} "
            f"| {percentile(turn.rest_ms, 0.5):.0f} | {rest_ms:.0f} "
            f"| {percentile(turn.worked_ms, 0.5):.0f} "
            f"| {percentile(turn.worked_ms, 0.99):.0f} | {turn.failed} "
            f"| {busy:.0%} | {got} |"
        )
    before_ms, _ = p99s_ms["nobody"]
    for name, (update_ms, rest_ms) in p99s_ms.items():
        is_kept = update_ms - before_ms <= MOST_RISE_MS and rest_ms < MOST_REST_MS
        print(
            f"{name}: updates {update_ms - before_ms:+.0f} ms, REST {rest_ms:.0f} ms: "
            f"{'kept' if is_kept else 'not kept'}"
        )


if __name__ == "__main__":
    main()
