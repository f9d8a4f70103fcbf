"""What Spark does with partial bars, over columns: for the test driver. Pure.

Rows come as ``partial_bars.ARROW_SCHEMA`` has them, with notes, and go as the windows
of a product return them.
"""

from abc import ABC, abstractmethod

import pyarrow as pa
import pyarrow.compute as pc

from throttle.analytics.partials.partial_bars import (
    ARROW_SCHEMA,
    NOTE_KEY,
    SUMS,
    TICK_KEY,
    US_PER_MS,
    WIDE,
    combine,
    to_spark,
)
from throttle.window.row_schema import records, with_columns

_TIME = pa.timestamp("us", tz="UTC")


class WindowsByHand(ABC):
    """A query's windows and its state; ``kept`` has the rows of the state."""

    def __init__(self) -> None:
        self.kept = _wide(ARROW_SCHEMA.empty_table())

    def add(self, rows: pa.Table, clock_ms: int) -> pa.Table:
        """Take a batch, once the log's clock is there; return what Spark gives out."""
        is_note = pc.starts_with(rows["isin"], NOTE_KEY)
        is_tick = pc.equal(rows["isin"], pa.scalar(TICK_KEY))
        partials = rows.filter(pc.invert(pc.or_(is_note, is_tick)))
        windows = self.windows(_wide(partials), clock_ms)
        return pa.concat_tables([windows, self.shown(_wide(rows.filter(is_note)))])

    @abstractmethod
    def windows(self, partials: pa.Table, clock_ms: int) -> pa.Table:
        """Add partial bars to those that are kept; return windows as ``shown``."""

    @abstractmethod
    def shown(self, partials: pa.Table) -> pa.Table:
        """Return partial bars with the columns of the product's windows."""

    def state(self, batch_id: int) -> pa.Table:
        """Return what is kept, as Spark's state is read after the newest batch."""
        return self.shown(self.kept)


class TumblingByHand(WindowsByHand):
    """Bars of one length, those that a batch has changed (``tumbling_bars.py``)."""

    def __init__(self, length_ms: int) -> None:
        super().__init__()
        self._length = pa.scalar(length_ms, pa.int64())

    def windows(self, partials: pa.Table, clock_ms: int) -> pa.Table:
        self.kept = combine([self.kept, partials])
        changed = set(_places(partials))
        mask = pa.array([place in changed for place in _places(self.kept)], pa.bool_())
        return self.shown(self.kept.filter(mask))

    def shown(self, partials: pa.Table) -> pa.Table:
        starts = pc.divide(partials["at"].cast(pa.int64()), US_PER_MS)
        return _bars(partials, starts, pc.add(starts, self._length))


class SessionsByHand(WindowsByHand):
    """Bursts that have ended (``burst_product.py``)."""

    def __init__(self, gap_ms: int, least_trades: int) -> None:
        super().__init__()
        self._gap_us, self._least_trades = gap_ms * 1_000, least_trades

    def windows(self, partials: pa.Table, clock_ms: int) -> pa.Table:
        rows = pa.concat_tables([self.kept, partials])
        rows = rows.sort_by([("isin", "ascending"), ("first_time", "ascending")])
        starts: list[int] = []
        last_isin, last_us = "", 0
        spans = records(rows, ("isin", "first_time", "last_time"))
        for isin, first_us, end_us in spans:
            is_new = isin != last_isin or first_us - last_us > self._gap_us
            starts.append(first_us if is_new else starts[-1])
            last_us = end_us if is_new else max(last_us, end_us)
            last_isin = isin
        rows = combine([rows.set_column(0, "at", pa.array(starts, _TIME))])
        ends = pc.add(rows["last_time"], pa.scalar(self._gap_us, pa.int64()))
        has_ended = pc.less_equal(ends, pa.scalar(clock_ms * 1_000, pa.int64()))
        self.kept = rows.filter(pc.invert(has_ended))
        least = pa.scalar(self._least_trades, pa.int64())
        is_burst = pc.greater_equal(rows["trades"], least)
        return self.shown(rows.filter(pc.and_(has_ended, is_burst)))

    def shown(self, partials: pa.Table) -> pa.Table:
        ends = (pc.divide(partials[n], US_PER_MS) for n in ("first_time", "last_time"))
        return _bars(partials, *ends)


class KeptByHand(WindowsByHand):
    """The trades of a batch; all are kept (``moves_product.py``)."""

    def windows(self, partials: pa.Table, clock_ms: int) -> pa.Table:
        self.kept = pa.concat_tables([self.kept, partials])
        return self.shown(partials)

    def shown(self, partials: pa.Table) -> pa.Table:
        names = ("open_time", "open_seq", "open_position", "open", "isin", "note")
        return partials.select(names).rename_columns(
            ["time", "seq", "position", "price", "isin", "note"]
        )


def _wide(partials: pa.Table) -> pa.Table:
    wide = {name: partials[name].cast(WIDE) for name in SUMS}
    return with_columns(partials.select(ARROW_SCHEMA.names), wide)


def _places(partials: pa.Table) -> list[tuple[object, object]]:
    return list(records(partials, ("at", "isin")))


def _bars(
    partials: pa.Table, starts: pa.ChunkedArray, ends: pa.ChunkedArray
) -> pa.Table:
    bars = to_spark(partials).append_column("start_ms", starts)
    return bars.append_column("end_ms", ends)
