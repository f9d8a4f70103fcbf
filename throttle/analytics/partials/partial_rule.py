"""What a product makes of trades before Spark has them: partial bars, in time. Pure.

Whether a trade came too late is decided by its append time alone, so it does not depend
on how the log was cut into batches.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pkgutil import resolve_name
from typing import Any, ClassVar, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc

from throttle.analytics.partials.partial_bars import US_PER_MS, ZERO, combine, one_each


class PlacedTrades(NamedTuple):
    """Trades, the starts (ms) of their partial bars, whether they are ``in_time``.

    ``late`` is 1 for a trade that amends a finished window, else 0; None if none does.
    """

    trades: pa.Table
    starts: pa.ChunkedArray
    in_time: pa.ChunkedArray
    late: pa.ChunkedArray | None = None


@dataclass(frozen=True, slots=True)
class PartialRule(ABC):
    """How trades become partial bars; its fields are the settings it depends on.

    By the log's clock a batch ends ``close_after_ms`` after a multiple of ``batch_ms``.
    """

    batch_ms: int
    close_after_ms: int

    takes_back: ClassVar[bool] = False
    """Whether trades that are taken back leave their windows."""

    keeps_series: ClassVar[bool] = False
    """Whether series have windows of their own beside their instrument's."""

    is_combined: ClassVar[bool] = True
    """Whether one partial bar stands for all trades of an instrument and a start."""

    @abstractmethod
    def place(self, trades: pa.Table) -> PlacedTrades:
        """Place trades; they have the columns of ``partial_bars.trades_of``."""

    def partials(self, trades: pa.Table) -> tuple[pa.Table, Counter[int]]:
        """Return partial bars as ``partial_bars.combine`` takes them, of ``TRADES``.

        And how many came too late, by partition.
        """
        trades, starts, in_time, late = self.place(trades)
        too_late: Counter[int] = Counter()
        if late is None:
            late = pa.chunked_array([pa.repeat(ZERO, len(trades))])
        if pc.all(in_time).as_py() is False:
            too_late.update(trades["partition"].filter(pc.invert(in_time)).to_pylist())
            trades, starts, late = (c.filter(in_time) for c in (trades, starts, late))
        table = one_each(trades, starts, late)
        return combine([table]) if self.is_combined else table, too_late

    def finish(self, partials: pa.Table) -> pa.Table:
        """Return partial bars as Spark gets them, once no more are combined."""
        return partials

    def control_ms(self, end_ms: int) -> tuple[int, int]:
        """Return the times of the note and of the tick of a batch that ends then."""
        return end_ms - self.close_after_ms, end_ms - self.close_after_ms

    def boundary_ms(self, time_ms: int) -> int:
        """Return the last moment not after another one at which a batch may end."""
        return time_ms - (time_ms - self.close_after_ms) % self.batch_ms

    def to_object(self) -> Mapping[str, Any]:
        """Return it as an object of JSON."""
        kind = type(self)
        return {"rule": f"{kind.__module__}:{kind.__qualname__}", **asdict(self)}

    @classmethod
    def of_object(cls, fields: Mapping[str, Any]) -> "PartialRule":
        """Return what ``to_object`` was made of."""
        values = {name: fields[name] for name in fields if name != "rule"}
        return cast("type[PartialRule]", resolve_name(fields["rule"]))(**values)


@dataclass(frozen=True, slots=True)
class FinalRule(PartialRule):
    """A rule of windows that are published once, when they are over.

    A trade that is stamped ahead of the log's clock counts as made when it was
    appended, also among others. It is too late once the last window that could hold it
    has been published.
    """

    @abstractmethod
    def bounds(
        self, made_ms: pa.ChunkedArray
    ) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        """Return the starts of partial bars, and the ends of the last windows."""

    def place(self, trades: pa.Table) -> PlacedTrades:
        """Place trades by when they were made."""
        appended_us = pc.multiply(trades["append_ms"], US_PER_MS)
        times = pc.min_element_wise(trades["time"], appended_us)
        trades = trades.set_column(trades.column_names.index("time"), "time", times)
        starts, ends = self.bounds(pc.divide(times, US_PER_MS))
        # How far finished batches had come when each trade was appended.
        after = pa.scalar(self.close_after_ms, pa.int64())
        passed = floor(pc.subtract(trades["append_ms"], after), self.batch_ms)
        return PlacedTrades(trades, starts, pc.greater(ends, passed))


def floor(times: pa.ChunkedArray, length_ms: int) -> pa.ChunkedArray:
    """Return the starts of the spans of a length that times are in."""
    length = pa.scalar(length_ms, pa.int64())
    return pc.multiply(pc.divide(times, length), length)
