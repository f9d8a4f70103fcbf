"""Which pane of hopping windows a trade is in, and when it is too late. Pure."""

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from throttle.analytics.partials.partial_rule import FinalRule, floor


@dataclass(frozen=True, slots=True)
class PanePartials(FinalRule):
    """Panes of spans of ``span_ms``, which begin every ``batch_ms``.

    A pane is what lies between two beginnings.
    """

    takes_back: ClassVar[bool] = True

    span_ms: int

    def bounds(
        self, made_ms: pa.ChunkedArray
    ) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        """Return the panes, and the ends of the last spans that hold them."""
        starts = floor(made_ms, self.batch_ms)
        return starts, pc.add(starts, pa.scalar(self.span_ms, pa.int64()))
