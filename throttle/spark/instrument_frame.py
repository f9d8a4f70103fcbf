"""The instrument table as a DataFrame that is broadcast, made once per version."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.instrument_table.known_instruments import Instruments
from throttle.window.instrument_columns import NO_INSTRUMENTS, InstrumentColumns


class InstrumentFrame:
    """Keeps the columns and the frame of the newest table."""

    def __init__(self) -> None:
        self._columns = NO_INSTRUMENTS
        self._frame: DataFrame | None = None

    def of(
        self, spark: SparkSession, instruments: Instruments
    ) -> tuple[InstrumentColumns, DataFrame | None]:
        """Return the columns of a table, and the frame to be joined as a broadcast.

        Without a table, which is one of version 0, there is no frame.
        """
        if instruments is not self._columns.instruments:
            self._columns, self._frame = InstrumentColumns(instruments), None
            if instruments.version:
                frame = spark.createDataFrame(self._columns.places)
                self._frame = F.broadcast(frame)
        return self._columns, self._frame


def release_broadcasts(joined: DataFrame) -> None:
    """Give back what was broadcast for a frame that has been collected.

    Spark would keep a copy of the table for each batch, 2 MB for three thousand
    instruments, until Java has looked through its whole heap and found that nobody
    refers to it. No public call gives it back: it is looked up in the plan that was
    run. The frame cannot be collected again.
    """
    plans: list[Any] = [joined._jdf.queryExecution().executedPlan()]
    while plans:
        plan = plans.pop()
        if plan.getClass().getSimpleName() == "BroadcastExchangeExec":
            plan.executeBroadcast().destroy()
            continue
        children = plan.children()
        plans += [children.apply(number) for number in range(children.size())]
