"""How soon clients get what they follow at once, and what it costs those with lists.

The gateway runs on one core, all clients on the other.

`--cases s`: a trading status at a thousand clients. Half of the statuses are added
right after a window was published, half between two. A client's time runs from the
moment the status was added in Redis to the moment its frame is read.

`--cases t`: 10,000 clients have lists of 30 instruments of their own, of which 900
change in a window. Beside them 500 follow every trade of three of the 60 most traded
instruments, of a feed that appends 900 trades a second. The lists' windows are
measured without the followers and with them, in turns, the feed running always. No
frame may say that trades are missing before it.
"""

import asyncio
import re
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from random import Random
from typing import Any

from fanout import TITLE, measure
from machine import Row, feeding, options, print_machine, print_rows, print_table
from pinned_gateway import INSTRUMENTS, LISTING, pin, started, stream_request

from ingest.process.descriptors import raise_descriptor_limit
from ingest.statuses.status_log import StatusLog
from ingest.statuses.trading_status import TradingStatus
from loadtest.client_mix import Audience
from loadtest.system.spawned import spawned

KEYS = 30
"""Of each client that waits for a status; the first is everybody's."""

SETTLE_S = 0.7
"""Between two statuses: a window has gone out."""

RATE = 900
FOLLOWED = 3
MOST_TRADED = [instrument.isin for instrument in LISTING[:60]]
STATUS = re.compile(rb'"number":(\d+),"taken":(\d+)')
TRADES = re.compile(rb'"type":"trades"[^\[]*"missed":(\d+|null)')

Note = Callable[[list[Any], bytes], None]
"""Notes what a client reads; looks at nothing else, to be no limit itself."""


def main() -> None:
    arguments = options(
        __doc__,
        cases=("st", "which of them"),
        listeners=(1_000, "for statuses"),
        clients=(10_000, "with lists"),
        followers=(500, "of trades"),
        windows=(10, "of each turn; for statuses as many without"),
        turns=(2, "without and with them"),
    )
    raise_descriptor_limit()
    if "s" in arguments.cases:
        measure_statuses(arguments.listeners, arguments.windows)
    if "t" in arguments.cases:
        print_rows(TITLE, measure_lists(arguments))
    print_machine()


def measure_statuses(listeners: int, windows: int) -> None:
    own = [
        INSTRUMENTS[n % len(INSTRUMENTS)] for n in range(1, listeners * (KEYS - 1) + 1)
    ]
    keys = [[INSTRUMENTS[0], *own[n::listeners]] for n in range(listeners)]
    added_us: list[int] = []
    with started() as bench:
        log = StatusLog(bench.client, "tt", 1)
        with spawned(follow, bench.port, keys, note_statuses) as (listener, _):
            listener.recv()
            for _ in range(windows):
                bench.publish(INSTRUMENTS, 1)
                for pause_s in (SETTLE_S, 0):
                    added_us.append(time.time_ns() // 1_000)
                    status = TradingStatus(INSTRUMENTS[0], "halted", added_us[-1])
                    log.add(status, added_us[-1])
                    time.sleep(pause_s)
            time.sleep(SETTLE_S)
            listener.send(None)
            seen: list[tuple[int, float]] = listener.recv()
    lags_ms = [[ms for us, ms in seen if us == one] for one in added_us]
    if {len(lags) for lags in lags_ms} != {listeners}:
        raise SystemExit(f"statuses came to {[len(lags) for lags in lags_ms]} clients")
    halves = {"while a window goes out": lags_ms[::2], "between windows": lags_ms[1::2]}
    rows = [(name, [ms for lags in of for ms in lags]) for name, of in halves.items()]
    print_table(f"From Redis to each of {listeners:,} clients", rows)


def measure_lists(arguments: Namespace) -> list[Row]:
    """Return what became of the lists' windows, without followers and with them."""
    chance, rows = Random(2), list[Row]()
    changed = Random(1).sample(INSTRUMENTS, 900)
    keys = [
        [f"trades:{isin}" for isin in chance.sample(MOST_TRADED, FOLLOWED)]
        for _ in range(arguments.followers)
    ]
    with started() as bench, feeding(bench.server, RATE) as feed:
        pin(1, feed.pid)
        for number in range(1, arguments.turns + 1):
            bench.connect(Audience(arguments.clients))
            name = f"{number}: {arguments.clients:,} lists"
            rows.append(measure(bench, f"{name} alone", changed, arguments.windows))
            bench.connect(Audience(arguments.clients))
            with spawned(follow, bench.port, keys, note_trades) as (pipe, _):
                pipe.recv()
                name += f" beside {arguments.followers:,} followers"
                rows.append(measure(bench, name, changed, arguments.windows))
                pipe.send(None)
                missed: list[bytes] = pipe.recv()
            if not missed or set(missed) != {b"0"}:
                raise SystemExit(f"{len(missed)} frames of trades, some with a gap")
            print(f"{len(missed):,} frames of trades, no gap", file=sys.stderr)
    return rows


def note_statuses(seen: list[Any], data: bytes) -> None:
    """Note when each status was added, and how long it took, ms."""
    now_us = time.time_ns() // 1_000
    for _, taken_us in STATUS.findall(data):
        seen.append((int(taken_us), (now_us - int(taken_us)) / 1_000))


def note_trades(seen: list[Any], data: bytes) -> None:
    """Note of each frame of trades how many it says are missing before it."""
    seen += TRADES.findall(data)


def follow(
    pipe: Connection, port: int, keys: Sequence[Sequence[str]], note: Note
) -> None:
    """Follow with a client for each of the keys until told to end; send the notes."""
    raise_descriptor_limit()
    pin(1)
    asyncio.run(_follow(pipe, port, keys, note))


class _Client(asyncio.Protocol):
    def __init__(self, request: bytes, seen: list[Any], note: Note) -> None:
        self._request, self._seen, self._note = request, seen, note
        self.has_joined = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._note(self._seen, data)
        if b'"type":"ack"' in data:
            self.has_joined.set()


async def _follow(
    pipe: Connection, port: int, keys: Sequence[Sequence[str]], note: Note
) -> None:
    seen: list[Any] = []
    loop = asyncio.get_running_loop()
    for own in keys:
        client = _Client(stream_request(own), seen, note)
        await loop.create_connection(lambda one=client: one, "127.0.0.1", port)
        await client.has_joined.wait()
    pipe.send(None)
    await asyncio.to_thread(pipe.recv)
    pipe.send(seen)


if __name__ == "__main__":
    main()
