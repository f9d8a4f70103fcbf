"""Publishes bars through the job's own sink and script, without Spark."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import redis

from ingest.redis_keys import ANALYTICS_JOB, AnalyticsKeys
from throttle.analytics.bars.bar_product import BarSink
from throttle.analytics.product_publisher import ProductPublisher
from throttle.analytics.product_sink import SinkMeans
from throttle.contract.bars import CLOSE_AFTER_MS, Bar
from throttle.contract.cut import Cut
from throttle.contract.tally import BatchNote
from throttle.settings import AnalyticsSettings

_DECIMALS = ("open", "high", "low", "close", "volume", "value")
_NUMBERS = ("start_ms", "end_ms", "trades", "late", "unfit")
_SCHEMA = pa.schema(
    [
        ("isin", pa.string()),
        *((name, pa.int64()) for name in _NUMBERS),
        *((name, pa.decimal128(38, 18)) for name in _DECIMALS),
        ("note", pa.string()),
    ]
)


class _FailingPublisher(ProductPublisher):
    """Publishes, but for one call while Redis is away."""

    writer: "BarWriter"

    def publish(self, *batch: Any, takes_up: bool = False) -> bool:
        self.writer.fails_at -= 1
        if self.writer.fails_at == 0:
            raise redis.ConnectionError("away")
        return super().publish(*batch, takes_up=takes_up)


def _retry(call: Callable[[], Any]) -> Any:
    while True:
        with suppress(redis.ConnectionError):
            return call()


class BarWriter:
    """One job of one term; every batch begins where the last one ended.

    ``epoch`` is taken if there is none yet. ``held`` is what the state holds. The
    publish that is ``fails_at`` calls away does not reach Redis.
    """

    def __init__(
        self,
        client: redis.Redis,
        epoch: str = "b7x1",
        term: int = 1,
        **changes: Any,
    ) -> None:
        self.keys = AnalyticsKeys("tt")
        self.client = client
        self.held: Sequence[Bar] = ()
        self.batch = 0
        self.clock_ms = 0
        self._checkpoint = f"checkpoint {epoch} {term}"
        meta = self.keys.lease_keys.meta
        client.hsetnx(meta, "epoch", epoch)
        server = client.info("server")["run_id"]  # type: ignore[index]
        client.hset(meta, mapping={f"term:{ANALYTICS_JOB}": term, "server": server})
        settings = AnalyticsSettings(**changes)
        means = SinkMeans(
            settings,
            state=lambda _: _table_of(map(_row_of, self.held)),
            prices=lambda windows, _: windows,
            retry=_retry,
            report=lambda note, kept: None,
        )
        self._sink = BarSink.create(client, means)
        self.fails_at = 0
        publisher = _FailingPublisher(client, self.keys, "bars", self._checkpoint, term)
        publisher.writer = self
        self._sink.publisher.set_result(publisher)

    def publish(self, *bars: Bar, clock_ms: int) -> None:
        """Publish what a batch has changed, once the log's clock is there."""
        note = BatchNote(_cut(self.clock_ms), _cut(clock_ms), {})
        rows = [*map(_row_of, bars), {"note": note.encode()}]
        self._sink.take(_table_of(rows), self.batch)
        self.clock_ms = clock_ms
        self.batch += 1

    def repeat(self, *bars: Bar, clock_ms: int, start_ms: int) -> None:
        """Publish a batch again, as Spark may."""
        self.batch, self.clock_ms = self.batch - 1, start_ms
        self.publish(*bars, clock_ms=clock_ms)


def _table_of(rows: Iterable[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), _SCHEMA)


def _row_of(bar: Bar) -> dict[str, object]:
    amounts = {name: getattr(bar, name) for name in _DECIMALS}
    places = {"isin": bar.isin, "start_ms": bar.start_ms, "end_ms": bar.end_ms}
    is_unfit = int(bar.value is None)
    counts = {"trades": bar.trades, "late": bar.revision, "unfit": is_unfit}
    return places | amounts | counts


def _cut(clock_ms: int) -> Cut:
    return Cut(clock_ms + CLOSE_AFTER_MS, (0,), (0,))
