"""The analytics job: a stateful query per product, under one lease."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import redis
import structlog
from prometheus_client import CollectorRegistry
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ingest.process.prometheus import exposed
from ingest.process.service_manager import tell_ready
from ingest.redis_keys import ANALYTICS_JOB, AnalyticsKeys
from ingest.tradelog.contract import LogInfo
from throttle.analytics.metrics import AnalyticsMetrics
from throttle.analytics.partials.log_source import PartialBarsSource
from throttle.analytics.partials.standing_prices import StandingPrices
from throttle.analytics.product import Product
from throttle.analytics.product_publisher import ProductPublisher
from throttle.analytics.product_query import (
    BadCheckpoint,
    address_of,
    check,
    settings_of,
    start_product,
)
from throttle.analytics.product_sink import ProductSink, SinkMeans
from throttle.analytics.products import BY_NAME
from throttle.contract.cut import Cut
from throttle.lease.lease import Fenced, Keeper, Lease, LeaseGrant
from throttle.lease.retry import OutageLog, Stopped, create_client, until_done
from throttle.publish.publisher import StreamLost
from throttle.publish.rights import check_server_and_rights, commands_of_analytics
from throttle.settings import AnalyticsSettings
from throttle.spark.idle_collector import IdleCollector
from throttle.spark.java import find_java
from throttle.spark.options import SourceOptions, log_options
from throttle.spark.query import check_query, failures_as, stop_query
from throttle.spark.scratch import scratch_folder
from throttle.spark.session import running_spark
from throttle.spark.task_log import entry_rules, open_log
from throttle.window.decoder import find_decoder

log = structlog.get_logger()

T = TypeVar("T")
_Queries = dict[str, tuple[StreamingQuery, ProductSink[Any]]]

NICE = 10
"""How far the job lets others of its machine go first, as in `nice`."""

_ASK_AGAIN_S = 0.05

# Each question takes the JVM and this process a millisecond.
_ASK_SPARK_S = 0.5

# Spark broadcasts Hadoop's settings for each batch with a state: 20 MB a minute.
_COLLECT_EVERY_S = 30.0


class AnalyticsFailed(RuntimeError):
    """The job cannot run or cannot go on; the message says why."""


def run_analytics(
    settings: AnalyticsSettings, stop: threading.Event, nice: int = NICE
) -> None:
    """Run the job until ``stop`` is set. Raises AnalyticsFailed.

    While Redis is away it waits; when that was emptied or rolled back it publishes
    again what its state holds; when another job has taken over it ends.
    """
    os.nice(nice)
    registry = CollectorRegistry()
    metrics = AnalyticsMetrics(registry)
    with (
        failures_as(AnalyticsFailed, settings, stop, (BadCheckpoint,)),
        exposed(settings, registry),
        scratch_folder() as scratch,
    ):
        find_decoder(settings.decoder, settings.schema_registry_url)
        client = create_client(settings.redis_url)
        keys = AnalyticsKeys(settings.namespace)
        commands = tuple(commands_of_analytics(keys, settings.trade_log))
        until_done(lambda: check_server_and_rights(client, commands), stop)
        java = find_java(settings.java_home, scratch)
        log.info("starting spark", java_home=str(java.home))
        with running_spark(settings, java, scratch) as spark:
            spark.dataSource.register(PartialBarsSource)
            leader = AnalyticsLeader(client, settings, stop, spark, metrics)
            while not stop.is_set():
                leader.lead()


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
            said = {"products": list(queries), "log": info.log_id, "term": grant.term}
            log.info("analytics ready", **said)
            tell_ready()
            try:
                self._wait(queries, keeper)
            except StreamLost as error:
                log.warning(str(error))
                self._is_rolled_back = True

    def _take(self, info: LogInfo) -> LeaseGrant:
        until_s = time.monotonic() + 2 * self._settings.lease_ms / 1000
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
            if not self._settings.standby and time.monotonic() > until_s:
                raise AnalyticsFailed(
                    f"another analytics job is running ({got.by}): stop it, or start "
                    "this one with --standby"
                )
            if self._settings.standby and not is_told:
                is_told = True
                log.info("standby", active=got.by)
                tell_ready()
            if self._stop.is_set():
                raise Stopped("told to stop while waiting for the lease")
            time.sleep(_ASK_AGAIN_S)

    @contextmanager
    def _queries(self, info: LogInfo, term: int) -> Iterator[_Queries]:
        settings = self._settings
        options = log_options(settings, info, manual_clock=self._manual_clock)
        queries: _Queries = {}
        for name in set(BY_NAME).difference(settings.products()):
            self._tell(name, {"stopped": 1})
        with ExitStack() as stack:
            # The lease is held still then: who comes next says otherwise.
            stack.callback(self._tell_stopped, queries)
            for name in settings.products():
                product, address = BY_NAME[name], address_of(settings, name)
                check(self._spark, address, settings_of(settings, product, info.log_id))
                every_ms = product.rule(settings).batch_ms
                self._tell(name, {"every_ms": every_ms, "stopped": 0})
                sink = self._create_sink(product, address, options)
                query = start_product(
                    self._spark, settings, product, options, sink, address
                )
                stack.callback(stop_query, query, sink)
                publisher = self.create_publisher(name, query.id, term)
                sink.publisher.set_result(publisher)
                queries[name] = query, sink
            yield queries

    def _tell_stopped(self, queries: _Queries) -> None:
        if self._stop.is_set():
            for product in queries:
                self._tell(product, {"stopped": 1})

    def _create_sink(
        self, product: Product, address: str, options: SourceOptions
    ) -> ProductSink[Any]:
        state = partial(product.state, self._spark, address)
        report = partial(self._metrics.published, product.name)
        prices = StandingPrices(entry_rules(options), product.rule(self._settings)).of
        means = SinkMeans(self._settings, state, prices, self._until_done, report)
        return product.sink.create(self._client, means)

    def create_publisher(
        self, product: str, checkpoint: str, term: int
    ) -> ProductPublisher:
        """Return what publishes a product under a term."""
        return ProductPublisher(self._client, self._keys, product, checkpoint, term)

    def _wait(self, queries: _Queries, keeper: Keeper) -> None:
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
                    check_query(query, sink, partial(_failure, product))
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
        for state in progress["stateOperators"][:1]:
            self._metrics.state(product, state)
            values = {
                "batch": progress["batchId"],
                "rows": state["numRowsTotal"],
                "bytes": state["memoryUsedBytes"],
                # Spark looks through all of the state for what may go, in every batch.
                "update_ms": state["allUpdatesTimeMs"] + state["allRemovalsTimeMs"],
                "commit_ms": state["commitTimeMs"],
                "dropped": state["numRowsDroppedByWatermark"],
            }
            self._tell(product, values)
        return True

    def _tell(self, product: str, values: dict[Any, Any]) -> None:
        # Nothing depends on it but what operators are shown.
        with suppress(redis.RedisError):
            self._client.hset(self._keys.state(product), mapping=values)

    def _until_done(self, call: Callable[[], T]) -> T:
        return until_done(call, self._stop, self._outage)


def _failure(product: str, words: str) -> AnalyticsFailed:
    return AnalyticsFailed(f"{product}: {words}")
