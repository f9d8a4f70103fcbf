"""The transforms: from partial bars to bars and bursts; trades that are kept.

Spark keeps the sums in its state store. What comes too late is left out by the source
(``partial_bars.py``), by a rule that does not depend on how the log was cut into
batches; Spark's watermark only says what state may go, and never drops a row.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from throttle.analytics.partial_reader import NOTE_KEY, NOTE_MS, TICK_KEY

_OPENED = ("open_time", "open_seq", "open_position", "open")
_CLOSED = ("close_time", "close_seq", "close_position", "close")


def bars_of(partials: DataFrame, bars_ms: int, kept_ms: int) -> DataFrame:
    """Return the bars that a batch has changed, for output mode ``update``.

    It needs the columns of ``partial_bars.SCHEMA`` and returns those of ``_selected``.
    The state keeps a bar for ``kept_ms`` after its end, by the log's clock. Panes of
    movers are bars, too.
    """
    window = F.window("at", f"{bars_ms} milliseconds").alias("window")
    marked = partials.withWatermark("at", f"{kept_ms} milliseconds")
    rows = marked.where(_is_no_tick())
    return _selected(rows.groupBy(window, "isin").agg(*_aggregates()))


def bursts_of(
    partials: DataFrame, gap_ms: int, least_trades: int, close_after_ms: int
) -> DataFrame:
    """Return the bursts that have ended, for output mode ``append``.

    A burst is a session window; of fewer trades it is none. Columns are those of
    ``_selected``, but a burst goes from its first to its last trade. A batch's tick is
    at its end, and no trade is later: ``close_after_ms`` before it, the watermark is
    the log's clock, by which the source has left out what came too late.
    """
    marked = partials.withWatermark("at", f"{close_after_ms} milliseconds")
    is_note = F.col("isin").startswith(NOTE_KEY)
    lasts_us = F.col("close_time") - F.col("open_time") + F.lit(gap_ms * 1000)
    own_us = F.lit(NOTE_MS * 1000)
    gap = F.when(is_note, own_us).otherwise(lasts_us)
    window = F.session_window("at", F.concat(gap, F.lit(" microseconds")))
    rows = marked.where(_is_no_tick())
    bursts = rows.groupBy(window.alias("window"), "isin").agg(*_aggregates())
    counted = bursts.where(
        F.col("note").isNotNull() | (F.col("trades") >= least_trades)
    )
    return _selected(counted).withColumns(
        {
            "start_ms": F.floor(F.col("first_us") / 1000),
            "end_ms": F.floor(F.col("last_us") / 1000),
        }
    )


def trades_of(trades: DataFrame, kept_ms: int) -> DataFrame:
    """Return the trades of a batch, for output mode ``append``; the state keeps them.

    Columns are ``isin``, ``time`` (us), ``seq``, ``position``, ``price`` and ``note``.
    Spark has no sliding window; what it has is an operator that keeps rows, for
    ``kept_ms`` by the log's clock, to leave out those that come twice. Two rows that
    are the same in all of these columns would be one trade for a move as well.
    """
    marked = trades.withWatermark("at", f"{kept_ms} milliseconds")
    rows = marked.where(_is_no_tick()).select(
        "at",
        "isin",
        F.col("open_time").alias("time"),
        F.col("open_seq").alias("seq"),
        F.col("open_position").alias("position"),
        F.col("open").alias("price"),
        "note",
    )
    return rows.dropDuplicates(rows.columns)


_SUMMED = ("high", "low", "volume", "value", "trades", "late", "unfit")


def _is_no_tick() -> Column:
    # It names the time, too: otherwise Spark would ask it first, and the watermark
    # would not see the tick.
    return (F.col("isin") != TICK_KEY) | F.col("at").isNull()


def _aggregates() -> list[Column]:
    return [
        F.min(F.struct(*_OPENED)).alias("opened"),
        F.max(F.struct(*_CLOSED)).alias("closed"),
        F.max("high").alias("high"),
        F.min("low").alias("low"),
        # None once it does not fit, and never a wrong one.
        F.try_sum("volume").alias("volume"),
        F.try_sum("value").alias("value"),
        F.sum("trades").alias("trades"),
        F.sum("late").alias("late"),
        F.sum("unfit").alias("unfit"),
        F.max("note").alias("note"),
    ]


def _selected(bars: DataFrame) -> DataFrame:
    return bars.select(
        F.unix_millis("window.start").alias("start_ms"),
        F.unix_millis("window.end").alias("end_ms"),
        "isin",
        F.col("opened.open").alias("open"),
        "high",
        "low",
        F.col("closed.close").alias("close"),
        "volume",
        "value",
        "trades",
        "late",
        "unfit",
        "note",
        F.col("opened.open_time").alias("first_us"),
        F.col("closed.close_time").alias("last_us"),
    )
