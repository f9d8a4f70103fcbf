"""The analytics job in this process, on a real log whose clock is turned by hand."""

import threading
from pathlib import Path
from typing import Any, Literal, Self

import orjson
import redis
from prometheus_client import CollectorRegistry
from pyspark.sql import SparkSession

from ingest.redis_keys import AnalyticsKeys
from ingest.trade import Trade
from ingest.tradelog.contract import partition_of
from ingest.tradelog.manual_clock import ManualClockLog
from ingest.tradelog.redis_log_reader import open_log
from tests.conftest import eventually
from tests.throttle.analytics.bar_oracle import Entry, fraction
from throttle.analytics.analytics_job import AnalyticsFailed, AnalyticsLeader
from throttle.analytics.metrics import AnalyticsMetrics
from throttle.analytics.partials.log_source import PartialBarsSource
from throttle.analytics.product_publisher import ProductPublisher
from throttle.analytics.product_query import PROVIDER
from throttle.analytics.products import BY_NAME
from throttle.contract.bar_intervals import DayBar
from throttle.contract.bars import Bar
from throttle.contract.tally import TallyBook
from throttle.settings import AnalyticsSettings
from tickthrottle_client.log_v1 import FIELD, position_of, stream_key

START_MS = 1_773_964_800_000
PARTITIONS = 2
CrashPoint = Literal["before_publish", "after_publish"]


class Crash(Exception):
    """The job died where it was meant to."""


class _CrashingPublisher(ProductPublisher):
    """Publishes, but for the one time when the job dies before or after it."""

    plan: dict[str, CrashPoint]

    def publish(self, *batch: Any, takes_up: bool = False) -> bool:
        point = None if takes_up else self.plan.pop(self._product, None)
        if point == "before_publish":
            raise Crash(point)
        done = super().publish(*batch, takes_up=takes_up)
        if point == "after_publish":
            raise Crash(point)
        return done


class _CrashingLeader(AnalyticsLeader):
    plan: dict[str, CrashPoint]

    def create_publisher(
        self, product: str, checkpoint: str, term: int
    ) -> ProductPublisher:
        publisher = _CrashingPublisher(
            self._client, self._keys, product, checkpoint, term
        )
        publisher.plan = self.plan
        return publisher


STORES: dict[str, dict[str, str]] = {
    "rocksdb": {},
    "memory": {
        PROVIDER: "org.apache.spark.sql.execution.streaming.state."
        "HDFSBackedStateStoreProvider"
    },
}
"""Spark's options for each place that the newest state may be in."""


class AnalyticsRig:
    """A job that may be started, stopped and made to die, as often as one likes.

    A context manager. ``entries`` is what was appended; ``crash_plan`` says of a
    product where its job dies next.
    """

    def __init__(
        self, spark: SparkSession, client: redis.Redis, folder: Path, **settings: Any
    ) -> None:
        self.client = client
        self.keys = AnalyticsKeys("tt")
        address = client.connection_pool.connection_kwargs
        self.settings = AnalyticsSettings(
            redis_url=f"redis://{address['host']}:{address['port']}/0",
            state_dir=folder,
            **{"lease_ms": 500, "movers_span_s": 60, **settings},
        )
        self.spark = spark.newSession()
        self.spark.dataSource.register(PartialBarsSource)
        self.entries: list[Entry] = []
        self.crash_plan: dict[str, CrashPoint] = {}
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.open_log()

    def open_log(self) -> None:
        """Open the log, a new one where there is none."""
        info = open_log(self.client, "tt", PARTITIONS)
        self._log = ManualClockLog(self.client, "tt", info)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the job in a thread."""
        self._stop = threading.Event()
        metrics = AnalyticsMetrics(CollectorRegistry())
        leader = _CrashingLeader(
            self.client,
            self.settings,
            self._stop,
            self.spark,
            metrics,
            manual_clock=True,
        )
        leader.plan = self.crash_plan

        def run() -> None:
            try:
                while not self._stop.is_set():
                    leader.lead()
            except BaseException as error:  # noqa: BLE001 - told to who waits
                self.error = error

        self.error = None
        self._thread = threading.Thread(target=run)
        self._thread.start()

    def stop(self) -> None:
        """Stop the job; it gives its lease back."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def wait_for_death(self) -> None:
        """Wait until the job has died as planned."""
        assert self._thread is not None
        self._thread.join(60)
        assert isinstance(self.error, AnalyticsFailed), self.error
        self._thread = None

    def append(self, append_ms: int, trade: Trade | bytes, partition: int = -1) -> int:
        """Append a trade at a moment; return its position.

        Moments must not go back in a partition.
        """
        payload = trade.to_wire() if isinstance(trade, Trade) else trade
        if partition < 0:
            assert isinstance(trade, Trade)
            partition = partition_of(trade.isin, PARTITIONS)
        key = stream_key("tt", partition)
        entry: Any = self.client.xadd(key, {FIELD: payload}, id=f"{append_ms}-*")
        position = position_of(entry)
        if isinstance(trade, Trade):
            fields = trade.isin, trade.time_us, trade.seq, trade.price, trade.size
            extra: Any = trade.extra
            more = {
                name: extra.get(name) for name in ("updates", "cancels", "corrects")
            }
            entry = Entry(append_ms, partition, position, *fields, **more)
            self.entries.append(entry)
        return position

    def turn_clock(self, clock_ms: int, *products: str) -> None:
        """Turn the clock and wait until every product has read as far."""
        self._log.set_clock(clock_ms)
        for product in products or self.settings.products():
            eventually(lambda p=product: self._has_come(p, clock_ms), 60)

    def set_clock(self, clock_ms: int) -> None:
        """Turn the clock and wait for nothing."""
        self._log.set_clock(clock_ms)

    def _has_come(self, product: str, clock_ms: int) -> bool:
        if self.error is not None:
            raise self.error
        boundary_ms = BY_NAME[product].rule(self.settings).boundary_ms(clock_ms)
        cut: Any = self.client.hget(self.keys.progress(product), "cut")
        return cut is not None and orjson.loads(cut)["end_ms"] >= boundary_ms

    def bars(self) -> dict[tuple[str, int], Bar]:
        """Return every bar in Redis."""
        return stored_bars(self.client, self.keys)

    def days(self) -> dict[str, DayBar]:
        """Return each instrument's newest day in Redis."""
        stored: Any = self.client.hgetall(self.keys.days)
        return {i.decode(): DayBar.decode(i.decode(), d) for i, d in stored.items()}

    def books(self, product: str) -> TallyBook:
        """Return a product's books, which balance."""
        book = TallyBook.decode(product, self.client.hgetall(self.keys.ledger(product)))  # type: ignore[arg-type]
        assert book is not None
        assert book.problems() == []
        return book


def stored_bars(client: redis.Redis, keys: AnalyticsKeys) -> dict[tuple[str, int], Bar]:
    """Return every bar in Redis, by instrument and start."""
    found = {}
    newest: Any = client.hkeys(keys.last_bars)
    for isin in (name.decode() for name in newest):
        lines: Any = client.zrange(keys.bars(isin), 0, -1)
        for line in lines:
            bar = Bar.decode(isin, line)
            assert (isin, bar.start_ms) not in found
            found[isin, bar.start_ms] = bar
    return found


def fields_of(bar: Bar) -> dict[str, Any]:
    """Return a bar as the oracle has it."""
    names = ("open", "high", "low", "close", "volume", "value")
    amounts = {name: fraction(getattr(bar, name)) for name in names}
    return {**amounts, "trades": bar.trades, "revision": bar.revision}
