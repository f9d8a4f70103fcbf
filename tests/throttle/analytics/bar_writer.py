"""Publishes bars through the job's own sink and script, without Spark."""

from collections.abc import Sequence

import pyarrow as pa
import redis

from throttle.analytics.bar_sink import BarSink
from throttle.analytics.product_publisher import ProductPublisher
from throttle.contract.bars import CLOSE_AFTER_MS, Bar
from throttle.contract.cut import Cut
from throttle.contract.redis_keys import ANALYTICS_JOB, AnalyticsKeys
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


class _Frame:
    """The rows of a batch, as Spark would hand them over."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def toArrow(self) -> pa.Table:
        """Return the rows."""
        return self._rows


class BarWriter:
    """One job of one term; every batch begins where the last one ended.

    ``epoch`` is taken if there is none yet. ``held`` is what the state holds.
    """

    def __init__(self, client: redis.Redis, epoch: str = "b7x1", term: int = 1) -> None:
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
        settings = AnalyticsSettings()
        publisher = ProductPublisher(client, self.keys, "bars", self._checkpoint, term)
        self._sink = BarSink(
            client, settings, publisher, lambda _: self.held, lambda call: call()
        )

    def publish(self, *bars: Bar, clock_ms: int) -> None:
        """Publish what a batch has changed, once the log's clock is there."""
        note = BatchNote(_cut(self.clock_ms), _cut(clock_ms), {})
        rows = [*map(_row_of, bars), {"note": note.encode()}]
        table = pa.Table.from_pylist(rows, _SCHEMA)
        self._sink(_Frame(table), self.batch)  # type: ignore[arg-type]
        self.clock_ms = clock_ms
        self.batch += 1

    def repeat(self, *bars: Bar, clock_ms: int, start_ms: int) -> None:
        """Publish a batch again, as Spark may."""
        self.batch, self.clock_ms = self.batch - 1, start_ms
        self.publish(*bars, clock_ms=clock_ms)


def _row_of(bar: Bar) -> dict[str, object]:
    amounts = {name: getattr(bar, name) for name in _DECIMALS}
    places = {"isin": bar.isin, "start_ms": bar.start_ms, "end_ms": bar.end_ms}
    is_unfit = int(bar.value is None)
    counts = {"trades": bar.trades, "late": bar.revision, "unfit": is_unfit}
    return places | amounts | counts


def _cut(clock_ms: int) -> Cut:
    return Cut(clock_ms + CLOSE_AFTER_MS, (0,), (0,))
