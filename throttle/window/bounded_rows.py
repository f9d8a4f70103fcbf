"""Bounds of what others may make long or many: refused trades, and names. Pure."""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.dead_letter import LETTERS_PER_BATCH, pack
from throttle.window.decoder import MOST_NAMES, OTHER
from throttle.window.row_schema import REFUSED_PREFIX, SKIPPED_PREFIX, with_columns


def bound_letters(
    table: pa.Table, kept: Counter[int], most: int = LETTERS_PER_BATCH
) -> pa.Table:
    """Cut what is long of refused trades, and keep a letter of so many a partition.

    ``kept`` counts them by partition, from chunk to chunk. Of the rest a row says how
    many there are, once the table is combined. In a partition the first ones count.
    """
    if table["error"].null_count == len(table):
        return table
    # Without an error no letter is kept in any case.
    is_refused = pc.is_valid(table["error"])
    refused = table.filter(is_refused).sort_by("position")
    has_room = []
    for partition in refused["partition"].to_pylist():
        has_room.append(kept[partition] < most)
        kept[partition] += has_room[-1]
    mask = pa.array(has_room, pa.bool_())
    letters, others = refused.filter(mask), refused.filter(pc.invert(mask))
    payloads = letters["payload"].to_pylist()
    none = pa.repeat(pa.scalar(0, pa.int64()), len(others))
    packed = {
        "seq": pa.array(map(len, payloads), pa.int64()),
        "payload": pa.array(map(pack, payloads), pa.binary()),
    }
    counted = {
        "key": pc.binary_join_element_wise(REFUSED_PREFIX, others["reason"], ""),
        "position": none,
        "payload": pa.repeat(pa.scalar(b"", pa.binary()), len(others)),
        "error": pa.nulls(len(others), pa.string()),
    }
    return pa.concat_tables(
        [
            table.filter(pc.invert(is_refused)),
            with_columns(letters, packed),
            with_columns(others, counted),
        ]
    )


def bound_names(table: pa.Table, names: set[str], most: int = MOST_NAMES) -> pa.Table:
    """Count entries that are no trades by so many ``names``, the others under one.

    ``names`` has those that were met before, from chunk to chunk.
    """
    is_skipped = pc.starts_with(table["key"], SKIPPED_PREFIX)
    if not pc.any(is_skipped).as_py():
        return table
    for key in pc.unique(table["key"].filter(is_skipped)).to_pylist():
        if len(names) < most:
            names.add(key)
    is_odd = pc.and_(is_skipped, pc.invert(pc.is_in(table["key"], pa.array([*names]))))
    other = pa.scalar(SKIPPED_PREFIX + OTHER, pa.string())
    columns = {n: pc.if_else(is_odd, other, table[n]) for n in ("key", "reason")}
    return with_columns(table, columns)
