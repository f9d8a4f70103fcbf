"""The transform: of every issue in every window, the latest trade.

Stateless: a batch holds whole windows, so nothing is carried from one to the next.
"""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

# The order of one issue's trades: version (time, seq), then the position in the log.
# A position is unique in its partition, so what follows it never decides.
_LATEST = ("time", "seq", "position", "partition", "payload", "reason", "error")


def create_conflate(window_ms: int) -> Callable[[DataFrame], DataFrame]:
    """Return the transform: rows of ``rows.SCHEMA`` to one row per window and key.

    Its columns: ``window`` (a struct of start and end), ``key``, ``latest`` (a struct
    of the latest row's columns), and ``trades``, how many rows it stands for. They
    stay structs here: another step would cost 10 ms a batch, in Arrow it is free.
    """
    # Built once: every column object is a round trip to the JVM.
    window = F.window("append_time", f"{window_ms} milliseconds").alias("window")
    latest = F.max(F.struct(*_LATEST)).alias("latest")
    trades = F.count(F.lit(1)).alias("trades")

    def conflate(batch: DataFrame) -> DataFrame:
        # One partition already holds the batch: saying so saves the shuffle.
        one = batch.coalesce(1)
        return one.groupBy(window, "key").agg(latest, trades)

    return conflate
