"""From log entries to rows (``row_schema.py``), once they are checked. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import repeat
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingest.trade import MAX_ENTRY_BYTES, Trade
from ingest.tradelog.contract import Chunk
from throttle.contract.row_sums import Amounts
from throttle.window import trade_sums, vector_check
from throttle.window.decoder import Decoder, Judged, Skipped
from throttle.window.plain_trades import plain_trades
from throttle.window.row_schema import (
    ARROW_SCHEMA,
    CANCEL_PREFIX,
    CANCELLED,
    FIRST,
    NOT_LAST_PREFIX,
    REFUSED_PREFIX,
    SKIPPED_PREFIX,
    SUM_PREFIX,
    records,
    with_columns,
)
from throttle.window.series_rows import NO_SERIES, SeriesRules
from throttle.window.vector_check import CountsFor
from tickthrottle_client.updates_v1 import ALL, Updates

# Constants with a type: guessing the type of a Python number takes 0.1 ms each time.
_ONE, _US_PER_MS = pa.scalar(1, pa.int64()), pa.scalar(1_000, pa.int64())
_COLUMNS = ("positions", "append_ms", "payloads")


def joined(chunks: Sequence[tuple[int, Chunk]]) -> tuple[Chunk, pa.Array]:
    """Return chunks of several partitions as one, and the partition of each entry.

    Fifty steps over columns cost the same for ten entries as for a thousand.
    """
    partitions = [pa.repeat(pa.scalar(p, pa.int32()), len(c)) for p, c in chunks]
    columns = {
        name: pa.concat_arrays([getattr(chunk, name) for _, chunk in chunks])
        for name in _COLUMNS
    }
    return replace(chunks[-1][1], **columns), pa.concat_arrays(partitions)


def trade_rows(
    chunk: Chunk,
    partition: int | pa.Array,
    start_ms: int,
    end_ms: int,
    max_ahead_ms: int,
    decoder: Decoder | None = None,
    max_bytes: int = MAX_ENTRY_BYTES,
    *,
    every_trade: bool = False,
    series: SeriesRules = NO_SERIES,
    speedups: bool = True,
) -> pa.Table:
    """Check a chunk; return one row per entry (``ARROW_SCHEMA``), in no stated order.

    A trade has a further row for each of the ``series`` that it is in. Its payload is
    in the order of ``Trade.to_wire``, a refused one's as it came. If a ``decoder``
    finds several trades in an entry, it has a row for each instrument (with
    ``every_trade``, for each of them), and for each trade that is refused.

    ``partition`` is that of all its entries, or an array with the one of each. The
    chunk stands between two cuts, at ``start_ms`` and ``end_ms``: what is stamped
    outside of them counts as appended at their edge (``cut.window_time_ms``). With
    ``speedups`` the compiled package looks at plain trades, where it is installed.
    """
    # Here and in ``_window_times`` is ``cut.window_time_ms`` over columns: an entry
    # counts as appended not before the first cut and not at or past the second.
    latest = pa.scalar(end_ms - 1, pa.int64())
    chunk = replace(chunk, append_ms=pc.min_element_wise(chunk.append_ms, latest))
    if isinstance(partition, int):
        partition = pa.repeat(pa.scalar(partition, pa.int32()), len(chunk))

    def judged_rows(some: Chunk, partitions: pa.Array) -> pa.Table:
        cuts_ms = start_ms, end_ms
        judged = vector_check.check(some, cuts_ms, max_ahead_ms, decoder, max_bytes)
        is_split = every_trade or decoder is None
        return _judged_rows(some, partitions, start_ms, judged, is_split, series)

    if decoder is not None:
        return judged_rows(chunk, partition)
    tables: list[pa.Table] = []
    if speedups and not series.is_any:
        plain = plain_trades(chunk, max_ahead_ms, max_bytes)
        if plain is not None:
            mask, columns = plain
            plain_ones = _selected(chunk, mask), _kept(partition, mask)
            tables = [_trade_table(*plain_ones, start_ms, columns)]
            if mask.true_count == len(chunk):
                return tables[0]
            others = pc.invert(mask)
            chunk, partition = _selected(chunk, others), partition.filter(others)
    quick = vector_check.has_wire_form(chunk.payloads, max_bytes)
    candidates = _selected(chunk, quick)
    times_us = vector_check.times_us(candidates.payloads)
    isins = vector_check.isins(candidates.payloads)
    valid = pc.and_(
        vector_check.with_valid_isin(isins),
        vector_check.are_timely(times_us, candidates.append_ms, max_ahead_ms),
    )
    good = _selected(candidates, valid)
    times_us, isins = _kept(times_us, valid), _kept(isins, valid)
    partitions = _kept(_kept(partition, quick), valid)
    is_whole = len(good) == len(chunk)
    if series.is_any:
        payloads, isins, places = series.by_columns(good.payloads, isins, times_us)
        good = replace(
            good,
            positions=good.positions.take(places),
            append_ms=good.append_ms.take(places),
            payloads=payloads,
        )
        times_us, partitions = times_us.take(places), partitions.take(places)
    seqs, prices, sizes = vector_check.numbers(good.payloads)
    counts = vector_check.counts_for(good.payloads)
    sums, fits = trade_sums.of_columns(prices, sizes, counts)
    columns = {"key": isins, "time": times_us, "seq": seqs, "first_price": prices}
    table = _trade_table(good, partitions, start_ms, {**columns, **sums}, counts)
    if fits is not None:
        is_odd = pc.invert(fits)
        texts = (column.filter(is_odd).to_pylist() for column in (prices, sizes))
        of_odd = map(Amounts.of_trade, *texts, _each(counts, is_odd))
        table = pa.concat_tables([table, _sum_rows(table.filter(is_odd), of_odd)])
    tables.append(table)
    if not is_whole:
        others = pc.invert(pc.replace_with_mask(quick, quick, valid))
        tables.append(judged_rows(_selected(chunk, others), partition.filter(others)))
    # Spark takes an empty batch among others for the end.
    return pa.concat_tables([one for one in tables if len(one)] or tables[:1])


def _trade_table(
    good: Chunk,
    partitions: pa.Array,
    start_ms: int,
    columns: trade_sums.Columns,
    counts: CountsFor | None = None,
) -> pa.Table:
    own = columns["time"], columns["seq"], good.positions, columns["first_price"]
    every = {
        **columns,
        "append_time": _window_times(good.append_ms, start_ms),
        "key": _keys(columns["key"], counts),
        "partition": partitions,
        "position": good.positions,
        "trades": pa.repeat(_ONE, len(good)),
        **_own_firsts(counts, *own),
        "payload": good.payloads,
        **dict.fromkeys(("reason", "error"), pa.nulls(len(good))),
    }
    return pa.table({n: every[n] for n in ARROW_SCHEMA.names}).cast(ARROW_SCHEMA)


def extra_trades(rows: pa.Table, entries: Mapping[int, int]) -> Counter[int]:
    """Return how many more trades than entries there are, by partition.

    ``rows`` are those of ``trade_rows`` for so many ``entries`` of each partition.
    """
    sums = rows.group_by("partition").aggregate([("trades", "sum")])
    trades = Counter(dict(records(sums, ("partition", "trades_sum"))))
    return Counter({p: trades[p] - number for p, number in entries.items()})


def _keys(isins: pa.Array, counts: CountsFor | None) -> pa.Array:
    if counts is None:
        return isins
    not_last = pc.binary_join_element_wise(NOT_LAST_PREFIX, isins, "")
    return pc.if_else(counts.last, isins, not_last)


def _each(counts: CountsFor | None, mask: pa.Array) -> Iterable[Updates]:
    """Yield what each of some trades counts for, of which ``mask`` has a true."""
    if counts is None:
        return repeat(ALL, pc.sum(mask).as_py() or 0)
    columns = (column.filter(mask).to_pylist() for column in counts)
    return map(Updates, *columns)


def _own_firsts(counts: CountsFor | None, *columns: pa.Array) -> dict[str, pa.Array]:
    """Return the columns ``FIRST`` of trades by themselves."""
    if counts is not None:
        columns = tuple(pc.if_else(counts.last, column, None) for column in columns)
    return dict(zip(FIRST, columns, strict=True))


def _sum_rows(odd: pa.Table, amounts: Iterable[Amounts]) -> pa.Table:
    """Return a row for each trade whose amounts do not fit into its own row."""
    places = records(odd, ("position", "key"))
    keys = [f"{SUM_PREFIX}{position}:{isin}" for position, isin in places]
    none = pa.repeat(pa.scalar(0, pa.int64()), len(odd))
    columns = {
        "key": pa.array(keys, pa.string()),
        "trades": none,
        **{n: pa.nulls(len(odd), pa.int64()) for n in trade_sums.FOLDS},
        "payload": pa.array(map(trade_sums.pack, amounts), pa.binary()),
    }
    return with_columns(odd, columns)


def _selected(chunk: Chunk, mask: pa.Array) -> Chunk:
    columns = {name: _kept(getattr(chunk, name), mask) for name in _COLUMNS}
    return replace(chunk, **columns)


def _kept(column: pa.Array, mask: pa.BooleanArray) -> pa.Array:
    # To filter where all is kept, as nearly always, would copy all of it.
    return column if mask.true_count == len(mask) else column.filter(mask)


def _window_times(append_ms: pa.Array, start_ms: int) -> pa.Array:
    earliest = pa.scalar(start_ms, pa.int64())
    return pc.multiply(pc.max_element_wise(append_ms, earliest), _US_PER_MS)


def _judged_rows(
    chunk: Chunk,
    partition: pa.Array,
    start_ms: int,
    judged: Sequence[Sequence[Judged]],
    every_trade: bool,
    series: SeriesRules,
) -> pa.Table:
    """Return the rows of entries that may hold no trade, or several."""
    places = zip(*(getattr(chunk, n).to_pylist() for n in _COLUMNS), strict=True)
    numbers: list[int] = []
    rows: list[tuple[Any, ...]] = []
    for number, (held, place) in enumerate(zip(judged, places, strict=True)):
        of_entry = list(_rows_of(held, *place, every_trade=every_trade, series=series))
        numbers += [number] * len(of_entry)
        rows += of_entry
    at = pa.array(numbers, pa.int64())
    columns = zip(*rows, strict=True) if rows else ((),) * (len(_OF_ROW) + 1)
    *values, amounts = columns
    sums, odd = trade_sums.of_amounts(amounts)
    every = {
        "append_time": _window_times(chunk.append_ms, start_ms).take(at),
        "partition": partition.take(at),
        **sums,
        **dict(zip(_OF_ROW, values, strict=True)),
    }
    arrays = [pa.array(every[field.name], field.type) for field in ARROW_SCHEMA]
    table = pa.table(arrays, ARROW_SCHEMA)
    if not odd:
        return table
    exact = (amounts[place] for place in odd)
    odd_rows = table.take(pa.array(odd, pa.int64()))
    return pa.concat_tables([table, _sum_rows(odd_rows, exact)])


_OF_ROW = (
    *("key", "time", "seq", "position", "trades", "payload", "reason", "error"),
    *FIRST,
)
_NO_FIRST = (None,) * len(FIRST)
_NO_AMOUNTS = (*_NO_FIRST, None)


def _rows_of(
    held: Sequence[Judged],
    position: int,
    append_ms: int,
    payload: bytes,
    *,
    every_trade: bool,
    series: SeriesRules,
) -> Iterator[tuple[Any, ...]]:
    """Yield the columns ``_OF_ROW``, and the amounts, of each row of an entry.

    Of an instrument's trades in one entry only the newest can be published; of equal
    ones it is the last. Its row stands for all of them. Of the trades that are refused
    the first one's letter holds the entry's bytes; the others are counted.
    """
    one = held[0] if len(held) == 1 else None
    if isinstance(one, Trade) and one.takes_back is None and one.updates.last:
        # Nearly all of them.
        trade = series.labelled(one) if series.is_any else one
        for isin in series.keys_of(trade) if series.is_any else (trade.isin,):
            yield _row(isin, trade, position, [trade])
        return
    trades: dict[str, list[Trade]] = {}
    not_last: dict[str, list[Trade]] = {}
    has_letter = False
    # What is no trade has no time of its own: its append time goes there.
    stamp_us = append_ms * 1000
    for number, one in enumerate(held, 1):
        if isinstance(one, Trade) and one.takes_back is not None:
            order, count = (one.time_us, one.seq, position), int(not one.is_trade)
            key = CANCEL_PREFIX + one.isin
            yield key, *order, count, one.to_wire(), CANCELLED, None, *_NO_AMOUNTS
        if isinstance(one, Trade):
            if not one.is_trade:
                continue
            trade = series.labelled(one)
            for isin in series.keys_of(trade):
                if every_trade:
                    yield _row(_key(trade, isin), trade, position, [trade])
                elif trade.updates.last:
                    trades.setdefault(isin, []).append(trade)
                else:
                    not_last.setdefault(_key(trade, isin), []).append(trade)
        elif isinstance(one, Skipped):
            key = SKIPPED_PREFIX + one.name
            yield key, stamp_us, 0, 0, 1, b"", key, None, *_NO_AMOUNTS
        elif has_letter:
            key = REFUSED_PREFIX + one.reason
            yield key, stamp_us, 0, 0, 1, b"", one.reason, None, *_NO_AMOUNTS
        else:
            has_letter = True
            key, error = f"{REFUSED_PREFIX}{position}", str(one)
            if len(held) > 1:
                error = f"trade {number} of {len(held)}: {error}"
            place = stamp_us, 0, position
            yield key, *place, 1, payload, one.reason, error, *_NO_AMOUNTS
    for isin, of_it in trades.items():
        newest = max(reversed(of_it), key=attrgetter("version"))
        yield _row(isin, newest, position, of_it)
    for key, of_it in not_last.items():
        amounts = (*_NO_FIRST, _amounts(of_it))
        yield key, 0, 0, position, len(of_it), b"", None, None, *amounts


def _row(
    key: str, newest: Trade, position: int, of_it: Sequence[Trade]
) -> tuple[Any, ...]:
    order, payload = (newest.time_us, newest.seq, position), newest.to_wire()
    of_last = (trade for trade in of_it if trade.updates.last)
    first = min(of_last, key=attrgetter("version"), default=None)
    columns: tuple[Any, ...] = _NO_FIRST
    if first is not None:
        columns = first.time_us, first.seq, position, first.price
    return key, *order, len(of_it), payload, None, None, *columns, _amounts(of_it)


def _key(trade: Trade, isin: str) -> str:
    return isin if trade.updates.last else NOT_LAST_PREFIX + isin


def _amounts(trades: Iterable[Trade]) -> Amounts:
    every = (Amounts.of_trade(t.price, t.size, t.updates) for t in trades)
    return reduce(Amounts.fold, every)
