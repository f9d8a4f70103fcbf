"""The sink of bursts: each burst once, when it has ended."""

from collections.abc import Sequence

import orjson
import pyarrow as pa

from throttle.analytics.batch_bars import bars_of
from throttle.analytics.product_publisher import BatchChanges
from throttle.analytics.product_sink import ProductSink
from throttle.contract.bars import Bar
from throttle.contract.products.bursts import TradingBurst
from throttle.contract.tally import BatchNote


class BurstSink(ProductSink[Bar]):
    """The stream keeps the newest bursts, a message has those of its batch."""

    def results(self, rows: pa.Table, note: BatchNote, batch_id: int) -> Sequence[Bar]:
        """Return the bursts as bars.

        Spark gives them out in a batch of their own, right after the one that read what
        ended them.
        """
        return list(bars_of(rows))

    def changes(self, results: Sequence[Bar], clock_ms: int) -> BatchChanges:
        """Return the bursts that had ended by the clock, in the order of their ends."""
        key, kept = self._keys.bursts, self._settings.events_kept
        ended = sorted(results, key=lambda bar: (bar.end_ms, bar.isin))
        lines = [TradingBurst(bar).encode() for bar in ended]
        head = orjson.dumps({"clock": clock_ms, "bursts": len(lines)})
        return BatchChanges(
            b"{",
            b"\n".join([b"," + head[1:], *lines]),
            [("XADD", key, "MAXLEN", "~", kept, "*", "burst", line) for line in lines],
        )
