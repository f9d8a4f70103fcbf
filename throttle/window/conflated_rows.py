"""Combined rows with the columns that Spark's result has once it is flattened. Pure."""

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.trade_order import ORDER
from throttle.window.combine import windows
from throttle.window.row_schema import FIRST, FOLDED

LATEST = (*ORDER, "payload", "reason", "error")
"""What is kept of an instrument's latest trade: the columns that decide, then more.

A position is unique in its partition, so what follows it never decides.
"""


def as_conflated(combined: pa.Table, window_ms: int) -> pa.Table:
    """Return all rows of a batch, combined, as ``conflate.py`` returns them.

    They have the columns of ``row_schema.ARROW_SCHEMA``.
    """
    ended = pc.add(windows(combined, window_ms), pa.scalar(1, pa.int64()))
    ends_us = pc.multiply(ended, pa.scalar(window_ms * 1000, pa.int64()))
    return pa.table(
        {
            "window.end": ends_us.cast(pa.timestamp("us", tz="UTC")),
            "key": combined["key"],
            "partition": combined["partition"],
            **{f"latest.{name}": combined[name] for name in LATEST},
            **{f"first.{name}": combined[name] for name in FIRST},
            **{name: combined[name] for name in FOLDED},
        }
    )
