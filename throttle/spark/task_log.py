"""The trade log as a job and its tasks read it: patiently, in pieces that are checked.

A task keeps to the log's server: while that is away, it waits and then reads on.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import redis

from ingest.kafka.address import KafkaTopic
from ingest.tradelog.contract import PIECE_BYTES, Chunk, LogInfo, LogReader, Ranges
from ingest.tradelog.manual_clock import ManualClockLog
from ingest.tradelog.redis_log_reader import RedisLogReader
from ingest.tradelog.redis_log_reader import open_log as open_redis_log
from throttle.contract.ledger import NOTHING
from throttle.lease.retry import AWAY, OutageLog, create_client, is_transient
from throttle.spark.options import SourceOptions
from throttle.spark.warmup import SyntheticLog
from throttle.standing.look_back import EntryRules
from throttle.window.bounded_rows import bound_names
from throttle.window.checked_rows import extra_trades, joined, trade_rows
from throttle.window.decoder import find_decoder
from throttle.window.series_rows import find_series
from throttle.window.turnover import ByPartition, of_all
from tickthrottle_client.log_v1 import LogError

if TYPE_CHECKING:
    # A task should not load what checks settings.
    from throttle.settings import SparkSettings

T = TypeVar("T")

# Spark cannot be interrupted while it waits for an answer: wait in short pieces.
LONGEST_WAIT_S = 0.2

# Chunks of many partitions are small, and checking one costs as much as checking all.
_CHECKED_AT_ONCE = 10_000

# Of a backlog, chunks that are read while others are checked; each is at most a piece.
_READ_AHEAD = 6


class CheckedPieces:
    """Reads and checks what one task reads of a batch, and counts it by partition.

    ``entries`` are all that were read, ``blanks`` positions that hold none, ``extra``
    the trades beyond the first of an entry, those of series among them, ``turnover``
    what all of them come to. The batch goes from ``start_ms`` to ``end_ms``. With
    ``every_trade`` each trade of an entry is a row, otherwise the newest of each
    instrument.
    """

    def __init__(
        self,
        options: SourceOptions,
        start_ms: int,
        end_ms: int,
        *,
        every_trade: bool = False,
    ) -> None:
        self._options = options
        self._bounds_ms = start_ms, end_ms
        self._every_trade = every_trade
        self._decode = find_decoder(options.decoder, options.schema_registry_url)
        self._series = find_series(options.series, options.sessions)
        self._names: set[str] = set()
        self.entries, self.blanks = Counter[int](), Counter[int]()
        self.extra = Counter[int]()
        self.turnover: ByPartition = {}

    def read(
        self, chunks: Generator[tuple[int, Chunk]], is_backlog: bool
    ) -> Iterator[pa.Table]:
        """Yield the rows of chunks (``row_schema.ARROW_SCHEMA``); a backlog's ahead."""
        ready: list[tuple[int, Chunk]] = []
        with closing(read_ahead(chunks, _READ_AHEAD) if is_backlog else chunks) as read:
            for p, chunk in read:
                ready.append((p, chunk))
                if (
                    sum(len(one) for _, one in ready) >= _CHECKED_AT_ONCE
                    or sum(one.payloads.nbytes for _, one in ready) >= PIECE_BYTES
                ):
                    yield self._check(ready)
                    ready = []
        if ready:
            yield self._check(ready)

    def _check(self, chunks: Sequence[tuple[int, Chunk]]) -> pa.Table:
        entries = Counter[int]()
        for p, chunk in chunks:
            entries[p] += len(chunk)
            self.blanks[p] += chunk.blanks
        self.entries += entries
        check = partial(
            trade_rows,
            *joined(chunks),
            *self._bounds_ms,
            self._options.max_ahead_ms,
            self._decode,
            self._options.max_entry_bytes,
            every_trade=self._every_trade,
            series=self._series,
            speedups=self._options.speedups,
        )
        rows = check() if self._decode is None else decode_patiently(check)
        for p, turnover in of_all(rows).items():
            self.turnover[p] = turnover.plus(*self.turnover.get(p, NOTHING))
        if self._decode is None and not self._series.series:
            return rows
        self.extra += extra_trades(rows, entries)
        return rows if self._decode is None else bound_names(rows, self._names)


class _End:
    """What comes after the last item."""


def read_ahead(items: Generator[T], most: int) -> Generator[T]:
    """Yield what ``items`` yields; up to ``most`` of it is taken early, in a thread.

    An error is raised in the place of its item. ``items`` is closed at the end, also if
    not all of it was wanted.
    """
    thread = ThreadPoolExecutor(1, thread_name_prefix="read-ahead")
    with closing(items):
        try:
            taken = deque(thread.submit(next, items, _End()) for _ in range(most))
            while not isinstance(item := taken.popleft().result(), _End):
                taken.append(thread.submit(next, items, _End()))
                yield item
        finally:
            thread.shutdown(cancel_futures=True)


@contextmanager
def outages_pass() -> Iterator[None]:
    """Leave the block where a server is away; raise what does not pass by itself."""
    try:
        yield
    except AWAY as error:
        if not is_transient(error):
            raise


def ask_patiently(ask: Callable[[], T]) -> T:
    """Return the log's answer, however long its server is away."""
    while True:
        with outages_pass():
            return ask()
        time.sleep(LONGEST_WAIT_S)


def decode_patiently(check: Callable[[], T]) -> T:
    """Return what is checked; wait, and say why, while it cannot be decoded.

    What refuses to help is waited for, too: of a task's end nobody would learn why.
    """
    outage: OutageLog | None = None
    while True:
        try:
            rows = check()
        except LogError as error:
            outage = outage or OutageLog("what the decoder needs")
            outage.failed("decoder", error)
            time.sleep(LONGEST_WAIT_S)
        else:
            if outage is not None:
                outage.answered("decoder")
            return rows


def read_patiently(log: LogReader, ranges: Ranges) -> Generator[tuple[int, Chunk]]:
    """Read on where reading broke off, for as long as the log's server is away."""
    left = dict(ranges)
    while left:
        with outages_pass():
            for partition, chunk in log.read(left.copy()):
                yield partition, chunk
                left[partition] = chunk.upto, left[partition][1]
            return
        left = {p: (after, upto) for p, (after, upto) in left.items() if after < upto}
        time.sleep(LONGEST_WAIT_S)


def open_log(client: redis.Redis, settings: "SparkSettings") -> LogInfo:
    """Return the log's identity; one of Redis is created on first use.

    Raises LogAway and LogUnusable, or redis.RedisError.
    """
    topic = settings.topic()
    if topic is None:
        return open_redis_log(client, settings.namespace, settings.partitions)
    # Loaded where it is needed only.
    from tickthrottle_client.kafka_client import open_topic

    return open_topic(topic)


def open_reader(
    client: redis.Redis, settings: "SparkSettings", info: LogInfo
) -> LogReader:
    """Return what reads the log, or those of its partitions the job is to read."""
    topic, only = settings.topic(), settings.only()
    if topic is None:
        return RedisLogReader(client, settings.namespace, info, only)
    rules = settings.kafka_margin_ms, settings.speedups
    return kafka_reader(topic, info, only, *rules)


def kafka_reader(
    topic: KafkaTopic, info: LogInfo, only: Sequence[int], margin_ms: int, fast: bool
) -> LogReader:
    """Return what reads a topic of Kafka; ``fast``: by the compiled package."""
    from ingest.kafka.kafka_log_reader import KafkaLogReader

    return KafkaLogReader(topic, info, only, margin_ms, speedups=fast)


@lru_cache(maxsize=4)
def client_of(options: SourceOptions) -> redis.Redis:
    """Return a client of Redis, the same one for a query's life.

    Workers outlive queries. One that begins anew connects anew: an old connection may
    be to a server that is the primary no more.
    """
    return create_client(options.redis_url)


@lru_cache(maxsize=4)
def entry_rules(options: SourceOptions) -> EntryRules:
    """Return how the log of a source is read again where trades are taken back."""
    return EntryRules(
        lambda: open_log_reader(options),
        options.window_ms,
        options.max_ahead_ms,
        options.max_entry_bytes,
        options.decoder,
        is_scattered=options.kafka is not None,
        schema_registry_url=options.schema_registry_url,
        series=find_series(options.series, options.sessions),
        speedups=options.speedups,
    )


def open_log_reader(options: SourceOptions) -> LogReader:
    """Return what reads the log of a source, the same one each time."""
    # Once per process: Spark builds readers anew for every task of a worker.
    info = LogInfo(options.log_id, options.partitions, options.created_ms)
    live, behind = options.synthetic_live, options.synthetic_behind
    if live or behind:
        return SyntheticLog(info, options.window_ms, live, behind)
    if options.kafka is not None:
        rules = options.margin_ms, options.speedups
        return kafka_reader(options.kafka, info, options.only, *rules)
    kind = ManualClockLog if options.manual_clock else RedisLogReader
    client = client_of(options)
    return kind(client, options.namespace, info, options.only)
