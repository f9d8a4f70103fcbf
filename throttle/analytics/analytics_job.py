"""The analytics job: a stateful query per product, under one lease."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import redis
import structlog
from prometheus_client import CollectorRegistry
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ingest.process.prometheus import MetricsUnavailable, exposed
from ingest.process.redact import server_address
from ingest.process.redis_fault import in_words
from ingest.process.redis_memory import warn_of_memory
from ingest.process.service_manager import tell_ready
from ingest.tradelog.contract import LogInfo, LogUnusable
from ingest.tradelog.redis_log_reader import check_server
from throttle.analytics.bar_board import BarChanges
from throttle.analytics.bar_sink import BarSink
from throttle.analytics.checkpoint import BadCheckpoint, address_of, check, settings_of
from throttle.analytics.final_sinks import BurstSink
from throttle.analytics.log_source import PartialBarsSource
from throttle.analytics.metrics import AnalyticsMetrics
from throttle.analytics.movers.movers_sink import MoversSink
from throttle.analytics.moves.moves_sink import MovesSink
from throttle.analytics.product_publisher import ProductPublisher
from throttle.analytics.queries import partial_options, start_query
from throttle.analytics.state import bars_in_state, panes_in_state, trades_in_state
from throttle.contract.cut import Cut
from throttle.contract.redis_keys import ANALYTICS_JOB, PRODUCTS, AnalyticsKeys
from throttle.contract.tally import BatchNote
from throttle.job import first_line
from throttle.lease.lease import Fenced, Keeper, Lease, LeaseGrant
from throttle.lease.retry import OutageLog, Stopped, create_client, until_done
from throttle.publish.publisher import StreamLost
from throttle.publish.rights import check_rights, commands_of_analytics
from throttle.settings import AnalyticsSettings
from throttle.spark.idle_collector import IdleCollector
from throttle.spark.java import NoJava, find_java
from throttle.spark.open_reader import open_log
from throttle.spark.options import log_options
from throttle.spark.scratch import NoFolder, scratch_folder
from throttle.spark.session import create_session
from throttle.spark.start.java_process import NoSpark
from throttle.window.decoder import NoDecoder, find_decoder

log = structlog.get_logger()

T = TypeVar("T")

NICE = 10
"""How far the job lets others of its machine go first, as in `nice`."""

_ASK_AGAIN_S = 0.05

# Each question takes the JVM and this process a millisecond.
_ASK_SPARK_S = 0.5

# How long an open batch may take to end before Spark is made to end it.
_ENDED_WITHIN_S = 2.0

# Spark broadcasts Hadoop's settings for each batch with a state: 20 MB a minute.
_COLLECT_EVERY_S = 30.0


class AnalyticsFailed(RuntimeError):
    """The job cannot run or cannot go on; the message says why."""


_LASTING = (NoFolder, NoJava, NoDecoder, LogUnusable, BadCheckpoint, MetricsUnavailable)
_OF_SPARK = (NoSpark, PySparkException, Py4JError, ConnectionError)


def run_analytics(
    settings: AnalyticsSettings, stop: threading.Event, nice: int = NICE
) -> None:
    """Run the job until ``stop`` is set. Raises AnalyticsFailed.

    While Redis is away it waits; when Redis was emptied or rolled back it publishes
    again what its state holds; when another analytics job has taken over it ends.
    """
    os.nice(nice)
    registry = CollectorRegistry()
    metrics = AnalyticsMetrics(registry)
    try:
        with (
            suppress(Stopped),
            exposed(settings, registry),
            scratch_folder() as scratch,
        ):
            _run(settings, stop, scratch, metrics)
    except _OF_SPARK as error:
        # A terminal's signal, or a runner's, ends the JVM as well as this process.
        if not stop.is_set():
            raise AnalyticsFailed(first_line(error)) from error
        log.info("told to stop, and Spark has ended", error=first_line(error))
    except redis.RedisError as error:
        address = server_address(settings.redis_url)
        raise AnalyticsFailed(f"redis_url {address}: {in_words(error)}") from error
    except (Fenced, *_LASTING) as error:
        raise AnalyticsFailed(str(error)) from error


def _run(
    settings: AnalyticsSettings,
    stop: threading.Event,
    scratch: Path,
    metrics: AnalyticsMetrics,
) -> None:
    find_decoder(settings.decoder)
    client = create_client(settings.redis_url)
    _check_rights(client, settings, stop)
    java = find_java(settings.java_home, scratch)
    log.info("starting spark", java_home=str(java.home))
    spark = create_session(settings, java, scratch)
    try:
        spark.dataSource.register(PartialBarsSource)
        leader = AnalyticsLeader(client, settings, stop, spark, metrics)
        while not stop.is_set():
            leader.lead()
    finally:
        with suppress(Py4JError, PySparkException, OSError):
            spark.stop()


def _check_rights(
    client: redis.Redis, settings: AnalyticsSettings, stop: threading.Event
) -> None:
    keys = AnalyticsKeys(settings.namespace)
    commands = tuple(commands_of_analytics(keys, settings.trade_log))

    def ask() -> None:
        # One of another kind answers what it is, and nothing else.
        check_server(client)
        warn_of_memory(client)
        check_rights(client, commands)

    until_done(ask, stop)


class AnalyticsLeader:
    """Leads the job: takes its lease, and runs its queries while it has it."""

    def __init__(
        self,
        client: redis.Redis,
        settings: AnalyticsSettings,
        stop: threading.Event,
        spark: SparkSession,
        metrics: AnalyticsMetrics,
        *,
        manual_clock: bool = False,
    ) -> None:
        """``manual_clock`` is for tests: the log's clock is then turned by hand."""
        self._manual_clock = manual_clock
        self._client = client
        self._settings = settings
        self._stop = stop
        self._spark = spark
        self._metrics = metrics
        self._keys = AnalyticsKeys(settings.namespace)
        self._outage = OutageLog()
        self._is_rolled_back = False
        self._lease = Lease(
            client, self._keys.lease_keys, ANALYTICS_JOB, settings.lease_ms
        )

    def lead(self) -> None:
        """Run the queries under a new term until told to stop.

        Returns early when Redis was emptied or rolled back: to be called again. Raises
        AnalyticsFailed, Fenced, Stopped and what Spark raises.
        """
        info = self._until_done(lambda: open_log(self._client, self._settings))
        grant = self._take(info)
        keeper = Keeper(self._lease, grant.term, self._settings.lease_ms, self._outage)
        with keeper, self._queries(info, grant.term) as queries:
            log.info(
                "analytics ready",
                products=list(queries),
                log=info.log_id,
                term=grant.term,
            )
            tell_ready()
            try:
                self._wait(queries, keeper)
            except StreamLost as error:
                log.warning(str(error))
                self._is_rolled_back = True

    def _take(self, info: LogInfo) -> LeaseGrant:
        settings = self._settings
        until_s = time.monotonic() + 2 * settings.lease_ms / 1000
        is_told = False
        # Where a query begins is in its checkpoint: the lease's own cut says nothing.
        nowhere = Cut(0, (), ())
        while True:
            got = self._until_done(
                lambda: self._lease.acquire(info.log_id, nowhere, self._is_rolled_back)
            )
            if isinstance(got, LeaseGrant):
                self._is_rolled_back = False
                return got
            if not settings.standby and time.monotonic() > until_s:
                raise AnalyticsFailed(
                    f"another analytics job is running ({got.by}): stop it, or start "
                    "this one with --standby"
                )
            if settings.standby and not is_told:
                is_told = True
                log.info("standby", active=got.by)
                tell_ready()
            if self._stop.is_set():
                raise Stopped("told to stop while waiting for the lease")
            time.sleep(_ASK_AGAIN_S)

    @contextmanager
    def _queries(
        self, info: LogInfo, term: int
    ) -> Iterator[Mapping[str, tuple[StreamingQuery, Any]]]:
        settings = self._settings
        options = log_options(settings, info, manual_clock=self._manual_clock)
        queries: dict[str, tuple[StreamingQuery, Any]] = {}
        for product in set(PRODUCTS).difference(settings.products()):
            self._tell(product, {"stopped": 1})
        with ExitStack() as stack:
            # The lease is held still then: who comes next says otherwise.
            stack.callback(self._tell_stopped, queries)
            for product in settings.products():
                address = address_of(settings, product)
                wanted = settings_of(settings, product, info.log_id)
                check(self._spark, address, wanted)
                every_ms = partial_options(settings, options, product).batch_ms
                self._tell(product, {"every_ms": every_ms, "stopped": 0})
                # Spark names a checkpoint when its query starts.
                sink = _LateSink()
                query = start_query(
                    self._spark, settings, product, options, sink, address
                )
                stack.callback(_stop_query, query, sink)
                sink.create(partial(self._sink, product, address, query.id, term))
                queries[product] = query, sink
            yield queries

    def _tell_stopped(self, queries: Mapping[str, Any]) -> None:
        if self._stop.is_set():
            for product in queries:
                self._tell(product, {"stopped": 1})

    def _sink(self, product: str, address: str, checkpoint: str, term: int) -> Any:
        publisher = self.create_publisher(product, checkpoint, term)
        if product == "bars":
            return BarSink(
                self._client,
                self._settings,
                publisher,
                partial(bars_in_state, self._spark, address),
                self._until_done,
                self._report_bars,
            )
        report = partial(self._metrics.published, product)
        means = self._settings, publisher, self._until_done, report
        if product == "moves":
            return MovesSink(*means, partial(trades_in_state, self._spark, address))
        if product == "movers":
            return MoversSink(*means, partial(panes_in_state, self._spark, address))
        return BurstSink(*means)

    def create_publisher(
        self, product: str, checkpoint: str, term: int
    ) -> ProductPublisher:
        """Return what publishes a product under a term."""
        return ProductPublisher(self._client, self._keys, product, checkpoint, term)

    def _report_bars(self, note: BatchNote, changes: BarChanges) -> None:
        self._metrics.published("bars", note)
        self._metrics.kept(changes.kept)

    def _wait(
        self, queries: Mapping[str, tuple[StreamingQuery, Any]], keeper: Keeper
    ) -> None:
        seen: dict[str, int] = {}
        asks_at_s = 0.0
        collector = IdleCollector(_COLLECT_EVERY_S)
        # Not stop.wait: a signal handler that sets the event could find its lock taken.
        while not self._stop.is_set():
            time.sleep(0.1)
            if keeper.is_fenced:
                raise Fenced("fenced: another analytics job has taken over")
            is_time = time.monotonic() >= asks_at_s
            if is_time:
                asks_at_s = time.monotonic() + _ASK_SPARK_S
                self._metrics.process.observe()
            has_ended = False
            for product, (query, sink) in queries.items():
                if is_time or sink.error is not None:
                    _check(product, query, sink)
                    has_ended |= self._look(product, query, sink.batch_id, seen)
            if has_ended:
                # Which is far from the ends of the throttle's windows, by default.
                collector.idle(self._spark)

    def _look(
        self, product: str, query: StreamingQuery, batch_id: int, seen: dict[str, int]
    ) -> bool:
        """Report a batch; return whether one has ended since the last look."""
        if seen.get(product, -1) >= batch_id:
            return False
        progress = query.lastProgress
        if progress is None or seen.get(product) == progress["batchId"]:
            return False
        seen[product] = progress["batchId"]
        operators = progress["stateOperators"]
        if operators:
            self._metrics.state(product, operators[0])
            # Spark looks through all of the state for what may go, in every batch.
            changes = ("allUpdatesTimeMs", "allRemovalsTimeMs")
            values = {
                "batch": progress["batchId"],
                "rows": operators[0]["numRowsTotal"],
                "bytes": operators[0]["memoryUsedBytes"],
                "update_ms": sum(operators[0][name] for name in changes),
                "commit_ms": operators[0]["commitTimeMs"],
                "dropped": operators[0]["numRowsDroppedByWatermark"],
            }
            self._tell(product, values)
        return True

    def _tell(self, product: str, values: dict[Any, Any]) -> None:
        # Nothing depends on it but what operators are shown.
        with suppress(redis.RedisError):
            self._client.hset(self._keys.state(product), mapping=values)

    def _until_done(self, call: Callable[[], T]) -> T:
        return until_done(call, self._stop, self._outage)


class _LateSink:
    """A sink that is made when its query has a name; a batch waits for it.

    ``batch_id`` is that of the newest batch that came to its end, -1 before.
    """

    def __init__(self) -> None:
        self._is_made = threading.Event()
        self._sink: Any = None
        self.is_open = False
        self.batch_id = -1

    def create(self, make: Callable[[], Any]) -> None:
        """Make the sink."""
        self._sink = make()
        self._is_made.set()

    def __call__(self, frame: Any, batch_id: int) -> None:
        self.is_open = True
        try:
            self._is_made.wait()
            self._sink(frame, batch_id)
            self.batch_id = batch_id
        finally:
            self.is_open = False

    @property
    def error(self) -> Exception | None:
        """Return what stopped the sink, in its own words."""
        return None if self._sink is None else self._sink.error


def _stop_query(query: StreamingQuery, sink: _LateSink) -> None:
    # In the middle of a batch Spark ends with pages of errors.
    until_s = time.monotonic() + _ENDED_WITHIN_S
    while sink.is_open and query.isActive and time.monotonic() < until_s:
        time.sleep(0.02)
    # Any moment is a good one to end: the checkpoint says where to go on.
    with suppress(Py4JError, PySparkException, OSError):
        query.stop()


def _check(product: str, query: StreamingQuery, sink: Any) -> None:
    if query.isActive:
        return
    # In its own words: through Spark an error comes back in three stack traces.
    if isinstance(sink.error, (StreamLost, Fenced, Stopped, redis.RedisError)):
        raise sink.error
    cause = sink.error or query.exception() or "the query stopped by itself"
    raise AnalyticsFailed(f"{product}: {first_line(cause)}")
