"""A feed inside the tests: steady, a little disordered, and never discouraged."""

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from random import Random

import pytest
import redis
from confluent_kafka import Producer
from redis.backoff import NoBackoff
from redis.retry import Retry

from ingest.feed.pacer import run_feed
from ingest.sources.event import Event, Refusals
from ingest.sources.replay import Replay, ReplayOptions
from ingest.sources.simulator import Simulator
from ingest.trade import Trade
from ingest.tradelog.contract import AppendTally, LogInfo, LogWriter, partition_of
from ingest.tradelog.redis_log_reader import open_log
from ingest.tradelog.redis_log_writer import RedisLogWriter
from tests.conftest import TAPES

CAP = 4_000_000
PARTITIONS = 4
LATE, LATE_BY, TWICE = 0.02, 400, 0.01
CORRECTED, CANCELLED = 0.02, 0.02
NOBODYS = 10**15
"""No trade of a tape has this number."""


def find_tape(folder: Path) -> Path:
    """Return a real tape where there is one, otherwise a generated one."""
    real = TAPES / "b3_options_20151126.csv.gz"
    if real.exists():
        return real
    made = folder / "made.jsonl"
    market = Simulator(seed=3, rate=1_000, seconds=15, disorder=0, repeats=0)
    events = market.events(1_773_964_800_000_000)
    made.write_bytes(b"\n".join(event.payload for event in events))
    return made


@pytest.fixture(scope="session")
def tape(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tape to feed from."""
    return find_tape(tmp_path_factory.mktemp("tape"))


def connect(url: str) -> redis.Redis:
    """Connect without retries: what fails is to be seen."""
    return redis.Redis.from_url(url, socket_timeout=3, retry=Retry(NoBackoff(), 0))


class Feed:
    """Appends events until it is stopped, from a thread."""

    def __init__(self, writer: LogWriter, events: Iterator[Event]) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=run_feed,
            args=(events, writer),
            kwargs={
                "clock": time.monotonic,
                "sleep": time.sleep,
                "stop": self._stop,
                "on_progress": lambda progress: None,
            },
            daemon=True,
        )
        self._thread.start()

    def __enter__(self) -> "Feed":
        """Return itself, it runs already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    def wait(self, within_s: float) -> None:
        """Wait until all events are appended."""
        self._thread.join(timeout=within_s)
        assert not self._thread.is_alive()

    def stop(self) -> None:
        """End the feed and wait until it has ended."""
        self._stop.set()
        self._thread.join(timeout=20)
        assert not self._thread.is_alive()


def create_feed(
    url: str,
    tape: Path,
    rate: float,
    seed: int = 1,
    without_partition: int | None = None,
    *,
    is_taking_back: bool = False,
) -> Feed:
    """Start a feed into a log in Redis.

    What the server does not take is offered again, in order.
    """
    info = open_log(connect(url), "tt", PARTITIONS)
    events = feed_events(tape, rate, Random(seed), info, without_partition)
    if is_taking_back:
        events = take_back(events, Random(seed))
    return create_feed_of(url, events)


def create_feed_of(url: str, events: Iterator[Event]) -> Feed:
    """Start a feed of these events into a log in Redis."""
    client = connect(url)
    info = open_log(client, "tt", PARTITIONS)
    return Feed(_Stubborn(RedisLogWriter(client, "tt", info, CAP)), events)


class _Stubborn:
    """A log writer whose every failure is one that passes."""

    dropped_at_cap = 0

    def __init__(self, writer: RedisLogWriter) -> None:
        self._writer = writer
        self.refused, self.tallies = writer.refused, writer.tallies
        self.abandon = writer.abandon

    def append(self, entries: Sequence[tuple[str, bytes]]) -> int:
        """Append, or say that the server is away."""
        try:
            return self._writer.append(entries)
        except redis.RedisError as error:
            raise redis.ConnectionError(str(error)) from error


class Scattered:
    """A log writer without keys: trades go to one partition after another."""

    dropped_at_cap = 0

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self._producer = Producer({"bootstrap.servers": servers, "log_level": 0})
        self._topic = topic
        self._turn = cycle(range(partitions))
        self.refused: Mapping[str, int] = {}
        self.tallies: list[AppendTally] = []

    def append(self, entries: Sequence[tuple[str, bytes]]) -> int:
        """Append and wait until all is acknowledged."""
        for _, payload in entries:
            self._producer.produce(self._topic, payload, partition=next(self._turn))
        assert self._producer.flush(60) == 0
        return len(entries)

    def abandon(self) -> None:
        """Nothing is ever under way."""


def feed_events(
    tape: Path,
    rate: float,
    chance: Random,
    info: LogInfo,
    without_partition: int | None = None,
) -> Iterator[Event]:
    """Yield a tape over and over; a part of it comes late, a part twice."""
    events = _events(tape, rate, chance)
    if without_partition is None:
        return events
    return _without(events, without_partition, info)


def _events(tape: Path, rate: float, chance: Random) -> Iterator[Event]:
    options = ReplayOptions(rate=rate, loop=0)
    events = Replay([tape], options).events(time.time_ns() // 1_000, Refusals())
    return disordered(events, chance)


def disordered(events: Iterable[Event], chance: Random) -> Iterator[Event]:
    """Yield events; a part of them comes late, a part twice."""
    held: list[tuple[int, Event]] = []
    due_us = 0
    for number, event in enumerate(events):
        if held and held[0][0] <= number:
            yield held.pop(0)[1]._replace(due_us=event.due_us)
        if chance.random() < LATE:
            held.append((number + LATE_BY, event))
            continue
        yield event
        due_us = event.due_us
        if chance.random() < TWICE:
            yield event
    for _, event in held:
        yield event._replace(due_us=due_us)


def take_back(
    events: Iterable[Event], chance: Random, often: float = 1
) -> Iterator[Event]:
    """Yield events; a part of them corrects another trade, a part is cancelled later.

    That is the newest trade of the instrument, one of long ago, or none at all. Parts
    are ``often`` times ``CORRECTED`` and ``CANCELLED``.
    """
    seqs: dict[str, list[int]] = {}
    for event in events:
        trade = Trade.from_wire(event.payload)
        known = seqs.setdefault(event.key, [])
        if known and chance.random() < CORRECTED * often:
            fields = {**trade.extra, "corrects": chance.choice([known[-1], *known])}
            event = event._replace(payload=replace(trade, extra=fields).to_wire())
        yield event
        known.append(trade.seq)
        if chance.random() < CANCELLED * often:
            number = chance.choice([known[-1], known[0], chance.choice(known), NOBODYS])
            fields = {"isin": trade.isin, "time": trade.time_us, "cancels": number}
            yield event._replace(payload=Trade.from_fields(fields).to_wire())


def _without(events: Iterator[Event], partition: int, info: LogInfo) -> Iterator[Event]:
    for event in events:
        if partition_of(event.key, info.partitions) != partition:
            yield event
