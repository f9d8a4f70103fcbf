"""What the state of a query holds: asked of Spark's own source for it.

Only batches that Spark has committed can be asked for, in a batch query, while the
streaming query runs or not.
"""

from typing import cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from throttle.analytics.partials.partial_bars import COUNTS, NOTE_KEY
from throttle.analytics.tumbling_bars import SUMMED

_END = "struct<time: bigint, seq: bigint, position: bigint, price: decimal(38,18)>"
# The other buffers of ``tumbling_bars.aggregates``, in their order.
_BUFFERS = (
    *("high", "low", "volume", "has_volume", "value", "has_value"),
    *(*COUNTS, "note"),
)

# A session's key holds its start only: the whole of it stands before the buffers.
_OF_SESSIONS = ("session_window", "isin")


def state_of(
    spark: SparkSession, checkpoint: str, batch_id: int | None = None
) -> DataFrame:
    """Return the rows that a query's state held after a batch, as Spark has them.

    By default after the newest one that was committed. ``checkpoint`` is the query's, a
    folder or an address.
    """
    reader = spark.read.format("statestore").option("path", checkpoint)
    if batch_id is not None:
        reader = reader.option("batchId", batch_id)
    return reader.load()


def bars_in_state(
    spark: SparkSession, checkpoint: str, batch_id: int | None = None
) -> pa.Table:
    """Return the bars, panes or open bursts of a state (``state_of``), in no order.

    Columns are those that ``tumbling_bars.py`` returns.
    """
    state = state_of(spark, checkpoint, batch_id)
    kind = cast(StructType, state.schema["value"].dataType)
    buffers = F.col("value").cast(_with_names(kind)).alias("of")
    rows = state.select("key", "key.isin", buffers)
    start_ms, end_ms = _bounds(state)
    bars = rows.where(~F.col("isin").startswith(NOTE_KEY)).select(
        start_ms.alias("start_ms"),
        end_ms.alias("end_ms"),
        "isin",
        F.col("of.opened.price").alias("open"),
        "of.high",
        "of.low",
        F.col("of.closed.price").alias("close"),
        *(f"of.{name}" for name in SUMMED),
    )
    return bars.toArrow()


def _bounds(state: DataFrame) -> tuple[Column, Column]:
    """Return the start and the end of a state's windows, in milliseconds.

    A session ends a gap after its last trade.
    """
    is_tumbling = "window" in cast(StructType, state.schema["key"].dataType).names
    window = "key.window" if is_tumbling else "of.session_window"
    return F.unix_millis(f"{window}.start"), F.unix_millis(f"{window}.end")


def _with_names(buffers: StructType) -> str:
    """Return the type of a state's value with names of its own.

    Spark names them by function, several alike, and takes one for the other. Where the
    first and the last trade stand among them is its optimizer's matter.
    """
    names = iter(_BUFFERS)
    parts = []
    for field in buffers.fields:
        if field.name in _OF_SESSIONS:
            parts.append(f"{field.name}: {field.dataType.simpleString()}")
        elif isinstance(field.dataType, StructType):
            is_first = field.dataType.names[0] == "open_time"
            parts.append(f"{'opened' if is_first else 'closed'}: {_END}")
        else:
            parts.append(f"{next(names)}: {field.dataType.simpleString()}")
    return f"struct<{', '.join(parts)}>"
