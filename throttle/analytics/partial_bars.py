"""From checked trades to bars of what was read so far, column by column. Pure.

A partial bar is what one piece of the log adds to a bar: Spark adds the partial bars of
an issue and a start up in its state. Combining them here before is a map-side combine;
it may be left out, or done to any part of a batch, without another result.
"""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.bars import FRACTION_DIGITS, TOO_LARGE
from throttle.window.source_rows import REFUSED_PREFIX
from throttle.window.vector_check import prices_and_sizes

SCHEMA = (
    "at timestamp, isin string, open_time bigint, open_seq bigint, "
    "open_position bigint, open decimal(38,18), close_time bigint, close_seq bigint, "
    "close_position bigint, close decimal(38,18), high decimal(38,18), "
    "low decimal(38,18), volume decimal(38,18), value decimal(38,18), "
    "trades bigint, late bigint, unfit bigint, note string"
)

_PRICE = pa.decimal128(38, FRACTION_DIGITS)
_WIDE = pa.decimal256(58, FRACTION_DIGITS)
"""Of sums within this file: 128 bits would wrap around without a word."""

ARROW_SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us", tz="UTC")),
        ("isin", pa.string()),
        ("open_time", pa.int64()),
        ("open_seq", pa.int64()),
        ("open_position", pa.int64()),
        ("open", _PRICE),
        ("close_time", pa.int64()),
        ("close_seq", pa.int64()),
        ("close_position", pa.int64()),
        ("close", _PRICE),
        ("high", _PRICE),
        ("low", _PRICE),
        ("volume", _PRICE),
        ("value", _PRICE),
        ("trades", pa.int64()),
        ("late", pa.int64()),
        ("unfit", pa.int64()),
        ("note", pa.string()),
    ]
)

_KEYS = ("at", "isin")
_OPEN = ("open_time", "open_seq", "open_position")
_CLOSE = ("close_time", "close_seq", "close_position")
_ONE, _ZERO = pa.scalar(1, pa.int64()), pa.scalar(0, pa.int64())
_US_PER_MS = pa.scalar(1_000, pa.int64())
OUT_OF_RANGE = "out_of_range"
"""Why a valid trade is in no bar: price x size has too many digits to be summed up."""


def trades_of(rows: pa.Table) -> tuple[pa.Table, Counter[int]]:
    """Return the trades among checked rows, and how many are ``OUT_OF_RANGE``.

    It needs the columns of ``source_rows.ARROW_SCHEMA``. It returns ``isin``,
    ``partition``, ``append_ms``, ``time`` (us), ``seq``, ``position``, ``price``,
    ``size`` and ``value``; the count is by partition.
    """
    # What begins otherwise is no trade: what was refused, skipped, or read.
    is_trade = pc.invert(pc.starts_with(rows["key"], REFUSED_PREFIX))
    good = rows.filter(pc.and_(pc.is_null(rows["reason"]), is_trade))
    prices, sizes = prices_and_sizes(good["payload"].combine_chunks())
    price, size = (text.cast(pa.decimal128(36, 18)) for text in (prices, sizes))
    product = pc.multiply(
        price.cast(pa.decimal256(36, 18)), size.cast(pa.decimal256(36, 18))
    )
    fits = pc.less(product, pa.scalar(TOO_LARGE, product.type))
    nothing = pa.scalar(Decimal(0), product.type)
    rounded = pc.if_else(fits, product, nothing).cast(
        pa.decimal256(55, FRACTION_DIGITS), safe=False
    )
    is_exact = pc.and_(fits, pc.equal(rounded.cast(product.type), product))
    append_us = good["append_time"].cast(pa.int64()).combine_chunks()
    trades = pa.table(
        {
            "isin": good["key"],
            "partition": good["partition"],
            "append_ms": pc.divide(append_us, _US_PER_MS),
            "time": good["time"],
            "seq": good["seq"],
            "position": good["position"],
            "price": price.cast(_PRICE),
            "size": size.cast(_WIDE),
            "value": rounded.cast(_WIDE),
        }
    )
    if pc.all(is_exact).as_py() is not False:
        return trades, Counter()
    refused = trades["partition"].filter(pc.invert(is_exact)).to_pylist()
    return trades.filter(is_exact), Counter(refused)


def bar_partials(
    trades: pa.Table, bars_ms: int, close_after_ms: int, lateness_ms: int
) -> tuple[pa.Table, Counter[int]]:
    """Return the partial bars of trades, and how many came too late, by partition.

    It needs the columns that ``trades_of`` returns. ``at`` is a bar's start. A trade
    that was appended when its bar had closed (``close_after_ms`` after its end) is
    ``late``; it amends the bar, unless that was ``lateness_ms`` ago.
    """
    starts = _floor(pc.divide(trades["time"], _US_PER_MS), bars_ms)
    closes = pc.add(starts, pa.scalar(bars_ms + close_after_ms, pa.int64()))
    since_ms = pc.subtract(trades["append_ms"], closes)
    in_time = pc.less(since_ms, pa.scalar(lateness_ms, pa.int64()))
    late = pc.greater_equal(since_ms, _ZERO).cast(pa.int64())
    too_late: Counter[int] = Counter()
    if pc.all(in_time).as_py() is False:
        too_late.update(trades["partition"].filter(pc.invert(in_time)).to_pylist())
        starts, late, trades = (c.filter(in_time) for c in (starts, late, trades))
    return combine([_one_each(trades, starts, late)]), too_late


def pane_partials(
    trades: pa.Table, every_ms: int, span_ms: int, close_after_ms: int
) -> tuple[pa.Table, Counter[int]]:
    """Return the partial bars of panes of hopping windows, and what came too late.

    Spans of ``span_ms`` begin every ``every_ms``; a pane is what lies between two
    beginnings. It needs the columns that ``trades_of`` returns. ``at`` is the start of
    a trade's pane; a trade that is stamped ahead of the log's clock counts as made when
    it was appended, also among others. One that came when all spans with its pane had
    been listed is too late.
    """
    trades = _not_ahead(trades)
    starts = _floor(pc.divide(trades["time"], _US_PER_MS), every_ms)
    after = pa.scalar(close_after_ms, pa.int64())
    closed = _floor(pc.subtract(trades["append_ms"], after), every_ms)
    last_ends = pc.add(starts, pa.scalar(span_ms, pa.int64()))
    in_time = pc.greater(last_ends, closed)
    too_late: Counter[int] = Counter()
    if pc.all(in_time).as_py() is False:
        too_late.update(trades["partition"].filter(pc.invert(in_time)).to_pylist())
        starts, trades = (column.filter(in_time) for column in (starts, trades))
    late = pa.repeat(_ZERO, len(trades))
    return combine([_one_each(trades, starts, late)]), too_late


def burst_partials(
    trades: pa.Table, batch_ms: int, gap_ms: int, close_after_ms: int
) -> tuple[pa.Table, Counter[int]]:
    """Return the partial bars of seconds of bursts, and what came too late.

    It needs the columns that ``trades_of`` returns. ``at`` is the time of a partial
    bar's first trade, ``close_time`` that of its last; they are less than a second
    apart, so less than a gap. A trade that is stamped ahead of the log's clock counts
    as made when it was appended. One that could only be in a burst that had ended by
    then is too late.
    """
    trades, too_late = _in_time(trades, batch_ms, gap_ms, close_after_ms)
    seconds = _floor(pc.divide(trades["time"], _US_PER_MS), 1_000)
    late = pa.repeat(_ZERO, len(trades))
    return combine([_one_each(trades, seconds, late)]), too_late


def single_trades(
    trades: pa.Table, batch_ms: int, close_after_ms: int
) -> tuple[pa.Table, Counter[int]]:
    """Return a partial bar of each trade, for moves, and what came too late.

    It needs the columns that ``trades_of`` returns; ``at`` is the millisecond of a
    trade. A trade that is stamped ahead of the log's clock counts as made when it was
    appended. One that comes when others of its moment have been judged
    (``close_after_ms``, and up to ``batch_ms`` more, after they were made) is too late.
    """
    trades, too_late = _in_time(trades, batch_ms, 1, close_after_ms)
    late = pa.repeat(_ZERO, len(trades))
    starts = pc.divide(trades["time"], _US_PER_MS)
    return _one_each(trades, starts, late), too_late


def _in_time(
    trades: pa.Table, batch_ms: int, open_for_ms: int, close_after_ms: int
) -> tuple[pa.Table, Counter[int]]:
    """Return trades without those that came too late, and how many did, by partition.

    A trade comes too late if a batch had ended ``open_for_ms`` after it was made, or
    later, before it was appended. ``time`` is when it was appended, where it is stamped
    ahead of that.
    """
    trades = _not_ahead(trades)
    after = pa.scalar(close_after_ms, pa.int64())
    closed = _floor(pc.subtract(trades["append_ms"], after), batch_ms)
    made_ms = pc.divide(trades["time"], _US_PER_MS)
    ends = pc.add(made_ms, pa.scalar(open_for_ms, pa.int64()))
    in_time = pc.greater(ends, closed)
    too_late: Counter[int] = Counter()
    if pc.all(in_time).as_py() is False:
        too_late.update(trades["partition"].filter(pc.invert(in_time)).to_pylist())
        trades = trades.filter(in_time)
    return trades, too_late


def _not_ahead(trades: pa.Table) -> pa.Table:
    """Return trades with ``time`` when they were appended, if stamped ahead of that."""
    appended = pc.multiply(trades["append_ms"], _US_PER_MS)
    times = pc.min_element_wise(trades["time"], appended)
    return trades.set_column(trades.column_names.index("time"), "time", times)


def at_first_trade(table: pa.Table) -> pa.Table:
    """Return partial bars that begin with their first trade, not with their second."""
    first = table["open_time"].cast(pa.timestamp("us", tz="UTC"))
    return table.set_column(0, "at", first)


def _floor(times: pa.ChunkedArray, length_ms: int) -> pa.ChunkedArray:
    length = pa.scalar(length_ms, pa.int64())
    return pc.multiply(pc.divide(times, length), length)


def _one_each(
    trades: pa.Table, starts: pa.ChunkedArray, late: pa.Array | pa.ChunkedArray
) -> pa.Table:
    size = len(trades)
    order = [trades[name] for name in ("time", "seq", "position")]
    price = trades["price"]
    columns = {
        "at": pc.multiply(starts, _US_PER_MS).cast(pa.timestamp("us", tz="UTC")),
        "isin": trades["isin"],
        **dict(zip(_OPEN, order, strict=True)),
        "open": price,
        **dict(zip(_CLOSE, order, strict=True)),
        "close": price,
        "high": price,
        "low": price,
        "volume": trades["size"],
        "value": trades["value"],
        "trades": pa.repeat(_ONE, size),
        "late": late,
        "unfit": pa.repeat(_ZERO, size),
        "note": pa.nulls(size, pa.string()),
    }
    return pa.table(columns)


def combine(tables: Iterable[pa.Table]) -> pa.Table:
    """Return one partial bar per issue and start.

    Tables come and go with the columns of ``ARROW_SCHEMA``, but with ``volume`` and
    ``value`` in 256 bits (``to_spark`` makes them Spark's).
    """
    table = pa.concat_tables(tables)
    if not len(table):
        return table
    opened = _aggregate(table, _OPEN, "first", ["open"])
    closed = _aggregate(table, _CLOSE, "last", ["close"])
    keys = [(name, "ascending") for name in _KEYS]
    opened, closed = opened.sort_by(keys), closed.sort_by(keys)
    sums = {
        "high": opened["high_max"],
        "low": opened["low_min"],
        "volume": opened["volume_sum"].cast(_WIDE),
        "value": opened["value_sum"].cast(_WIDE),
        "trades": opened["trades_sum"],
        "late": opened["late_sum"],
        "unfit": opened["unfit_sum"],
    }
    ends = {n: opened[n] for n in (*_OPEN, "open")} | {
        n: closed[n] for n in (*_CLOSE, "close")
    }
    columns = {**{n: opened[n] for n in _KEYS}, **sums, **ends}
    columns["note"] = pa.nulls(len(opened), pa.string())
    return pa.table({name: columns[name] for name in ARROW_SCHEMA.names})


_SUMS = [
    ("high", "max"),
    ("low", "min"),
    *((name, "sum") for name in ("volume", "value", "trades", "late", "unfit")),
]


def _aggregate(
    table: pa.Table, order: tuple[str, ...], end: str, prices: list[str]
) -> pa.Table:
    """Group; of each group the row at one ``end`` of an order gives the prices."""
    table = table.sort_by([(name, "ascending") for name in order])
    table = table.append_column("row", pa.array(range(len(table)), pa.int64()))
    groups = table.group_by(list(_KEYS), use_threads=False)
    wanted = _SUMS if end == "first" else []
    result = groups.aggregate([("row", "min" if end == "first" else "max"), *wanted])
    rows = result["row_min" if end == "first" else "row_max"]
    # Arrow knows no first and last of decimals.
    for name in (*order, *prices):
        result = result.append_column(name, table[name].take(rows))
    return result


def to_spark(table: pa.Table) -> pa.Table:
    """Return partial bars with Spark's types (``ARROW_SCHEMA``).

    A sum that does not fit becomes none, and the bar is ``unfit`` for good.
    """
    limit = pa.scalar(TOO_LARGE, _WIDE)
    none = pa.scalar(None, _WIDE)
    unfit = table["unfit"]
    columns = {name: table[name] for name in ARROW_SCHEMA.names}
    for name in ("volume", "value"):
        is_large = pc.greater_equal(table[name], limit)
        columns[name] = pc.if_else(is_large, none, table[name])
        unfit = pc.add(unfit, is_large.cast(pa.int64()))
    columns["unfit"] = unfit
    return pa.table(columns).cast(ARROW_SCHEMA)


def control_row(at_ms: int, key: str, note: str) -> pa.Table:
    """Return a row (``ARROW_SCHEMA``) that is no bar: it says what a batch has read.

    Its ``key`` stands in the place of an ISIN.
    """
    row = dict.fromkeys(ARROW_SCHEMA.names)
    row |= {"isin": key, "note": note, "trades": 0, "late": 0, "unfit": 0}
    columns = {name: [value] for name, value in row.items()}
    columns["at"] = [at_ms * 1000]
    return pa.table(columns, schema=ARROW_SCHEMA)
