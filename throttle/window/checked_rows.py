"""From log entries to rows (``row_schema.py``), once they are checked. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import repeat
from operator import attrgetter
from typing import Any, TypeGuard

import pyarrow as pa
import pyarrow.compute as pc

from ingest.trade import MAX_ENTRY_BYTES, InvalidTrade, Trade
from ingest.tradelog.contract import Chunk
from throttle.contract.row_sums import Amounts
from throttle.window import trade_sums, vector_check
from throttle.window.decoder import Decoder, Judged, Skipped
from throttle.window.row_schema import (
    ARROW_SCHEMA,
    CANCEL_PREFIX,
    CANCELLED,
    FIRST,
    NOT_LAST_PREFIX,
    REFUSED_PREFIX,
    SKIPPED_PREFIX,
    SUM_PREFIX,
    with_columns,
)
from throttle.window.series_rows import NO_SERIES, SeriesRules
from throttle.window.vector_check import CountsFor
from tickthrottle_client.updates_v1 import ALL, Updates

# Constants with a type: guessing the type of a Python number takes 0.1 ms each time.
_ONE, _US_PER_MS = pa.scalar(1, pa.int64()), pa.scalar(1_000, pa.int64())


def joined(chunks: Sequence[tuple[int, Chunk]]) -> tuple[Chunk, pa.Array]:
    """Return chunks of several partitions as one, and the partition of each entry.

    Fifty steps over columns cost the same for ten entries as for a thousand.
    """
    every = [chunk for _, chunk in chunks]
    partitions = [pa.repeat(pa.scalar(p, pa.int32()), len(c)) for p, c in chunks]
    one = replace(
        every[-1],
        positions=pa.concat_arrays([chunk.positions for chunk in every]),
        append_ms=pa.concat_arrays([chunk.append_ms for chunk in every]),
        payloads=pa.concat_arrays([chunk.payloads for chunk in every]),
    )
    return one, pa.concat_arrays(partitions)


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
) -> pa.Table:
    """Check a chunk; return one row per entry (``ARROW_SCHEMA``), in no stated order.

    A trade has a further row for each of the ``series`` that it is in.

    A trade's payload is in the order of ``Trade.to_wire``, a refused one's as it came.

    If a ``decoder`` finds several trades in an entry, it has a row for each instrument
    (with ``every_trade``, for each of them), and for each trade that is refused.

    ``partition`` is that of all its entries, or an array with the one of each. The
    chunk stands between two cuts, at ``start_ms`` and ``end_ms``: what is stamped
    outside of them counts as appended at their edge (``cut.window_time_ms``).
    """
    chunk = _stamped_before(chunk, end_ms)
    if isinstance(partition, int):
        partition = pa.repeat(pa.scalar(partition, pa.int32()), len(chunk))
    if decoder is not None:
        judged = vector_check.check_decoded(
            chunk, (start_ms, end_ms), max_ahead_ms, decoder, max_bytes
        )
        return _decoded_rows(chunk, partition, start_ms, judged, every_trade, series)
    quick = vector_check.has_wire_form(chunk.payloads, max_bytes)
    candidates = select(chunk, quick)
    times_us = vector_check.times_us(candidates.payloads)
    isins = vector_check.isins(candidates.payloads)
    valid = pc.and_(
        vector_check.with_valid_isin(isins),
        vector_check.are_timely(times_us, candidates.append_ms, max_ahead_ms),
    )
    good = select(candidates, valid)
    times_us, isins = times_us.filter(valid), isins.filter(valid)
    partitions = partition.filter(quick).filter(valid)
    is_whole = len(good) == len(chunk)
    if series.is_any:
        payloads, isins, places = series.by_columns(good.payloads, isins, times_us)
        good = replace(taken(good, places), payloads=payloads)
        times_us, partitions = times_us.take(places), partitions.take(places)
    size = len(good)
    seqs, prices, sizes = vector_check.numbers(good.payloads)
    counts = vector_check.counts_for(good.payloads)
    sums, fits = trade_sums.of_columns(prices, sizes, counts)
    known = {
        "append_time": _window_times(good.append_ms, start_ms),
        "key": _keys(isins, counts),
        "partition": partitions,
        "time": times_us,
        "seq": seqs,
        "position": good.positions,
        "trades": pa.repeat(_ONE, size),
        **sums,
        **_own_firsts(counts, times_us, seqs, good.positions, prices),
        "payload": good.payloads,
        "reason": pa.nulls(size),
        "error": pa.nulls(size),
    }
    table = pa.table(known).cast(ARROW_SCHEMA)
    if fits is not None:
        is_odd = pc.invert(fits)
        texts = (column.filter(is_odd).to_pylist() for column in (prices, sizes))
        of_odd = map(Amounts.of_trade, *texts, _each(counts, is_odd))
        table = pa.concat_tables([table, _sum_rows(table.filter(is_odd), of_odd)])
    if is_whole:
        return table
    odd, wrong = pc.invert(quick), pc.invert(valid)
    others = [
        (select(chunk, odd), partition.filter(odd)),
        (select(candidates, wrong), partition.filter(quick).filter(wrong)),
    ]
    judged = [
        _judged_rows(*other, (start_ms, end_ms), max_ahead_ms, max_bytes, series)
        for other in others
    ]
    return pa.concat_tables([table, *judged])


def extra_trades(rows: pa.Table, entries: Mapping[int, int]) -> Counter[int]:
    """Return how many more trades than entries there are, by partition.

    ``rows`` are those of ``trade_rows`` for so many ``entries`` of each partition.
    """
    sums = rows.group_by("partition").aggregate([("trades", "sum")])
    columns = (sums[name].to_pylist() for name in ("partition", "trades_sum"))
    trades = Counter(dict(zip(*columns, strict=True)))
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
    places = zip(odd["position"].to_pylist(), odd["key"].to_pylist(), strict=True)
    keys = [f"{SUM_PREFIX}{position}:{isin}" for position, isin in places]
    none = pa.repeat(pa.scalar(0, pa.int64()), len(odd))
    columns = {
        "key": pa.array(keys, pa.string()),
        "trades": none,
        **{n: pa.nulls(len(odd), pa.int64()) for n in trade_sums.FOLDS},
        "payload": pa.array(map(trade_sums.pack, amounts), pa.binary()),
    }
    return with_columns(odd, columns)


def select(chunk: Chunk, mask: pa.Array) -> Chunk:
    """Return those entries of a chunk for which the mask has true."""
    return replace(
        chunk,
        positions=chunk.positions.filter(mask),
        append_ms=chunk.append_ms.filter(mask),
        payloads=chunk.payloads.filter(mask),
    )


def taken(chunk: Chunk, places: pa.Array) -> Chunk:
    """Return the entries of a chunk at some places."""
    return replace(
        chunk,
        positions=chunk.positions.take(places),
        append_ms=chunk.append_ms.take(places),
        payloads=chunk.payloads.take(places),
    )


# These two are ``cut.window_time_ms`` over columns: an entry counts as appended not
# before the first cut and not at or past the second.
def _stamped_before(chunk: Chunk, end_ms: int) -> Chunk:
    latest = pa.scalar(end_ms - 1, pa.int64())
    return replace(chunk, append_ms=pc.min_element_wise(chunk.append_ms, latest))


def _window_times(append_ms: pa.Array, start_ms: int) -> pa.Array:
    earliest = pa.scalar(start_ms, pa.int64())
    return pc.multiply(pc.max_element_wise(append_ms, earliest), _US_PER_MS)


def _judged_rows(
    chunk: Chunk,
    partition: pa.Array,
    cuts_ms: tuple[int, int],
    max_ahead_ms: int,
    max_bytes: int,
    series: SeriesRules,
) -> pa.Table:
    judged = vector_check.check(chunk, cuts_ms, max_ahead_ms, max_bytes)
    behind = [""] * len(judged)
    if series.is_any:
        judged, behind, at = _with_series(judged, series)
        chunk, partition = taken(chunk, at), partition.take(at)
    places = chunk.positions.to_pylist(), chunk.append_ms.to_pylist()
    keys, times_us, seqs, reasons, errors = (
        zip(*map(_values, judged, *places), strict=True) if judged else ((),) * 5
    )
    keys = tuple(map("".join, zip(keys, behind, strict=True)))
    size = len(chunk)
    payloads = [
        one.to_wire() if isinstance(one, Trade) else payload
        for one, payload in zip(judged, chunk.payloads.to_pylist(), strict=True)
    ]
    of_each = [[one] if _is_trade(one) else [] for one in judged]
    amounts = list(map(_amounts, of_each))
    firsts = list(map(_first, of_each, places[0]))
    table = pa.table(
        {
            "append_time": _window_times(chunk.append_ms, cuts_ms[0]),
            "key": pa.array(keys, pa.string()),
            "partition": partition,
            "time": pa.array(times_us, pa.int64()),
            "seq": pa.array(seqs, pa.int64()),
            "position": chunk.positions,
            "trades": pa.repeat(_ONE, size),
            **{name: pa.nulls(size) for name in trade_sums.FOLDS},
            **_first_columns(firsts),
            "payload": pa.array(payloads, pa.binary()),
            "reason": pa.array(reasons, pa.string()),
            "error": pa.array(errors, pa.string()),
        }
    ).cast(ARROW_SCHEMA)
    return _with_corrections(_summed(table, amounts), table, judged, behind)


def _with_series(
    judged: Sequence[InvalidTrade | Trade], series: SeriesRules
) -> tuple[list[InvalidTrade | Trade], list[str], pa.Array]:
    """Return trades for all that they count for.

    With them comes what stands behind the ISIN of their key, and which of those given
    each is.
    """
    every: list[InvalidTrade | Trade] = []
    behind: list[str] = []
    at: list[int] = []
    for place, one in enumerate(judged):
        keys = [""]
        if _is_trade(one):
            one = series.labelled(one)
            keys = [key.removeprefix(one.isin) for key in series.keys_of(one)]
        every += [one] * len(keys)
        behind += keys
        at += [place] * len(keys)
    return every, behind, pa.array(at, pa.int64())


def _with_corrections(
    rows: pa.Table,
    of_entries: pa.Table,
    judged: Sequence[InvalidTrade | Trade],
    behind: Sequence[str],
) -> pa.Table:
    """Add a row for each trade that takes the place of another one.

    Of series there is none: what is taken back of them follows from it.
    """
    correcting_isins = {
        place: one.isin
        for place, (one, of_series) in enumerate(zip(judged, behind, strict=True))
        if _is_trade(one) and one.takes_back is not None and not of_series
    }
    if not correcting_isins:
        return rows
    correcting = of_entries.take(pa.array(correcting_isins, pa.int64()))
    isins = correcting_isins.values()
    size = len(correcting_isins)
    none = pa.repeat(pa.scalar(0, pa.int64()), size)
    nothing = {name: pa.nulls(size, ARROW_SCHEMA.field(name).type) for name in FIRST}
    columns = {
        "key": pa.array([CANCEL_PREFIX + isin for isin in isins], pa.string()),
        "trades": none,
        **nothing,
        "reason": pa.repeat(pa.scalar(CANCELLED), size),
    }
    return pa.concat_tables([rows, with_columns(correcting, columns)])


def _decoded_rows(
    chunk: Chunk,
    partition: pa.Array,
    start_ms: int,
    judged: Sequence[Sequence[Judged]],
    every_trade: bool,
    series: SeriesRules,
) -> pa.Table:
    """Return the rows of entries that may hold no trade, or several."""
    places = zip(
        *(column.to_pylist() for column in (chunk.positions, chunk.append_ms)),
        chunk.payloads.to_pylist(),
        strict=True,
    )
    numbers: list[int] = []
    rows: list[tuple[Any, ...]] = []
    for number, (held, place) in enumerate(zip(judged, places, strict=True)):
        found = list(_rows_of(held, *place, every_trade=every_trade, series=series))
        numbers += [number] * len(found)
        rows += found
    at = pa.array(numbers, pa.int64())
    names = (
        *("key", "time", "seq", "position", "trades", "payload", "reason", "error"),
        *("first", "amounts"),
    )
    values = zip(*rows, strict=True) if rows else [()] * len(names)
    columns = dict(zip(names, values, strict=True))
    amounts = columns.pop("amounts")
    firsts = _first_columns(columns.pop("first"))
    known = {
        "append_time": _window_times(chunk.append_ms, start_ms).take(at),
        "partition": partition.take(at),
        **{name: pa.nulls(len(at)) for name in trade_sums.FOLDS},
        **firsts,
    }
    typed = {n: pa.array(v, ARROW_SCHEMA.field(n).type) for n, v in columns.items()}
    every = known | typed
    table = pa.table({name: every[name] for name in ARROW_SCHEMA.names})
    return _summed(table.cast(ARROW_SCHEMA), amounts)


def _rows_of(
    held: Sequence[Judged],
    position: int,
    append_ms: int,
    payload: bytes,
    *,
    every_trade: bool,
    series: SeriesRules,
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of an entry, without append time and partition.

    Of an instrument's trades in one entry only the newest can be published; of equal
    ones it is the last. Its row stands for all of them. Of the trades that are refused
    the first one's letter holds the entry's bytes; the others are counted.
    """
    newest: dict[str, Trade] = {}
    trades: dict[str, list[Trade]] = {}
    not_last: dict[str, list[Trade]] = {}
    has_letter = False
    for number, one in enumerate(held, 1):
        if isinstance(one, Trade) and one.takes_back is not None:
            order, count = (one.time_us, one.seq, position), int(not one.is_trade)
            key = CANCEL_PREFIX + one.isin
            yield (*(key, *order, count, one.to_wire(), CANCELLED, None, None, None),)
            if not one.is_trade:
                continue
        if isinstance(one, Trade):
            trade = series.labelled(one)
            for isin in series.keys_of(trade):
                if every_trade:
                    of_it = [trade]
                    yield (
                        *(_key(trade, isin), trade.time_us, trade.seq, position, 1),
                        *(trade.to_wire(), None, None),
                        *(_first(of_it, position), _amounts(of_it)),
                    )
                elif not trade.updates.last:
                    not_last.setdefault(_key(trade, isin), []).append(trade)
                else:
                    trades.setdefault(isin, []).append(trade)
                    other = newest.get(isin)
                    if other is None or trade.version >= other.version:
                        newest[isin] = trade
        elif isinstance(one, Skipped):
            key = SKIPPED_PREFIX + one.name
            yield key, append_ms * 1000, 0, 0, 1, b"", key, None, None, None
        elif has_letter:
            key = f"{REFUSED_PREFIX}{one.reason}"
            yield key, append_ms * 1000, 0, 0, 1, b"", one.reason, None, None, None
        else:
            has_letter = True
            key, time_us, seq, reason, error = _values(one, position, append_ms)
            if len(held) > 1:
                error = f"trade {number} of {len(held)}: {error}"
            yield key, time_us, seq, position, 1, payload, reason, error, None, None
    for isin, trade in newest.items():
        order, of_it = (trade.time_us, trade.seq, position), trades[isin]
        yield (
            *(isin, *order, len(of_it), trade.to_wire(), None, None),
            *(_first(of_it, position), _amounts(of_it)),
        )
    for key, of_it in not_last.items():
        yield key, 0, 0, position, len(of_it), b"", None, None, None, _amounts(of_it)


def _is_trade(one: object) -> TypeGuard[Trade]:
    return isinstance(one, Trade) and one.is_trade


def _key(trade: Trade, isin: str) -> str:
    return isin if trade.updates.last else NOT_LAST_PREFIX + isin


def _amounts(trades: Iterable[Trade]) -> Amounts | None:
    """Return the amounts of some trades, None if there are none."""
    every = [Amounts.of_trade(t.price, t.size, t.updates) for t in trades]
    return reduce(Amounts.fold, every) if every else None


_First = tuple[int, int, int, str]


def _first(trades: Sequence[Trade], position: int) -> _First | None:
    """Return the columns ``FIRST`` of an entry's trades, None if there are none."""
    of_last = [trade for trade in trades if trade.updates.last]
    if not of_last:
        return None
    first = min(of_last, key=attrgetter("version"))
    return first.time_us, first.seq, position, first.price


def _first_columns(firsts: Sequence[_First | None]) -> dict[str, pa.Array]:
    rows = [first or (None,) * len(FIRST) for first in firsts]
    columns = zip(*rows, strict=True) if rows else [()] * len(FIRST)
    named = zip(FIRST, columns, strict=True)
    return {n: pa.array(values, ARROW_SCHEMA.field(n).type) for n, values in named}


def _summed(table: pa.Table, amounts: Sequence[Amounts | None]) -> pa.Table:
    """Say of each row what is known of its amounts."""
    sums, odd = trade_sums.of_amounts(amounts)
    table = with_columns(table, sums)
    if not odd:
        return table
    rows = table.take(pa.array(odd, pa.int64()))
    exact = [one for place in odd if (one := amounts[place]) is not None]
    return pa.concat_tables([table, _sum_rows(rows, exact)])


_Values = tuple[str, int, int, str | None, str | None]


def _values(judged: InvalidTrade | Trade, position: int, append_ms: int) -> _Values:
    if isinstance(judged, InvalidTrade):
        # A refused trade has no time of its own: its append time goes there.
        key = f"{REFUSED_PREFIX}{position}"
        return key, append_ms * 1000, 0, judged.reason, str(judged)
    if not judged.is_trade:
        key = CANCEL_PREFIX + judged.isin
        return key, judged.time_us, judged.seq, CANCELLED, None
    return _key(judged, judged.isin), judged.time_us, judged.seq, None, None
