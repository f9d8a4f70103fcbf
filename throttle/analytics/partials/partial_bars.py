"""From checked trades to bars of what was read so far, column by column. Pure.

A partial bar is what one piece of the log adds to a bar: Spark adds the partial bars of
an instrument and a start up in its state. Combining them here before is a map-side
combine; it may be left out, or done to any part of a batch, without another result.
"""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.bars import FRACTION_DIGITS, TOO_LARGE
from throttle.window.row_schema import NOT_LAST_PREFIX, REFUSED_PREFIX
from throttle.window.trade_sums import HIGH, VOLUME
from throttle.window.vector_check import counts_for, prices_and_sizes

PRICE = pa.decimal128(38, FRACTION_DIGITS)
WIDE = pa.decimal256(58, FRACTION_DIGITS)
"""Of sums within this file: 128 bits would wrap around without a word."""

_OPEN = ("open_time", "open_seq", "open_position")
_CLOSE = ("close_time", "close_seq", "close_position")

COUNTS = ("trades", "late", "unfit", "taken")
"""Trades; how often a bar was amended; sums that did not fit; trades taken back."""

SUMS = ("volume", "value")

ARROW_SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us", tz="UTC")),
        ("isin", pa.string()),
        *((name, pa.int64()) for name in ("first_time", "last_time")),
        *((name, pa.int64()) for name in _OPEN),
        ("open", PRICE),
        *((name, pa.int64()) for name in _CLOSE),
        *((name, PRICE) for name in ("close", "high", "low", "volume", "value")),
        *((name, pa.int64()) for name in COUNTS),
        ("note", pa.string()),
    ]
)
"""``first_time`` and ``last_time`` are of all trades. What begins with ``open`` and
``close`` is of the first and the last one that counts for the last price, ``high`` and
``low`` are of those that count for the range: null without such a trade.
"""

OF_PRICES = (*_OPEN, "open", *_CLOSE, "close", "high", "low")
"""The columns that are of the prices of some of a bar's trades."""

TRADES = pa.schema(
    [
        ("isin", pa.string()),
        ("partition", pa.int32()),
        *((name, pa.int64()) for name in ("append_ms", "time", "seq", "position")),
        *((name, PRICE) for name in ("last", "range")),
        *((name, WIDE) for name in ("size", "value")),
    ]
)
"""Trades as they are placed in windows; ``time`` is microseconds. ``last`` and
``range`` are the price of a trade that counts for them; ``size`` and ``value`` are 0 of
one that does not count for the volume.
"""

_FOLDS = [
    *(("first_time", "min"), ("last_time", "max"), ("high", "max"), ("low", "min")),
    *((name, "sum") for name in (*SUMS, *COUNTS)),
]
_AGGREGATES = [("opened", "min"), ("closed", "min"), *_FOLDS]
_KEYS = ("at", "isin")
_ONE, ZERO = pa.scalar(1, pa.int64()), pa.scalar(0, pa.int64())
US_PER_MS = pa.scalar(1_000, pa.int64())

NOTE_KEY = "!note:"
"""Begins the key of a control row that holds a task's note."""

TICK_KEY = "!tick"
"""Key of a control row that only moves the watermark."""

OUT_OF_RANGE = "out_of_range"
"""Why a valid trade is in no bar: price x size has too many digits to be summed up."""


def trades_of(rows: pa.Table) -> tuple[pa.Table, Counter[int]]:
    """Return the trades among checked rows, and how many are ``OUT_OF_RANGE``.

    It needs the columns of ``row_schema.ARROW_SCHEMA`` and returns those of
    ``TRADES``; the count is by partition.
    """
    # What begins otherwise is no trade: what was refused, skipped, or read.
    is_trade = pc.or_(
        pc.invert(pc.starts_with(rows["key"], REFUSED_PREFIX)),
        pc.starts_with(rows["key"], NOT_LAST_PREFIX),
    )
    good = rows.filter(pc.and_(pc.is_null(rows["reason"]), is_trade))
    payloads = good["payload"].combine_chunks()
    price, size = (
        text.cast(pa.decimal128(36, 18)) for text in prices_and_sizes(payloads)
    )
    isins, last, extreme = good["key"], price, price
    # Looking through payloads takes a hundred times as long as keys and sums.
    volume = pc.add(*(good[name] for name in VOLUME))
    not_last = pc.any(pc.starts_with(good["key"], NOT_LAST_PREFIX)).as_py()
    all_count = not (not_last or good[HIGH].null_count or pc.min(volume).as_py() == 0)
    counts = None if all_count else counts_for(payloads)
    if counts is not None:
        isins = pc.replace_substring(isins, NOT_LAST_PREFIX, "")
        size = pc.if_else(counts.volume, size, pa.scalar(Decimal(0), size.type))
        last, extreme = (
            pc.if_else(which, price, None) for which in (counts.last, counts.range)
        )
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
            "isin": isins,
            "partition": good["partition"],
            "append_ms": pc.divide(append_us, US_PER_MS),
            "time": good["time"],
            "seq": good["seq"],
            "position": good["position"],
            "last": last.cast(PRICE),
            "range": extreme.cast(PRICE),
            "size": size.cast(WIDE),
            "value": rounded.cast(WIDE),
        }
    )
    if pc.all(is_exact).as_py() is not False:
        return trades, Counter()
    refused = trades["partition"].filter(pc.invert(is_exact)).to_pylist()
    return trades.filter(is_exact), Counter(refused)


def one_each(
    trades: pa.Table, starts: pa.ChunkedArray, late: pa.Array | pa.ChunkedArray
) -> pa.Table:
    """Return a partial bar of each trade (``TRADES``); ``starts`` are milliseconds."""
    size, price, extreme = len(trades), trades["last"], trades["range"]
    order = [trades[name] for name in ("time", "seq", "position")]
    if price.null_count:
        is_priced = pc.is_valid(price)
        order = [pc.if_else(is_priced, column, None) for column in order]
    columns = {
        "at": pc.multiply(starts, US_PER_MS).cast(pa.timestamp("us", tz="UTC")),
        "isin": trades["isin"],
        "first_time": trades["time"],
        "last_time": trades["time"],
        **dict(zip(_OPEN, order, strict=True)),
        "open": price,
        **dict(zip(_CLOSE, order, strict=True)),
        "close": price,
        "high": extreme,
        "low": extreme,
        "volume": trades["size"],
        "value": trades["value"],
        "trades": pa.repeat(_ONE, size),
        "late": late,
        "unfit": pa.repeat(ZERO, size),
        "taken": pa.repeat(ZERO, size),
        "note": pa.nulls(size, pa.string()),
    }
    return pa.table(columns)


def combine(tables: Iterable[pa.Table]) -> pa.Table:
    """Return one partial bar per instrument and start.

    Tables come and go with the columns of ``ARROW_SCHEMA``, but with ``volume`` and
    ``value`` in 256 bits (``to_spark`` makes them Spark's).
    """
    # The first open and the last close come first, what has none at the end.
    table = pa.concat_tables(tables).sort_by([(n, "ascending") for n in _OPEN])
    by_close = pc.sort_indices(table, [(n, "descending") for n in _CLOSE])
    # Arrow knows no first and last of decimals: their places are looked for.
    places = pa.array(range(len(table)), pa.int64())
    placed = table.append_column("opened", places)
    placed = placed.append_column("closed", pc.sort_indices(by_close).cast(pa.int64()))
    groups = placed.group_by(list(_KEYS), use_threads=False).aggregate(_AGGREGATES)
    first = table.take(groups["opened_min"])
    last = table.take(by_close.take(groups["closed_min"]))
    columns = {name: first[name] for name in (*_KEYS, *_OPEN, "open")}
    columns |= {name: last[name] for name in (*_CLOSE, "close")}
    columns |= {name: groups[f"{name}_{how}"] for name, how in _FOLDS}
    columns |= {name: columns[name].cast(WIDE) for name in SUMS}
    columns["note"] = pa.nulls(len(groups), pa.string())
    return pa.table({name: columns[name] for name in ARROW_SCHEMA.names})


def to_spark(table: pa.Table) -> pa.Table:
    """Return partial bars with Spark's types (``ARROW_SCHEMA``).

    A sum that does not fit becomes none, and the bar is ``unfit`` for good.
    """
    limit = pa.scalar(TOO_LARGE, WIDE)
    none = pa.scalar(None, WIDE)
    unfit = table["unfit"]
    columns = {name: table[name] for name in ARROW_SCHEMA.names}
    for name in SUMS:
        is_large = pc.greater_equal(table[name], limit)
        columns[name] = pc.if_else(is_large, none, table[name])
        unfit = pc.add(unfit, is_large.cast(pa.int64()))
    columns["unfit"] = unfit
    return pa.table(columns).cast(ARROW_SCHEMA)


def control_row(at_ms: int, key: str, note: str) -> pa.Table:
    """Return a row (``ARROW_SCHEMA``) of what was read; its ``key`` is no ISIN."""
    row = {"at": at_ms * 1000, "isin": key, "note": note, **dict.fromkeys(COUNTS, 0)}
    return pa.Table.from_pylist([row], ARROW_SCHEMA)
