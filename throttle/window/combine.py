"""Rows reduced to the latest of each window, key and partition. Pure."""

from collections.abc import Sequence

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

_LATEST = ["append_time", *ORDER, "payload", "reason", "error"]


def combine(table: pa.Table, window_ms: int) -> pa.Table:
    """Reduce rows to one per window, key and partition: the latest, standing for all.

    Rows come and go with the columns of ``ARROW_SCHEMA``. It is done early where it is
    cheap, and may be left out, or done to any part of a batch, without another result.
    """
    table = _with_odd_folded(table, window_ms).combine_chunks()
    oldest_first = _order(table, ORDER)
    # Of trades by themselves the first one is the oldest.
    own = pc.equal(table["first_position"], table["position"])
    are_own = pc.all(own, min_count=0).as_py()
    first_first = oldest_first if are_own else _order(table, FIRST)
    # Nothing is put in order but numbers of rows: most payloads are left behind.
    ranks = {
        "window": windows(table, window_ms),
        "last": pc.inverse_permutation(oldest_first),
        "first": pc.inverse_permutation(first_first),
    }
    numbered = pa.table(
        {**{name: table[name] for name in ("key", "partition", *FOLDED)}, **ranks}
    )
    groups = numbered.group_by(["window", "key", "partition"], use_threads=False)
    totals = groups.aggregate([("last", "max"), *FOLDED.items(), ("first", "min")])
    latest = table.select(_LATEST).take(oldest_first.take(totals["last_max"]))
    firsts = table.select(FIRST).take(first_first.take(totals["first_min"]))
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


def _order(table: pa.Table, columns: Sequence[str]) -> pa.Array:
    """Return the numbers of rows in the order of columns, the least one first."""
    keys = [(name, "ascending") for name in columns]
    return pc.sort_indices(table.select(columns), sort_keys=keys).cast(pa.int64())


def windows(table: pa.Table, window_ms: int) -> pa.ChunkedArray:
    """Return the number of each row's window, by its ``append_time``."""
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
    numbers = windows(odd, window_ms).to_pylist()
    groups = zip(numbers, keys, odd["partition"].to_pylist(), strict=True)
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
