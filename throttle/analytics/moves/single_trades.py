"""Each trade by itself, for moves, and when it is too late. Pure."""

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from throttle.analytics.partials.partial_rule import FinalRule


@dataclass(frozen=True, slots=True)
class SingleTrades(FinalRule):
    """A partial bar for each trade, at the millisecond in which it was made.

    Spark gets those that count for the last price: no other moves it.
    """

    is_combined: ClassVar[bool] = False

    def bounds(
        self, made_ms: pa.ChunkedArray
    ) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        """Return the milliseconds, and when their trades are judged.

        That is ``close_after_ms``, and up to ``batch_ms`` more, after them.
        """
        return made_ms, pc.add(made_ms, pa.scalar(1, pa.int64()))

    def finish(self, partials: pa.Table) -> pa.Table:
        """Return the partial bars that have a price."""
        return partials.filter(pc.is_valid(partials["open"]))
