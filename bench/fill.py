"""Trades into the log as fast as it takes them: backlogs of the past and live feeds.

Simulated trades are encoded beforehand and sent many at a time, over a plain socket to
streams of Redis, by a producer to a topic of Kafka: what encodes one trade after the
other would be what is measured. A live feed is paced by the clock alone: it does not
wait for whoever reads the log.
"""

import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, count, pairwise, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from machine import NAMESPACE, Server, child

from ingest.process.ports import free_port
from ingest.sources.simulator import Simulator
from ingest.tradelog.contract import partition_of
from ingest.tradelog.redis_log_reader import open_log
from tickthrottle_client.log_v1 import FIELD, stream_key

POOL = 200_000
"""So many distinct trades are simulated; then they come again with newer versions."""

TICK_MS = 10
TOPIC = "trades"

# All numbers keep their length, so a command's own lengths are known beforehand.
_MARKET_START_US = 10**15
_FIRST_SEQ, _SEQ_STEP = 10**9, 10**6
_BATCH = 5_000
_ISIN_PLACE = slice(9, 21)
_PAYLOAD = re.compile(rb'(\{"isin":"\w{12}","time":)(\d{16})(,"seq":)(\d+)(,.*)', re.S)
_KAFKA_STARTS_WITHIN_S = 60


class Template(NamedTuple):
    """A simulated trade; ``payload`` has places for its time and seq."""

    due_us: int
    time_us: int
    seq: int
    partition: int
    payload: bytes


class Stamp(NamedTuple):
    """What a trade is sent with; a live log puts its own append time."""

    append_ms: int
    time_us: int
    seq: int


def create_pool(
    partitions: int, rate: float, instruments: int, trades: int = POOL
) -> tuple[int, list[Template]]:
    """Simulate about so many trades at a rate: disorder, repeats and bursts included.

    Return them and how many microseconds they span: a multiple of the 2 s over which
    the simulator keeps its rate, so that the stretch can be repeated end to end.
    """
    span_us = max(1, round(trades / rate / 2)) * 2 * 10**6
    events = Simulator(rate=rate, instruments=instruments).events(_MARKET_START_US)
    templates = []
    for event in takewhile(lambda event: event.due_us < span_us, events):
        fields = _PAYLOAD.fullmatch(event.payload)
        if fields is None:
            raise ValueError(f"{event.payload!r}: not as the simulator writes a trade")
        head, time_us, middle, seq, rest = fields.groups()
        templates.append(
            Template(
                event.due_us,
                int(time_us) - _MARKET_START_US,
                _FIRST_SEQ + int(seq),
                partition_of(event.key, partitions),
                b"%b%%d%b%%d%b" % (head, middle, rest.replace(b"%", b"%%")),
            )
        )
    return span_us, templates


class RedisSender:
    """A plain connection that sends XADD commands; counts what was acknowledged."""

    def __init__(self, port: int, *, is_past: bool) -> None:
        self.acknowledged = 0
        self._is_past = is_past
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._end = b""

    def prepare(self, trades: Sequence[Template]) -> bytes:
        """Return their commands, with places for what they are sent with."""
        return b"".join(map(self._command, trades))

    def send(self, prepared: bytes, stamps: Sequence[Stamp]) -> None:
        left_out = 0 if self._is_past else 1
        numbers = chain.from_iterable(stamp[left_out:] for stamp in stamps)
        self._socket.sendall(prepared % tuple(numbers))
        self._receive(0)

    def wait_for(self, acknowledged: int) -> None:
        """Wait until so many entries have been acknowledged since the start."""
        while self.acknowledged < acknowledged:
            self._receive(1)

    def _command(self, trade: Template) -> bytes:
        key = stream_key(NAMESPACE, trade.partition).encode()
        entry_id, id_bytes = (b"%d-*", 15) if self._is_past else (b"*", 1)
        length = len(trade.payload % (_MARKET_START_US, _FIRST_SEQ))
        words = [
            *((4, b"XADD"), (len(key), key), (id_bytes, entry_id)),
            *((len(FIELD), FIELD), (length, trade.payload)),
        ]
        return b"*5\r\n" + b"".join(b"$%d\r\n%b\r\n" % word for word in words)

    def _receive(self, wait_s: float) -> None:
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


class KafkaSender:
    """A producer; counts what was acknowledged."""

    def __init__(self, servers: str, topic: str, *, is_past: bool) -> None:
        self.acknowledged = 0
        self._is_past = is_past
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "compression.type": "lz4",
                "linger.ms": 5,
                "queue.buffering.max.messages": 500_000,
                "log_level": 0,
            }
        )

    def prepare(self, trades: Sequence[Template]) -> Sequence[Template]:
        """A message needs no preparation."""
        return trades

    def send(self, prepared: Sequence[Template], stamps: Sequence[Stamp]) -> None:
        """Hand messages over, each with its stamp; wait while there is no room."""
        left: list[dict[str, Any]] = [
            {
                "key": trade.payload[_ISIN_PLACE],
                "value": trade.payload % stamp[1:],
                "partition": trade.partition,
            }
            for trade, stamp in zip(prepared, stamps, strict=True)
        ]
        if self._is_past:
            # The client takes stamps one by one only.
            for message, stamp in zip(left, stamps, strict=True):
                self._produce(message, stamp.append_ms)
            left = []
        while left and self._producer.produce_batch(
            self._topic, left, on_delivery=self._count
        ) < len(left):
            left = [message for message in left if message.pop("_error", None)]
            self._producer.poll(0.05)
        self._producer.poll(0)

    def _produce(self, message: dict[str, Any], append_ms: int) -> None:
        while True:
            with suppress(BufferError):
                return self._producer.produce(
                    self._topic, **message, timestamp=append_ms, on_delivery=self._count
                )
            self._producer.poll(0.05)

    def wait_for(self, acknowledged: int) -> None:
        """Wait until so many entries have been acknowledged since the start."""
        while self.acknowledged < acknowledged:
            self._producer.poll(0.1)

    def _count(self, error: Any, message: Any) -> None:
        if error is not None:
            raise RuntimeError(f"the broker refused an entry: {error}")
        self.acknowledged += 1


class Fed(NamedTuple):
    """How a live feed went; times in ms since 1970."""

    started_ms: int
    ended_ms: int
    rate: float
    behind_ms: float


@dataclass(frozen=True, slots=True)
class Log:
    """A trade log of a benchmark; ``settings`` is what the job has to be told of it.

    ``address`` is the port of a server's streams, or the servers of a topic. One that
    ``is_past`` is to be filled, another one to be fed.
    """

    address: str
    partitions: int
    settings: dict[str, str]
    is_past: bool
    topic: str = TOPIC

    def fill(self, entries: int, rate: float, instruments: int) -> tuple[int, int]:
        """Fill it, while it is empty, with trades recorded at ``rate`` until now.

        Return how many there are, at least ``entries``, and the newest append time, ms.
        """
        sender = self.sender()
        span_us, pool = create_pool(self.partitions, rate, instruments)
        batches = [pool[at : at + _BATCH] for at in range(0, len(pool), _BATCH)]
        prepared = [(batch, sender.prepare(batch)) for batch in batches]
        start_us = time.time_ns() // 1_000 - -(-entries // len(pool)) * span_us
        sent = last_ms = 0
        for number in count():
            from_us, from_seq = start_us + number * span_us, number * _SEQ_STEP
            for batch, texts in prepared:
                if sent >= entries:
                    sender.wait_for(sent)
                    return sent, last_ms
                stamps = [
                    Stamp(
                        (from_us + trade.due_us) // 1_000,
                        from_us + trade.time_us,
                        from_seq + trade.seq,
                    )
                    for trade in batch
                ]
                sender.send(texts, stamps)
                last_ms = stamps[-1].append_ms
                # One batch is on its way while the log works on the one before.
                sender.wait_for(sent)
                sent += len(batch)
        raise AssertionError("unreachable")

    def feed(self, rate: int, seconds: float, instruments: int) -> Fed:
        """Append at a steady rate; return how it went."""
        sender = self.sender()
        trades = min(POOL, int(rate * seconds))
        _, pool = create_pool(self.partitions, rate, instruments, trades)
        bounds = range(0, len(pool) * 1_000 // (rate * TICK_MS) + 1)
        places = pairwise(number * rate * TICK_MS // 1_000 for number in bounds)
        ticks = [
            ([trade.seq for trade in pool[a:b]], sender.prepare(pool[a:b]))
            for a, b in places
        ]
        ticks_in_all = int(seconds * 1_000) // TICK_MS
        sent, behind_s = 0, 0.0
        started_ms, start_s = time.time_ns() // 10**6, time.monotonic()
        for number in range(ticks_in_all):
            due_s = start_s + number * TICK_MS / 1_000
            time.sleep(max(0, due_s - time.monotonic()))
            behind_s = max(behind_s, time.monotonic() - due_s)
            seqs, prepared = ticks[number % len(ticks)]
            now_us = time.time_ns() // 1_000
            sender.send(prepared, [Stamp(now_us // 1_000, now_us, seq) for seq in seqs])
            sent += len(seqs)
        sender.wait_for(sent)
        took_s = max(time.monotonic() - start_s, ticks_in_all * TICK_MS / 1_000)
        return Fed(started_ms, time.time_ns() // 10**6, sent / took_s, behind_s * 1_000)

    def sender(self) -> Any:
        if self.address.isdigit():
            return RedisSender(int(self.address), is_past=self.is_past)
        return KafkaSender(self.address, self.topic, is_past=self.is_past)


@contextmanager
def running_log(
    kind: str, server: Server, partitions: int, *, is_past: bool = False
) -> Iterator[Log]:
    """Yield an empty log. Kafka's broker is started in the server's folder."""
    if kind == "redis":
        open_log(server.client, NAMESPACE, partitions)
        settings = {"TICKTHROTTLE_PARTITIONS": str(partitions)}
        yield Log(str(server.port), partitions, settings, is_past)
        return
    with running_broker(server.folder) as servers:
        yield create_topic(servers, TOPIC, partitions, is_past=is_past)


@contextmanager
def running_broker(folder: Path) -> Iterator[str]:
    """Start a Kafka broker that keeps its files in a folder; yield its address."""
    port = free_port()
    # A process, as `make kafka` starts it: a benchmark has no need of the tests.
    with child(
        *(sys.executable, "-m", "tests.kafka_broker.serve", "--port", str(port)),
        *("--heap-mb", "1024", "--state-dir", str(folder)),
        ends_by=signal.SIGTERM,
        cwd=Path(__file__).parents[1],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ):
        yield f"127.0.0.1:{port}"


def create_topic(servers: str, name: str, partitions: int, *, is_past: bool) -> Log:
    """Make an empty topic, with patience for a broker that is only starting."""
    # A backlog has been recorded: its producer says when.
    stamp = "CreateTime" if is_past else "LogAppendTime"
    config = {"message.timestamp.type": stamp}
    topic = NewTopic(name, partitions, 1, config=config)
    # Held: a client that is let go of breaks off what it was asked for.
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    within_s = _KAFKA_STARTS_WITHIN_S
    admin.create_topics([topic], request_timeout=within_s)[name].result()
    settings = {
        "TICKTHROTTLE_TRADE_LOG": "kafka",
        "TICKTHROTTLE_KAFKA_SERVERS": servers,
        "TICKTHROTTLE_KAFKA_TOPIC": name,
    }
    return Log(servers, partitions, settings, is_past, name)
