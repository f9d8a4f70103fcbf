"""Asks the state of a product's query from outside of the job."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from throttle.analytics.checkpoint import address_of, noted_settings
from throttle.analytics.moves.held_trades import HeldTrade, held_trades
from throttle.analytics.state import bars_in_state, trades_in_state
from throttle.contract.bars import Bar
from throttle.settings import AnalyticsSettings
from throttle.spark.java import NoJava, find_java
from throttle.spark.query import first_line
from throttle.spark.scratch import NoFolder, scratch_folder
from throttle.spark.session import running_spark
from throttle.spark.start.java_process import NoSpark

T = TypeVar("T")


class NoState(RuntimeError):
    """There is no state to be read; the message says why."""


def ask_bars(
    settings: AnalyticsSettings,
    product: str,
    batch_id: int | None = None,
    isin: str | None = None,
) -> Sequence[Bar]:
    """Return what the state of bars, movers or bursts held after a batch.

    Bars of minutes, of spans, or bursts that go on: the oldest first; by default after
    the newest committed batch. Raises NoState.
    """
    bars = _ask(settings, product, partial(bars_in_state, batch_id=batch_id))
    return [bar for bar in bars if isin in (None, bar.isin)]


def ask_trades(
    settings: AnalyticsSettings, batch_id: int | None = None, isin: str | None = None
) -> Sequence[HeldTrade]:
    """Return the trades that the state of moves held, as ``ask_bars`` does."""
    trades = _ask(settings, "moves", partial(_held, batch_id=batch_id))
    return [trade for trade in trades if isin in (None, trade.isin)]


def _held(
    spark: SparkSession, address: str, batch_id: int | None
) -> Sequence[HeldTrade]:
    # Of the query, whatever this process is told.
    span_us = int(noted_settings(spark, address).get("move_span_ms", 0)) * 1_000
    return held_trades(trades_in_state(spark, address, batch_id), span_us)


def _ask(
    settings: AnalyticsSettings, product: str, read: Callable[[SparkSession, str], T]
) -> T:
    """Start a Spark and have it read a product's checkpoint. Raises NoState."""
    address = address_of(settings, product)
    try:
        with scratch_folder() as scratch:
            java = find_java(settings.java_home, scratch)
            with running_spark(settings, java, scratch) as spark:
                return read(spark, address)
    except (NoFolder, NoJava, NoSpark) as error:
        raise NoState(str(error)) from error
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise NoState(f"checkpoint {address}: {first_line(error)}") from error
