"""Rows that a task says of itself: its cuts, what it read, gave up, published. Pure.

What they say is their payload, JSON, and ``trades``, the entries that were read. Of
other columns only key, partition, and the window that ``append_time`` is in, count.
"""

from collections.abc import Collection
from typing import Any

import orjson
import pyarrow as pa

from throttle.contract.cut import Cut
from throttle.contract.ledger import NOTHING, Turnover
from throttle.window.row_schema import (
    ABANDONED_KEY,
    ARROW_SCHEMA,
    CUT_KEY,
    PUBLISHED_KEY,
    READ_KEY,
)


def cut_row(
    start: Cut, end: Cut, read_ms: int = 0, servers: Collection[str] = ()
) -> pa.Table:
    """Return the row (``ARROW_SCHEMA``) that carries the cuts of a task.

    ``end`` is of the partitions that the task has read, the first of which is the row's
    own. ``read_ms`` is when it had read them, by its machine's clock, ``servers`` are
    those that it has read them from.
    """
    cuts = {
        "start": start.to_offset(),
        "end": end.to_offset(),
        "read_ms": read_ms,
        "servers": sorted(servers),
    }
    return _marker(CUT_KEY, end.partitions[0], end.end_ms, orjson.dumps(cuts))


def abandoned_row(end_ms: int) -> pa.Table:
    """Return the row (``ARROW_SCHEMA``) that says that a task has given up."""
    return _marker(ABANDONED_KEY, 0, end_ms, b"")


def published_row(partition: int, end_ms: int, published: bytes) -> pa.Table:
    """Return the row (``ARROW_SCHEMA``) of a window that its task has published."""
    return _marker(PUBLISHED_KEY, partition, end_ms, published)


def read_row(
    partition: int,
    entries: int,
    blanks: int,
    end: Cut,
    extra: int = 0,
    turnover: Turnover = NOTHING,
) -> pa.Table:
    """Return the row (``ARROW_SCHEMA``) that says how much was read of a partition.

    ``blanks`` are positions without an entry, ``extra`` the trades beyond the first of
    an entry, ``turnover`` what its trades come to.
    """
    # As text: their numbers may have more digits than orjson takes.
    payload = orjson.dumps([blanks, extra, *map(str, turnover)])
    return _marker(READ_KEY, partition, end.end_ms, payload, entries)


def decode_cuts(payload: bytes) -> tuple[Cut, Cut, int, frozenset[str]]:
    """Decode the payload of a cut row: start, end, when and where the task had read."""
    cuts = orjson.loads(payload)
    start, end = Cut.from_offset(cuts["start"]), Cut.from_offset(cuts["end"])
    return start, end, cuts["read_ms"], frozenset(cuts["servers"])


def decode_read(payload: bytes) -> tuple[int, int, Turnover]:
    """Decode the payload of a read row: blanks, extra trades, what was traded."""
    blanks, extra, *turnover = orjson.loads(payload)
    return blanks, extra, Turnover(*map(int, turnover))


def _marker(
    key: str, partition: int, end_ms: int, payload: bytes, trades: int = 0
) -> pa.Table:
    row: dict[str, Any] = dict.fromkeys(ARROW_SCHEMA.names)
    row |= {"append_time": (end_ms - 1) * 1000, "key": key, "partition": partition}
    row |= {"time": 0, "seq": 0, "position": 0, "trades": trades, "payload": payload}
    columns_of_one = {name: [value] for name, value in row.items()}
    return pa.table(columns_of_one, schema=ARROW_SCHEMA)
