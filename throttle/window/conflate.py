"""The transform: each instrument's latest trade in each window, with its master data.

Stateless: a batch holds whole windows. The source combines what it reads before
(``combine.py``). That leaves a row of an instrument in a window and partition, and a
few where instruments are very many: Spark groups those. Where it does not,
``batch.assemble`` adds them up. The instrument table is joined as a broadcast, which
Spark builds while the window is open.
"""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from throttle.window.conflated_rows import LATEST
from throttle.window.row_schema import FIRST, FOLDED

_FOLDS = {"sum": F.sum, "max": F.max, "min": F.min}


def create_conflate(
    window_ms: int,
) -> Callable[[DataFrame, bool, DataFrame | None], DataFrame]:
    """Return the transform: rows of the source to one per window, key, partition.

    It needs the columns ``append_time``, ``key``, ``partition``, and those of
    ``FOLDED``, ``FIRST`` and ``LATEST`` (``row_schema.SCHEMA``). It returns ``window``
    (a struct of start and end), ``key``, ``partition``, ``latest`` (a struct of
    ``LATEST``), ``first`` (one of ``FIRST``) and the folded columns. The second
    argument says that the batch has few rows: they are not grouped again, which would
    cost 14 ms after the end of a live window. Where it is wrong, what is
    published is the same. The third one is the instrument table
    (``InstrumentColumns.places``); with it rows have the column ``place``, too.
    """
    # Built once: every column object is a round trip to the JVM.
    window = F.window("append_time", f"{window_ms} milliseconds").alias("window")
    row, trade = F.struct(*LATEST), F.struct(*FIRST)
    as_it_is: tuple[Column | str, ...] = (
        *(window, "key", "partition", row.alias("latest"), trade.alias("first")),
        *FOLDED,
    )
    latest = F.max(row).alias("latest")
    # Of what is no trade all are null, which is nobody's least.
    first = F.min(trade).alias("first")
    folded = [_FOLDS[how](name).alias(name) for name, how in FOLDED.items()]

    def conflate(
        batch: DataFrame, is_small: bool, instruments: DataFrame | None = None
    ) -> DataFrame:
        if is_small:
            rows = batch.select(*as_it_is)
        else:
            rows = batch.groupBy(window, "key", "partition").agg(latest, first, *folded)
        return rows if instruments is None else rows.join(instruments, "key", "left")

    return conflate
