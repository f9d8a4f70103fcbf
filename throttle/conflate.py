"""The transform: of every issue in every window, the latest trade.

Stateless: a batch holds whole windows, so nothing is carried from one to the next.
"""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

LATEST = ("time", "seq", "position", "payload", "reason", "error")
"""The order of one issue's trades: version (time, seq), then the position in the log.

A position is unique in its partition, so what follows it never decides.
"""


def create_conflate(
    window_ms: int, live_tasks: int = 1
) -> Callable[[DataFrame, bool], DataFrame]:
    """Return the transform: rows of ``rows.SCHEMA`` to one per window, key, partition.

    Its columns: ``window`` (a struct of start and end), ``key``, ``partition``,
    ``latest`` (a struct of the latest row's columns), and ``trades``, how many entries
    of the log it stands for. They stay structs here: another step would cost 10 ms a
    batch, in Arrow it is free. The second argument says that the batch is one live
    window: if one task reads it (``live_tasks``), that one also groups it, without a
    shuffle. Where it is wrong, the rows are the same.
    """
    # Built once: every column object is a round trip to the JVM.
    window = F.window("append_time", f"{window_ms} milliseconds").alias("window")
    latest = F.max(F.struct(*LATEST)).alias("latest")
    trades = F.sum("trades").alias("trades")

    def conflate(batch: DataFrame, is_live: bool) -> DataFrame:
        # Of a window that several read, it would leave one to read all of it.
        rows = batch.coalesce(1) if is_live and live_tasks == 1 else batch
        return rows.groupBy(window, "key", "partition").agg(latest, trades)

    return conflate
