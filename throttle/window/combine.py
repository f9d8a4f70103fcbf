"""Rows reduced to the latest of each window, key and partition. Pure."""

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.row_sums import Amounts
from throttle.contract.trade_order import ORDER
from throttle.window.row_schema import (
    ARROW_SCHEMA,
    FIRST,
    FOLDED,
    NOT_LAST_PREFIX,
    SUM_PREFIX,
    with_columns,
)
from throttle.window.trade_sums import pack, unpack

_OLDEST_FIRST = [(column, "ascending") for column in ORDER]
_FIRST_FIRST = [(name, "ascending") for name in FIRST]
_LATEST = ["append_time", *ORDER, "payload", "reason", "error"]
_GROUPED = ["append_time", "key", "partition", "position", *FOLDED, *FIRST]


def combine(table: pa.Table, window_ms: int) -> pa.Table:
    """Reduce rows to one per window, key and partition: the latest, standing for all.

    Rows come and go with the columns of ``ARROW_SCHEMA``. It is done early where it is
    cheap, and may be left out, or done to any part of a batch, without another result.
    """
    table = _with_odd_folded(table, window_ms)
    oldest_first = pc.sort_indices(table.select([*ORDER]), sort_keys=_OLDEST_FIRST)
    # Only what is grouped or summed is put in order: most payloads are left behind.
    ordered = table.select(_GROUPED).take(oldest_first)
    window = _windows(ordered, window_ms)
    first, ranked = _by_first(ordered)
    places = oldest_first.cast(pa.int64())
    groups = (
        ordered.append_column("window", window)
        .append_column("first", first)
        .append_column("place", places)
        .group_by(["window", "key", "partition"], use_threads=False)
    )
    totals = groups.aggregate([("place", "last"), *FOLDED.items(), ("first", "min")])
    latest = table.select(_LATEST).take(totals["place_last"])
    firsts = ranked.take(totals["first_min"])
    columns = {
        **{name: totals[name] for name in ("key", "partition")},
        **{name: totals[f"{name}_{how}"] for name, how in FOLDED.items()},
        **{name: firsts[name] for name in FIRST},
        **{name: latest[name] for name in _LATEST},
    }
    # Nobody is shown the trades that do not count for the last price.
    is_not_last = pc.starts_with(columns["key"], NOT_LAST_PREFIX)
    if pc.any(is_not_last).as_py():
        none = pa.scalar(b"", pa.binary())
        columns["payload"] = pc.if_else(is_not_last, none, columns["payload"])
    return pa.table({n: columns[n] for n in ARROW_SCHEMA.names}).cast(ARROW_SCHEMA)


def _by_first(ordered: pa.Table) -> tuple[pa.Array, pa.Table]:
    """Return the rank of each row by its first trade, and the columns in that order.

    ``ordered`` has that order already where each row stands for one trade.
    """
    columns = ordered.select(FIRST)
    every = pa.repeat(pa.scalar(True), len(ordered))
    places = pc.indices_nonzero(every).cast(pa.int64())
    own = pc.equal(columns["first_position"], ordered["position"])
    if pc.all(own, min_count=0).as_py():
        return places, columns
    by_first = pc.sort_indices(columns, sort_keys=_FIRST_FIRST)
    # Where each row went: the order that sorts the places again.
    return pc.sort_indices(by_first).cast(pa.int64()), columns.take(by_first)


def _windows(table: pa.Table, window_ms: int) -> pa.Array:
    length_us = pa.scalar(window_ms * 1000, pa.int64())
    return pc.divide(table["append_time"].cast(pa.int64()), length_us)


def _with_odd_folded(table: pa.Table, window_ms: int) -> pa.Table:
    """Reduce rows of ``SUM_PREFIX`` to one per window, trade's key and partition."""
    is_sum = pc.starts_with(table["key"], SUM_PREFIX)
    if not pc.any(is_sum).as_py():
        return table
    odd = table.filter(is_sum).sort_by("position")
    # The position is before the key of the trade's own row.
    keys = [key.split(":", 2)[2] for key in odd["key"].to_pylist()]
    windows = _windows(odd, window_ms).to_pylist()
    groups = zip(windows, keys, odd["partition"].to_pylist(), strict=True)
    last: dict[tuple[int, str, int], int] = {}
    folded: dict[tuple[int, str, int], Amounts] = {}
    payloads = odd["payload"].to_pylist()
    for row, (group, payload) in enumerate(zip(groups, payloads, strict=True)):
        amounts, before = unpack(payload), folded.get(group)
        folded[group] = amounts if before is None else amounts.fold(before)
        last[group] = row
    # The greatest position of its trades makes a row's key another one's than that of
    # any other piece of the log.
    kept = odd.take(pa.array(last.values(), pa.int64()))
    packed = pa.array(map(pack, folded.values()), pa.binary())
    kept = with_columns(kept, {"payload": packed})
    return pa.concat_tables([table.filter(pc.invert(is_sum)), kept])
