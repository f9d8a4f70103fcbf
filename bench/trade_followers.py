"""What who follows every trade costs those who have lists.

The gateway runs on one core, all clients on the other. 10,000 clients have lists of 30
instruments of their own, of which 900 change in a window. Beside them 500 follow every
trade of three of the 60 most traded instruments, of a feed that appends 900 trades a
second. The lists' windows are measured without the followers and with them, in turns,
the feed running always. No frame may say that trades are missing before it.
"""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from random import Random

from fanout import measure
from machine import Row, options, print_rows, spawned
from pinned_gateway import INSTRUMENTS, LISTING, Bench, pin, started, stream_request

from ingest.process.descriptors import raise_descriptor_limit
from loadtest.client_mix import Audience
from loadtest.system.machine import describe_machine

RATE = 900
FOLLOWED = 3
MOST_TRADED = [instrument.isin for instrument in LISTING[:60]]
GAP = re.compile(rb'"type":"trades"[^\[]*"missed":(?!0)')
TRADES = b'"type":"trades"'


def main() -> None:
    """Measure in turns, and print."""
    arguments = options(
        __doc__,
        clients=(10_000, "with lists"),
        followers=(500, "of trades"),
        windows=(10, "of each turn"),
        turns=(2, "without and with them"),
    )
    raise_descriptor_limit()
    changed = Random(1).sample(INSTRUMENTS, 900)
    rows: list[Row] = []
    with started() as bench, feeding(bench):
        for number in range(1, arguments.turns + 1):
            bench.connect(Audience(arguments.clients))
            name = f"{number}: {arguments.clients:,} lists"
            rows.append(measure(bench, f"{name} alone", changed, arguments.windows))
            bench.connect(Audience(arguments.clients))
            with spawned(follow, bench.port, arguments.followers) as (pipe, _):
                pipe.recv()
                name += f" beside {arguments.followers:,} followers"
                rows.append(measure(bench, name, changed, arguments.windows))
                pipe.send(None)
                frames, gaps = pipe.recv()
            if gaps or not frames:
                raise SystemExit(f"{frames} frames of trades, {gaps} with a gap")
            print(f"{frames:,} frames of trades, no gap", file=sys.stderr)
    print_rows("ms from the publish; the last client: median and worst window", rows)
    print(f"\nMachine: {describe_machine()}")


@contextmanager
def feeding(bench: Bench) -> Iterator[None]:
    """Have trades appended, from the second core."""
    rate = ("--rate", str(RATE))
    command = [sys.executable, "-m", "tickthrottle", "simulate", *rate]
    command += ["--redis-url", bench.server.url]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as feed:
        pin(1, feed.pid)
        try:
            yield
        finally:
            feed.terminate()


def follow(pipe: Connection, port: int, followers: int) -> None:
    """Follow trades until told to end; send how many frames came, with gaps of them."""
    pin(1)
    asyncio.run(_follow(pipe, port, followers))


class Follower(asyncio.Protocol):
    """Counts frames of trades, and looks at nothing else."""

    def __init__(self, counts: list[int], request: bytes) -> None:
        self._counts, self._request = counts, request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._counts[0] += data.count(TRADES)
        self._counts[1] += len(GAP.findall(data))


async def _follow(pipe: Connection, port: int, followers: int) -> None:
    counts, loop, chance = [0, 0], asyncio.get_running_loop(), Random(2)
    for _ in range(followers):
        keys = [f"trades:{isin}" for isin in chance.sample(MOST_TRADED, FOLLOWED)]
        follower = Follower(counts, stream_request(keys))
        await loop.create_connection(lambda one=follower: one, "127.0.0.1", port)
    pipe.send(followers)
    await asyncio.to_thread(pipe.recv)
    pipe.send(tuple(counts))


if __name__ == "__main__":
    main()
