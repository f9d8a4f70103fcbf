"""The instrument table as a broadcast, and that nothing of it is kept for a batch."""

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.known_instruments import Instruments
from throttle.spark.sink import InstrumentFrame, release_broadcasts

pytestmark = pytest.mark.spark

ISINS = ["KR7000020008", "KR7005930003"]


def join(spark: SparkSession) -> DataFrame:
    """Join a trade with the table of two instruments."""
    _, places = InstrumentFrame().of(
        spark, Instruments(map(InstrumentEntry, ISINS), version=1)
    )
    assert places is not None
    trades = spark.createDataFrame(pa.table({"key": ISINS[1:], "price": ["73400"]}))
    return trades.join(places, "key", "left")


def test_a_table_is_made_into_a_frame_once(spark: SparkSession) -> None:
    """Until there is another one; without a table there is none."""
    frames = InstrumentFrame()
    assert frames.of(spark, Instruments())[1] is None
    instruments = Instruments(map(InstrumentEntry, ISINS), version=1)
    assert frames.of(spark, instruments)[1] is frames.of(spark, instruments)[1]


def test_what_was_broadcast_for_a_batch_is_given_back(spark: SparkSession) -> None:
    """Spark would keep it until Java has looked through its whole heap."""
    joined = join(spark)
    assert joined.toArrow().num_rows == 1
    release_broadcasts(joined)
    with pytest.raises(Py4JJavaError, match="destroyed"):
        joined.toArrow()
    # The table is as it was, for the next batch.
    assert join(spark).toArrow().num_rows == 1


def test_what_was_not_joined_has_nothing_to_give_back(spark: SparkSession) -> None:
    """It can be collected again."""
    trades = spark.createDataFrame(pa.table({"key": ISINS}))
    assert trades.toArrow().num_rows == 2
    release_broadcasts(trades)
    assert trades.toArrow().num_rows == 2
