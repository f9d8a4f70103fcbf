"""Trades into the log as fast as its server takes them: backlogs and live feeds.

Commands are encoded beforehand and sent over a plain socket, many at a time: a client
library would be what is measured. As a program it is a live feed in a process of its
own, paced by the clock alone: it does not wait for whoever reads the log.
"""

import argparse
import json
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import count, pairwise, takewhile
from typing import Any, NamedTuple

from machine import NAMESPACE

from ingest.log import LogInfo, partition_of
from ingest.redis_keys import stream_key
from ingest.redis_log import FIELD
from ingest.simulator import Simulator

POOL = 200_000
"""So many distinct trades are simulated; then they come again with newer versions."""

TICK_MS = 10

# All numbers keep their length, so a command's own lengths are known beforehand.
_MARKET_START_US = 10**15
_FIRST_SEQ, SEQ_STEP = 10**9, 10**6
_BATCH = 5_000
_NO_TIME = b'"time":0000000000000000'
_PAYLOAD = re.compile(rb'(\{"isin":"\w{12}","time":)(\d{16})(,"seq":)(\d+)(,.*)', re.S)


class Template(NamedTuple):
    """A simulated trade with places for its append time, time and seq."""

    due_us: int
    time_us: int
    seq: int
    partition: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Pool:
    """A stretch of a market that can be repeated end to end."""

    span_us: int
    templates: Sequence[Template]


def create_pool(info: LogInfo, rate: float, issues: int, trades: int = POOL) -> Pool:
    """Simulate about so many trades at a rate: disorder, repeats and bursts included.

    The stretch is a multiple of the 2 s over which the simulator keeps its rate.
    """
    seconds = max(1, round(trades / rate / 2)) * 2
    events = Simulator(rate=rate, issues=issues).events(_MARKET_START_US)
    templates = []
    for event in takewhile(lambda event: event.due_us < seconds * 10**6, events):
        found = _PAYLOAD.fullmatch(event.payload)
        if found is None:
            raise ValueError(f"{event.payload!r}: not as the simulator writes a trade")
        head, time_us, middle, seq, rest = found.groups()
        templates.append(
            Template(
                event.due_us,
                int(time_us) - _MARKET_START_US,
                _FIRST_SEQ + int(seq),
                partition_of(event.key, info.partitions),
                b"%b%%d%b%%d%b" % (head, middle, rest.replace(b"%", b"%%")),
            )
        )
    return Pool(seconds * 10**6, templates)


class Connection:
    """A plain connection that sends XADD commands and counts their acknowledgements."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._end = b""
        self.acknowledged = 0

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, commands: bytes) -> None:
        """Send encoded commands."""
        self._socket.sendall(commands)

    def receive(self, wait_s: float = 0) -> None:
        """Count the acknowledgements that have arrived. Raises RuntimeError."""
        while select.select([self._socket], [], [], wait_s)[0]:
            replies = self._socket.recv(1 << 20)
            if not replies:
                raise RuntimeError("the server has closed the connection")
            # An id holds a hyphen too, but never at the start of a line.
            if b"\n-" in self._end + replies:
                raise RuntimeError(f"the server refused an entry: {replies!r:.200}")
            self._end = replies[-1:]
            self.acknowledged += replies.count(b"$")
            wait_s = 0

    def wait_for(self, acknowledged: int) -> None:
        """Wait until so many entries have been acknowledged since the start."""
        while self.acknowledged < acknowledged:
            self.receive(wait_s=1)


@dataclass(frozen=True, slots=True)
class Backlog:
    """What was filled into a log: how many entries, and the newest append time."""

    entries: int
    last_ms: int


def fill(port: int, info: LogInfo, entries: int, rate: float, issues: int) -> Backlog:
    """Fill empty streams with trades that were recorded at ``rate`` until just now."""
    pool = create_pool(info, rate, issues)
    rounds = -(-entries // len(pool.templates))
    start_us = time.time_ns() // 1_000 - rounds * pool.span_us
    sent = newest_ms = 0
    with Connection(port) as connection:
        for commands, last_ms in _backlog(pool, start_us, entries):
            newest_ms = last_ms
            connection.send(commands)
            # One batch is on its way while the server works on the one before.
            connection.wait_for(sent - _BATCH)
            sent += _BATCH
        connection.wait_for(entries)
    return Backlog(entries, newest_ms)


def _backlog(pool: Pool, start_us: int, entries: int) -> Iterator[tuple[bytes, int]]:
    """Yield batches of commands and the last append time in each."""
    command = _command(b"%d-*", id_bytes=15)
    templates = [
        (due_us, time_us, seq, command(partition, payload))
        for due_us, time_us, seq, partition, payload in pool.templates
    ]
    left = entries
    for number in count():
        from_us, from_seq = start_us + number * pool.span_us, number * SEQ_STEP
        for at in range(0, len(templates), _BATCH):
            batch = templates[at : min(at + _BATCH, at + left)]
            if not batch:
                return
            left -= len(batch)
            encoded = [
                text % ((from_us + due_us) // 1_000, from_us + time_us, from_seq + seq)
                for due_us, time_us, seq, text in batch
            ]
            yield b"".join(encoded), (from_us + batch[-1][0]) // 1_000


def _command(entry_id: bytes, id_bytes: int) -> Any:
    """Return the function that encodes an XADD; numbers are filled in later."""

    def command(partition: int, payload: bytes) -> bytes:
        key = stream_key(NAMESPACE, partition).encode()
        length = len(payload % (_MARKET_START_US, _FIRST_SEQ))
        return (
            b"*5\r\n$4\r\nXADD\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n"
        ) % (len(key), key, id_bytes, entry_id, len(FIELD), FIELD, length, payload)

    return command


def feed(port: int, info: LogInfo, rate: int, seconds: float, issues: int) -> None:
    """Append at a steady rate; print when it starts and, at the end, how it went."""
    pool = create_pool(info, rate, issues, min(POOL, int(rate * seconds)))
    ticks = _ticks(pool, rate)
    ticks_in_all = int(seconds * 1_000) // TICK_MS
    sent, behind_s = 0, 0.0
    with Connection(port) as connection:
        say(started_ms=time.time_ns() // 10**6)
        start_s = time.monotonic()
        for number in range(ticks_in_all):
            due_s = start_s + number * TICK_MS / 1_000
            time.sleep(max(0, due_s - time.monotonic()))
            behind_s = max(behind_s, time.monotonic() - due_s)
            entries, commands = ticks[number % len(ticks)]
            now = b'"time":%d' % (time.time_ns() // 1_000)
            connection.send(commands.replace(_NO_TIME, now))
            connection.receive()
            sent += entries
        connection.wait_for(sent)
        took_s = max(time.monotonic() - start_s, ticks_in_all * TICK_MS / 1_000)
    say(
        sent=sent,
        rate=sent / took_s,
        behind_ms=behind_s * 1_000,
        ended_ms=time.time_ns() // 10**6,
    )


def _ticks(pool: Pool, rate: int) -> list[tuple[int, bytes]]:
    """Return the commands of every tick, the times left to be filled in."""
    command = _command(b"*", id_bytes=1)
    commands = [
        (command(t.partition, t.payload) % (_MARKET_START_US, t.seq)).replace(
            b'"time":%d' % _MARKET_START_US, _NO_TIME
        )
        for t in pool.templates
    ]
    bounds = range(0, len(commands) * 1_000 // (rate * TICK_MS) + 1)
    places = [number * rate * TICK_MS // 1_000 for number in bounds]
    return [
        (end - start, b"".join(commands[start:end])) for start, end in pairwise(places)
    ]


def say(**fields: float) -> None:
    print(json.dumps(fields), flush=True)


class Feeder(AbstractContextManager["Feeder"]):
    """A live feed in a process of its own; it ends with the context."""

    def __init__(self, program: str, options: Mapping[str, Any]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, program, *(f"--{n}={v}" for n, v in options.items())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def next_report(self) -> dict[str, float]:
        """Wait for its start, then for its end; return what it says of it."""
        line = self._process.stdout.readline() if self._process.stdout else b""
        if not line:
            raise RuntimeError(f"the feed ended: exit code {self._process.wait()}")
        report: dict[str, float] = json.loads(line)
        return report


def main() -> None:
    """Feed an existing log on this machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--rate", type=int, required=True, help="trades per second")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--issues", type=int, default=2_879)
    parser.add_argument("--partitions", type=int, default=4)
    chosen = parser.parse_args()
    info = LogInfo("", chosen.partitions, 0)
    feed(chosen.port, info, chosen.rate, chosen.seconds, chosen.issues)


if __name__ == "__main__":
    main()
