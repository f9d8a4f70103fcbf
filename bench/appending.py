"""How many trades a second come into an empty log, by each way there is.

`ingest` reads a file, `intake` takes requests of four clients, `feed` follows an
exchange on this machine whose frames were made beforehand, `TradeProducer` is sent
mappings by a program. Beside them the floor: the same trades, encoded beforehand,
appended by the writer of our own feeds. Ways come in turn, round after round. The time
is from the first append to the last, by the log's clock; of a program and the floor
from the first call until all is acknowledged. Processor time is that of the product's
process, without what it takes to start and to append one request or frame.
"""

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, suppress
from http.client import HTTPConnection
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from machine import (
    NAMESPACE,
    Server,
    child,
    options,
    print_machine,
    print_rows,
    running_server,
    wait_ready,
)
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.sync.server import ServerConnection, serve

from ingest.feed.supply import CHUNK
from ingest.process.ports import free_port
from ingest.sources.simulator import Simulator
from ingest.tradelog.redis_log_reader import open_log
from ingest.tradelog.redis_log_writer import RedisLogWriter
from loadtest.system.spawned import spawned
from tickthrottle_client import TradeProducer

PARTITIONS, CAP = 4, 100_000_000
SYMBOLS, CLIENTS = 100, 4
MOST_REQUESTS = 2_000
STARTS_WITHIN_S = 30
T0_MS = 1_773_964_800_000
PROGRAM = Path(sys.executable).with_name("tickthrottle")
SETTINGS = {
    "TICKTHROTTLE_PARTITIONS": str(PARTITIONS),
    "TICKTHROTTLE_TRADE_LOG_CAP": str(CAP),
    "TICKTHROTTLE_REQUESTS_PER_SECOND": "100000",
}

Trades = Sequence[tuple[str, bytes]]
"""Keys and payloads, as the log wants them."""

Process = subprocess.Popen[Any]
Spent = tuple[float, float]
"""Seconds from the first append to the last, and of the processor."""


class Way(NamedTuple):
    """Appends trades to a server's log, ``least`` of them together."""

    append: Callable[[Server, Trades], Spent]
    least: int = 1
    most: int = CAP


def main() -> None:
    arguments = options(
        __doc__,
        trades=(200_000, "of each run"),
        rounds=(3, "of all ways"),
        only=("", "ways whose name has this in it"),
    )
    market = Simulator(rate=50_000, seconds=arguments.trades / 50_000 + 1, repeats=0)
    events = islice(market.events(T0_MS * 1_000), arguments.trades)
    trades = [(event.key, event.payload) for event in events]
    rates: dict[str, list[float]] = defaultdict(list)
    costs_us: dict[str, list[float]] = defaultdict(list)
    for _ in range(arguments.rounds):
        for name, way in ways().items():
            if arguments.only in name:
                chosen = trades[: way.most]
                with running_server() as server:
                    _, idle_s = way.append(server, trades[: way.least])
                with running_server() as server:
                    seconds, busy_s = way.append(server, chosen)
                rates[name].append(len(chosen) / max(seconds, 1e-3))
                costs_us[name].append((busy_s - idle_s) / len(chosen) * 1e6)
    title = f"{len(trades):,} trades, {arguments.rounds} runs of each, in turn"
    rows = [
        {
            "way": name,
            "trades/s, median": f"{median(runs):,.0f}",
            "lowest": f"{min(runs):,.0f}",
            "highest": f"{max(runs):,.0f}",
            "µs of a core a trade": f"{median(costs_us[name]):.1f}",
        }
        for name, runs in rates.items()
    ]
    print_rows(title, rows)
    print_machine()


def ways() -> dict[str, Way]:
    return {
        "ingest: JSON lines as the log wants them": Way(ingest),
        **{
            f"intake: {size:,} trades a request": Way(
                intake(size), size, size * MOST_REQUESTS
            )
            for size in (1, 100, 1_000)
        },
        "feed: binance": Way(feed),
        "TradeProducer": Way(produce),
        "floor: the feeds' writer": Way(write),
    }


def ingest(server: Server, trades: Trades) -> Spent:
    """Have the command read a file."""
    file = server.folder / "trades"
    file.write_bytes(b"\n".join(payload for _, payload in trades))
    with running("ingest", str(file), server=server) as process:
        return wait_for(server, process, len(trades))


def intake(size: int) -> Callable[[Server, Trades], Spent]:
    def append(server: Server, trades: Trades) -> Spent:
        payloads = [payload for _, payload in trades]
        bodies = [
            b"[%b]" % b",".join(payloads[place : place + size])
            for place in range(0, len(payloads), size)
        ]
        port = free_port()
        with (
            running("intake", "--port", str(port), server=server) as process,
            ThreadPoolExecutor(CLIENTS) as pool,
        ):
            wait_ready(port, process, STARTS_WITHIN_S)
            shares = [bodies[number::CLIENTS] for number in range(CLIENTS)]
            list(pool.map(lambda share: post(port, share), shares))
            return wait_for(server, process, len(trades))

    return append


def post(port: int, bodies: Sequence[bytes]) -> None:
    headers = {"content-type": "application/json"}
    with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        for body in bodies:
            connection.request("POST", "/v1/trades", body, headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise SystemExit(f"answered with {answer.status}")


def feed(server: Server, trades: Trades) -> Spent:
    """Follow an exchange; its trades are made up, as many as asked for."""
    symbols = [f"S{number}USDT" for number in range(SYMBOLS)]
    frames = (
        json.dumps(speak_binance(number, symbols[number % SYMBOLS])).encode()
        for number in range(len(trades))
    )
    blob = b"".join(Frame(Opcode.TEXT, f).serialize(mask=False) for f in frames)
    with spawned(run_exchange, blob) as (exchange, _):
        address = f"//127.0.0.1:{exchange.recv()}"
        words = ["feed", "binance", "--symbols", ",".join(symbols)]
        words += ["--url", f"ws:{address}", "--rest-url", f"http:{address}"]
        with running(*words, server=server) as process:
            return wait_for(server, process, len(trades))


def speak_binance(number: int, symbol: str) -> dict[str, Any]:
    trade = number // SYMBOLS
    event = {
        **{"e": "trade", "E": T0_MS + trade + 1, "s": symbol, "t": 4 * 10**9 + trade},
        **{"p": f"{100 + number % 1_000}.{number % 100:02}000000"},
        **{"q": f"0.{1 + number % 99_999:05}000", "T": T0_MS + trade, "m": False},
    }
    return {"stream": f"{symbol.lower()}@trade", "data": event | {"M": True}}


def run_exchange(ready: Connection, blob: bytes) -> None:
    """Be an exchange that says all it has, made beforehand, to whoever connects."""

    def say(connection: ServerConnection) -> None:
        with suppress(OSError, ConnectionClosed):
            connection.socket.sendall(blob)
            for _ in connection:
                pass

    with serve(say, "127.0.0.1", 0, compression=None) as server:
        ready.send(server.socket.getsockname()[1])
        server.serve_forever()


def running(*words: str, server: Server) -> AbstractContextManager[Process]:
    command = (str(PROGRAM), *words, "--redis-url", server.url)
    return child(
        *command, env=SETTINGS, stderr=subprocess.DEVNULL, start_new_session=True
    )


def wait_for(server: Server, process: Process, wanted: int) -> Spent:
    """Wait until the log has so many entries; then end the process.

    The time is that of the log's own clock, in the ids of its entries.
    """
    before_s = children_s()
    keys: list[Any] = []
    while sum(server.client.xlen(key) for key in keys) < wanted:
        if process.poll():
            raise SystemExit(f"{process.args!r} ended with {process.returncode}")
        time.sleep(0.05)
        keys = [*server.client.scan_iter(match="*", _type="stream")]
    process.terminate()
    process.wait()
    read = (server.client.xrange, server.client.xrevrange)
    entries = (ask(key, count=1)[0] for key in keys for ask in read)
    ends = [int(entry_id.partition(b"-")[0]) for entry_id, _ in entries]
    return (max(ends) - min(ends)) / 1e3, children_s() - before_s


def children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def produce(server: Server, trades: Trades) -> Spent:
    """Send mappings with `TradeProducer`, one by one."""
    mappings = [json.loads(payload) for _, payload in trades]

    async def send() -> Spent:
        async with TradeProducer(
            server.url, partitions=PARTITIONS, cap=CAP
        ) as producer:
            began_s, busy_s = time.monotonic(), time.process_time()
            for mapping in mappings:
                await producer.send(mapping)
            await producer.flush()
            spent = time.monotonic() - began_s, time.process_time() - busy_s
        if producer.acknowledged != len(trades) or producer.in_doubt:
            raise SystemExit(f"{producer.acknowledged:,} of {len(trades):,} are there")
        return spent

    return asyncio.run(send())


def write(server: Server, trades: Trades) -> Spent:
    """Append chunk by chunk with the feeds' writer."""
    info = open_log(server.client, NAMESPACE, PARTITIONS)
    writer = RedisLogWriter(server.client, NAMESPACE, info, CAP)
    began_s, busy_s = time.monotonic(), time.process_time()
    for begin in range(0, len(trades), CHUNK):
        writer.append(trades[begin : begin + CHUNK])
    return time.monotonic() - began_s, time.process_time() - busy_s


if __name__ == "__main__":
    main()
