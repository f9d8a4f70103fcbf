"""A subscriber in a process of its own: every message, and when it came.

What reads messages in the process that feeds would be late whenever the feed works.
"""

import signal
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import redis

from bench.peers.messages import Received
from loadtest.system.spawned import spawned

_HEAD = struct.Struct("<dI")


class Listener:
    """Reads what its process has written down so far."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._place = 0

    def news(self) -> list[Received]:
        with self._file.open("rb") as file:
            file.seek(self._place)
            data = file.read()
        found, at = [], 0
        while at + _HEAD.size <= len(data):
            at_ms, length = _HEAD.unpack_from(data, at)
            end = at + _HEAD.size + length
            if end > len(data):
                break
            found.append(Received.of(at_ms, data[at + _HEAD.size : end]))
            at = end
        self._place += at
        return found


@contextmanager
def listening(port: int, folder: Path, *channels: str) -> Iterator[Listener]:
    """Subscribe to channels of a server on loopback for as long as the block runs."""
    file = folder / "messages"
    with spawned(_write_down, port, file, channels) as (ready, _):
        ready.recv()
        with redis.Redis(port=port) as client:
            # One that is behind for a moment is no fault of the engine.
            client.config_set("client-output-buffer-limit", "pubsub 0 0 0")
        yield Listener(file)


def _write_down(ready: Connection, port: int, file: Path, channels: list[str]) -> None:
    """Subscribe and write down every message, without end."""
    # A terminal's Ctrl-C is for the benchmark.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with redis.Redis(port=port) as client, file.open("wb") as out:
        subscription = client.pubsub(ignore_subscribe_messages=True)
        subscription.subscribe(*channels)
        # The server has answered each of them.
        for _ in channels:
            subscription.get_message(timeout=10)
        ready.send(None)
        for message in subscription.listen():
            data = message["data"]
            out.write(_HEAD.pack(time.time() * 1_000, len(data)) + data)
            out.flush()
