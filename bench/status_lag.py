"""How soon a trading status is at a thousand clients, also while a window goes out.

The gateway runs on one core, the clients on the other. Half of the statuses are added
right after a window was published, half between two. A client's time runs from the
moment the status was added in Redis to the moment its frame is read.
"""

import asyncio
import re
import time
from multiprocessing.connection import Connection

from machine import options, print_table, spawned
from pinned_gateway import INSTRUMENTS, pin, started, stream_request

from ingest.process.descriptors import raise_descriptor_limit
from ingest.statuses.status_log import StatusLog
from ingest.statuses.trading_status import TradingStatus
from loadtest.system.machine import describe_machine

STATUS = re.compile(rb'"number":(\d+),"taken":(\d+)')
KEYS = 30
"""Of each client; the first is everybody's."""

SETTLE_S = 0.7
"""Between two statuses: a window has gone out."""


def main() -> None:
    """Add statuses, and print how long they took."""
    arguments = options(
        __doc__, clients=(1_000, ""), windows=(10, "and as many without")
    )
    raise_descriptor_limit()
    with started() as bench:
        log = StatusLog(bench.client, "tt", 1)
        with spawned(follow, bench.port, arguments.clients) as (listener, _):
            listener.recv()
            number = 0
            for _ in range(arguments.windows):
                bench.publish(INSTRUMENTS, 1)
                for pause_s in (SETTLE_S, 0):
                    now_us = time.time_ns() // 1_000
                    log.add(TradingStatus(INSTRUMENTS[0], "halted", now_us), now_us)
                    number += 1
                    time.sleep(pause_s)
            time.sleep(SETTLE_S)
            listener.send(None)
            lags_ms: dict[int, list[float]] = listener.recv()
    counts = {len(lags) for lags in lags_ms.values()}
    if len(lags_ms) != number or counts != {arguments.clients}:
        raise SystemExit(f"{len(lags_ms)} of {number} statuses came, to {counts}")
    beside = [ms for n, lags in lags_ms.items() if n % 2 for ms in lags]
    alone = [ms for n, lags in lags_ms.items() if not n % 2 for ms in lags]
    rows = [("while a window goes out", beside), ("between windows", alone)]
    title = f"From Redis to each of {arguments.clients:,} clients"
    print_table(title, rows)
    print(f"\nMachine: {describe_machine()}")


def follow(pipe: Connection, port: int, clients: int) -> None:
    """Follow with so many clients until told to end; send when what came."""
    raise_descriptor_limit()
    pin(1)
    asyncio.run(_follow(pipe, port, clients))


class Client(asyncio.Protocol):
    """Notes when statuses come; looks at nothing else, to be no limit itself."""

    def __init__(self, lags_ms: dict[int, list[float]], request: bytes) -> None:
        self._lags_ms, self._request = lags_ms, request
        self.has_joined = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now_us = time.time_ns() // 1_000
        if b'"type":"snapshot"' in data:
            self.has_joined.set()
        for number, taken_us in STATUS.findall(data):
            lags_ms = self._lags_ms.setdefault(int(number), [])
            lags_ms.append((now_us - int(taken_us)) / 1_000)


async def _follow(pipe: Connection, port: int, clients: int) -> None:
    lags_ms: dict[int, list[float]] = {}
    loop = asyncio.get_running_loop()
    for number in range(clients):
        own = range(number * KEYS, (number + 1) * KEYS - 1)
        keys = [INSTRUMENTS[n % len(INSTRUMENTS)] for n in own]
        client = Client(lags_ms, stream_request([INSTRUMENTS[0], *keys]))
        await loop.create_connection(lambda one=client: one, "127.0.0.1", port)
        await client.has_joined.wait()
    pipe.send(clients)
    await asyncio.to_thread(pipe.recv)
    pipe.send(lags_ms)


if __name__ == "__main__":
    main()
