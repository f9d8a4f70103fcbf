"""One address that asks for all it may: what it does to others.

A gateway with the limits it has by default, on one core; on the other its clients, who
have addresses of their own, somebody who asks over REST ten times a second, and with
the lowest priority the greedy one. It takes each resource to its documented limit, one
after the other and then all at once, in turns with nobody: so that the machine's moods
fall on both.
"""

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from functools import partial
from http.client import HTTPConnection, HTTPException
from itertools import count, cycle, permutations
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event, Thread

import pyarrow as pa
import redis
from machine import NAMESPACE, options, percentile, print_machine, print_rows
from pinned_gateway import INSTRUMENTS, WINDOW_S, Bench, Stretch, pin, started
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from archive.contract.segment import Segment
from archive.parquet.bar_table import BARS, BATCHES, PRICES, SUMS, StoredBars
from archive.parquet.parquet_sink import ParquetSink
from archive.parquet.tables import ROWS, WINDOWS, StoredTables
from gateway.settings import GatewaySettings
from ingest.redis_keys import AnalyticsKeys
from loadtest.client_mix import Audience
from loadtest.system.spawned import spawned
from throttle.contract.bar_intervals import DayBar
from throttle.contract.bars import Bar

GREEDY = "127.0.0.200"
"""Where it comes from; nobody else does."""

EPOCH = "stored"
DAY_MS, MINUTE_MS, WINDOW_MS = 86_400_000, 60_000, 2_000

MINUTES = 1_440
"""Bars of an instrument in Redis: as many as the job keeps by default."""

WITH_BARS = INSTRUMENTS[:100]

DAYS, MINUTES_A_DAY, WINDOWS_A_DAY = 40, 390, 2_000
"""What is archived of each of them: as many bars as a day of trading has."""

EVERY_S = 0.1
"""Messages of a stream a second are limited to ten by default."""

REQUESTS_AT_ONCE = 64
PATIENCE_S = 5.0
PROBE_S = 0.1
IN_TURN = 4
"""So many windows are published before it is the other one's turn."""

MOST_RISE_MS, MOST_REST_MS = 50, 200

LIMITS = (
    *("max_clients_per_address", "requests_per_second", "rows_per_second"),
    *("max_connections", "max_connections_per_address"),
)

Answers = Counter[str]
Use = Callable[[ClientConnection], Awaitable[None]]


def toggle(message: dict[str, object], last: dict[str, int]) -> Use:
    async def use(stream: ClientConnection) -> None:
        while True:
            for op, more in (("subscribe", last), ("unsubscribe", {})):
                await stream.send(json.dumps({"op": op, **message, **more}))
                await asyncio.sleep(EVERY_S)

    return use


async def leave(stream: ClientConnection) -> None:
    await asyncio.sleep(EVERY_S)


def path_of_quotes(number: int) -> str:
    """Return whole boards, each another one."""
    names = ("name", "code", "market", "sector", "prev_close", "day")
    orders = list(permutations(names))
    fields = ",".join(orders[number % len(orders)][: 1 + number % len(names)])
    some = ",".join(INSTRUMENTS[number % 1_000 : number % 1_000 + 300])
    return f"/v1/quotes?fields={fields}" + (f"&isins={some}" if number % 2 else "")


def path_of_days(number: int) -> str:
    """Return day bars and charts as far back as they go, each another."""
    isin = WITH_BARS[number % len(WITH_BARS)]
    return (
        f"/v1/quotes/{isin}/history?limit={20_000 - number % 1_000}",
        f"/v1/instruments/{isin}/windows?limit=1000",
        f"/v1/bars/{isin}?interval=1d&limit={1_000 - number % 500}",
    )[number % 3]


async def hold_streams(port: int, answers: Answers, streams: int, use: Use) -> None:
    """Have so many streams open, and use each."""
    url = f"ws://127.0.0.1:{port}/v1/stream?keys=*"

    async def read(stream: ClientConnection) -> None:
        while True:
            frame = await stream.recv(decode=False)
            answers["put off"] += b'"rate_limited"' in frame[:200]

    async def hold() -> None:
        while True:
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


async def ask_often(
    port: int, answers: Answers, path: Callable[[int], str], *, leaves: bool = False
) -> None:
    """Ask as fast as the limit lets it; by far more than that."""
    numbers = count()

    async def ask() -> None:
        while True:
            try:
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", port, local_addr=(GREEDY, 0)
                )
                line = f"GET {path(next(numbers))} HTTP/1.1"
                writer.write(f"{line}\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
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


LONGER_BARS: dict[str, object] = {"keys": [f"bars:1h:{isin}" for isin in WITH_BARS]}
RESOURCES: dict[str, Callable[[int, Answers], Awaitable[None]]] = {
    "boards": partial(hold_streams, streams=200, use=toggle({"keys": ["*"]}, {})),
    "bars": partial(hold_streams, streams=5, use=toggle(LONGER_BARS, {"last": 16})),
    "streams": partial(hold_streams, streams=16, use=leave),
    "quotes": partial(ask_often, path=path_of_quotes),
    "days and charts": partial(ask_often, path=path_of_days),
    "the same, left at once": partial(ask_often, path=path_of_days, leaves=True),
}


def be_greedy(orders: Connection, port: int) -> None:
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


def store_days(
    root: Path, isins: Sequence[str], days: int, minutes: int, windows: int
) -> None:
    """Store the ``days`` before today: of each instrument so many bars and rows a day.

    Of windows there are the rows alone, as histories need.
    """
    sink = ParquetSink(root, 2**50, 0)
    sink.open()
    today_ms = time.time_ns() // 1_000_000 // DAY_MS * DAY_MS
    for day in range(days):
        begin_ms = today_ms - (days - day) * DAY_MS
        ends = range(
            begin_ms + WINDOW_MS, begin_ms + (windows + 1) * WINDOW_MS, WINDOW_MS
        )
        first = 1 + day * windows
        segment = Segment(ends[0], first, first + windows - 1, EPOCH, ends[0], ends[-1])
        rows = _table(
            ROWS, isins, {"window": ends, "offset": range(first, first + windows)}
        )
        sink.store(segment, StoredTables(WINDOWS.empty_table(), rows, (), 0))
        starts = range(begin_ms, begin_ms + minutes * MINUTE_MS, MINUTE_MS)
        bounds = starts[0] + MINUTE_MS, starts[-1] + MINUTE_MS
        segment = Segment(bounds[0], day, day, EPOCH, *bounds)
        bars = _table(BARS, isins, {"start": starts})
        sink.store(segment, StoredBars(bars, BATCHES.empty_table()))
    sink.close()


def _table(
    schema: pa.Schema, isins: Sequence[str], each: dict[str, Sequence[int]]
) -> pa.Table:
    """Return the same lines of every instrument; ``each`` are the columns of one."""
    count = len(next(iter(each.values())))
    fixed = {
        **dict.fromkeys(("price", "size", *PRICES, *SUMS), Decimal("199500")),
        **dict.fromkeys(("price_text", "size_text"), "199500"),
        **{"epoch": EPOCH, "width_ms": MINUTE_MS, "trades": 4},
        **{"revision": 0, "number": 1, "time": 0, "seq": 0, "position": 0},
        **{"fields": None, "listed": False},
    }
    columns = []
    for field in schema:
        if field.name == "isin":
            names = [isin for isin in sorted(isins) for _ in range(count)]
            column = pa.array(names, field.type)
        elif field.name in each:
            values = pa.array([*each[field.name]] * len(isins), pa.int64())
            column = values.cast(field.type)
        else:
            value = pa.scalar(fixed.get(field.name), field.type)
            column = pa.repeat(value, count * len(isins))
        columns.append(column)
    return pa.table(columns, schema=schema)


class Turn:
    """What others had while the greedy one was at something, or at nothing.

    Somebody asks over REST: how long he waits (``rest_ms``), and what the gateway uses
    of its core meanwhile (``worked_ms``), which does not depend on who else uses the
    machine.
    """

    def __init__(self) -> None:
        self.stretch = Stretch()
        self.rest_ms: list[float] = []
        self.worked_ms: list[float] = []
        self.failed = 0
        self.answers: Answers = Counter()

    def add(self, bench: Bench, windows: int) -> None:
        is_over = Event()
        asker = Thread(target=self._ask, args=(bench, is_over))
        asker.start()
        try:
            bench.add_windows(self.stretch, INSTRUMENTS, windows)
        finally:
            is_over.set()
            asker.join()

    def _ask(self, bench: Bench, is_over: Event) -> None:
        isin = WITH_BARS[0]
        paths = ("/v1/quotes", f"/v1/quotes/{isin}", f"/v1/instruments/{isin}/windows")
        paths += (f"/v1/bars/{isin}", f"/v1/quotes/{isin}/history", "/v1/version")
        for path in cycle(paths):
            if is_over.is_set():
                return
            began_s, core_s = time.monotonic(), bench.core_s()
            try:
                connection = HTTPConnection("127.0.0.1", bench.port, timeout=PATIENCE_S)
                connection.request("GET", path)
                answer = connection.getresponse()
                answer.read()
                self.failed += answer.status != 200
                connection.close()
            except (OSError, HTTPException):
                self.failed += 1
            self.rest_ms.append((time.monotonic() - began_s) * 1_000)
            self.worked_ms.append((bench.core_s() - core_s) * 1_000)
            is_over.wait(max(0.0, began_s + PROBE_S - time.monotonic()))


def store_bars(client: redis.Redis) -> None:
    keys = AnalyticsKeys(NAMESPACE)
    end_ms = round(time.time() // 60 * 60_000)
    first_ms = end_ms - MINUTES * 60_000
    prices = (Decimal("199500"),) * 4
    sums = (Decimal(40), prices[0] * 40, 1, True, 0)
    with client.pipeline(transaction=False) as pipe:
        for isin in INSTRUMENTS:
            bar = Bar(isin, first_ms, first_ms + 60_000, *prices, *sums)
            pipe.hset(keys.days, isin, DayBar(bar, first_ms, end_ms).encode())
        for isin in WITH_BARS:
            lines: dict[bytes, int] = {}
            for start_ms in range(first_ms, end_ms, 60_000):
                bar = Bar(isin, start_ms, start_ms + 60_000, *prices, *sums)
                lines[bar.encode()] = start_ms
            pipe.zadd(keys.bars(isin), lines)  # type: ignore[arg-type]
            pipe.hset(keys.last_bars, isin, bar.encode())
        progress = {"epoch": "bench", "sequence": 1, "clock": end_ms}
        pipe.hset(keys.progress("bars"), mapping=progress | {"bars_ms": 60_000})
        pipe.execute()


def main() -> None:
    chosen = options(
        __doc__,
        clients=(1_000, "of the stream"),
        seconds=(60.0, "of each resource"),
        only=("", "one resource", [*RESOURCES, "all"]),
    )
    rounds = max(1, round(chosen.seconds / (IN_TURN * WINDOW_S)))
    each = {name: [name] for name in RESOURCES} | {"all": [*RESOURCES]}
    if chosen.only:
        each = {chosen.only: each[chosen.only]}
    turns = {"nobody": Turn()} | {name: Turn() for name in each}
    limits = {name: GatewaySettings.model_fields[name].default for name in LIMITS}
    with (
        TemporaryDirectory() as folder,
        started(archive_dir=Path(folder), **limits) as bench,
    ):
        store_days(Path(folder), WITH_BARS, DAYS, MINUTES_A_DAY, WINDOWS_A_DAY)
        store_bars(bench.client)
        with spawned(be_greedy, bench.port) as (orders, _):
            bench.connect(Audience(chosen.clients))
            bench.publish(INSTRUMENTS, 2)
            for name, resources in each.items():
                for _ in range(rounds):
                    turns["nobody"].add(bench, IN_TURN)
                    orders.send(resources)
                    turns[name].add(bench, IN_TURN)
                    orders.send([])
                    turns[name].answers += orders.recv()
        ends_ms = [end for turn in turns.values() for end in turn.stretch.ends_ms]
        times_ms = dict(zip(ends_ms, bench.judge(ends_ms)[0], strict=True))
    print_machine()
    report(turns, times_ms, chosen.clients)


def report(
    turns: dict[str, Turn], times_ms: dict[int, list[float]], clients: int
) -> None:
    title = f"ms until {clients:,} clients had a window, and until REST answered"
    p99s_ms: dict[str, tuple[float, float]] = {}
    rows = []
    for name, turn in turns.items():
        windows = [times_ms[end_ms] for end_ms in turn.stretch.ends_ms]
        together = [value for window in windows for value in window]
        update_ms = median(percentile(window, 0.99) for window in windows)
        rest_ms = percentile(turn.rest_ms, 0.99)
        p99s_ms[name] = update_ms, rest_ms
        busy = median(turn.stretch.gateway_s) / WINDOW_S
        answers = turn.answers.most_common(5)
        rows.append(
            {
                "one address asks for": name,
                "updates p50": f"{percentile(together, 0.5):.0f}",
                "p99, median of windows": f"{update_ms:.0f}",
                "REST p50": f"{percentile(turn.rest_ms, 0.5):.0f}",
                "p99": f"{rest_ms:.0f}",
                "of the core p50": f"{percentile(turn.worked_ms, 0.5):.0f}",
                "of the core p99": f"{percentile(turn.worked_ms, 0.99):.0f}",
                "failed": f"{turn.failed}",
                "the gateway's core": f"{busy:.0%}",
                "what it got": ", ".join(f"{text}: {n:,}" for text, n in answers),
            }
        )
    print_rows(title, rows)
    before_ms, _ = p99s_ms["nobody"]
    for name, (update_ms, rest_ms) in p99s_ms.items():
        is_kept = update_ms - before_ms <= MOST_RISE_MS and rest_ms < MOST_REST_MS
        print(
            f"{name}: updates {update_ms - before_ms:+.0f} ms, REST {rest_ms:.0f} ms: "
            f"{'kept' if is_kept else 'not kept'}"
        )


if __name__ == "__main__":
    main()
