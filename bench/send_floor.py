"""The floor of a fan-out: a loop that only writes the same bytes to as many sockets.

The loop is Python's ``os.write``; what it costs beside the system call is 0.2 us.
"""

import os
import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from statistics import median
from typing import NamedTuple

from machine import spawned
from pinned_gateway import pin

from ingest.process.descriptors import raise_descriptor_limit

REST_S = 1.0
"""Between two rounds: caches are as cold as between windows."""


class Floor(NamedTuple):
    """What writing costs: of a core each, and until the last write has returned."""

    us_each: float
    last_ms: float


@contextmanager
def reading(count: int) -> Iterator[list[socket.socket]]:
    """Yield the near ends of so many loopback connections; all is read on core 1."""
    raise_descriptor_limit()
    with spawned(_read, count) as (ours, _), ExitStack() as stack:
        address = ours.recv()
        near = [
            stack.enter_context(socket.create_connection(address)) for _ in range(count)
        ]
        # All are accepted.
        ours.recv()
        yield near


def measure_floor(count: int, size: int, rounds: int) -> Floor:
    """Write ``size`` bytes to each of ``count`` connections, from core 0."""
    with spawned(_measure, count, size, rounds) as (ours, _):
        return Floor(*ours.recv())


def _measure(results: Connection, count: int, size: int, rounds: int) -> None:
    pin(0)
    took: list[tuple[float, float]] = []
    with reading(count) as near:
        descriptors = [each.fileno() for each in near]
        for number in range(rounds):
            # A frame of its own for each, as for clients with lists of their own.
            frames = [os.urandom(16) + bytes(size - 16) for _ in descriptors]
            time.sleep(REST_S)
            began_s, busy_s = time.perf_counter(), time.process_time()
            for descriptor, frame in zip(descriptors, frames, strict=True):
                os.write(descriptor, frame)
            if number:
                now_s = time.perf_counter()
                took.append((time.process_time() - busy_s, now_s - began_s))
    each_us = median(busy_s for busy_s, _ in took) / count * 1e6
    results.send((each_us, 1e3 * median(wall_s for _, wall_s in took)))


def _read(ready: Connection, count: int) -> None:
    pin(1)
    raise_descriptor_limit()
    with socket.create_server(("127.0.0.1", 0), backlog=4_096) as server:
        ready.send(server.getsockname())
        chosen = selectors.DefaultSelector()
        for _ in range(count):
            far, _ = server.accept()
            chosen.register(far, selectors.EVENT_READ, far)
        ready.send(None)
        while True:
            for key, _ in chosen.select():
                if not key.data.recv(65_536):
                    return
