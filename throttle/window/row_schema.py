"""The columns that a batch travels in: one schema, ten kinds of rows. Pure.

Kinds are told apart by ``key``: a trade (key = its ISIN), a refused trade (key = ``!``
and its position, ``reason`` set, ``seq`` = its bytes; or key = ``!`` and the reason,
without ``error``: those that no letter is kept of), an entry that is no trade (key and
reason = ``SKIPPED_PREFIX`` and its name), size, value and price of a trade that do not
fit into columns (key = ``SUM_PREFIX`` and its position and ISIN, ``trade_sums.py``),
a trade that does not count for the last price (key = ``NOT_LAST_PREFIX`` and its ISIN),
an entry that takes a trade back (key = ``CANCEL_PREFIX`` and its ISIN, reason =
``CANCELLED``; a trade that corrects another one has such a row beside its own, without
trades), and four that a task says of itself (``control_rows.py``). ``trades`` says for
how many trades a row stands, ``trade_sums.FOLDS`` what they come to, ``FIRST`` which of
them is the first one. All go through one aggregation: nothing is counted in a second.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from throttle.window import trade_sums

CUT_KEY = "!cut"
READ_KEY = "!read"
ABANDONED_KEY = "!abandoned"
PUBLISHED_KEY = "!published"
REFUSED_PREFIX = "!"
SKIPPED_PREFIX = "!skipped:"
SUM_PREFIX = "!sum:"
NOT_LAST_PREFIX = "!not_last:"
CANCEL_PREFIX = "!cancel:"
CANCELLED = SKIPPED_PREFIX + "cancel"
"""Under which name entries are counted that are no trades and take one back."""

ARROW_SCHEMA = pa.schema(
    [
        ("append_time", pa.timestamp("us", tz="UTC")),
        ("key", pa.string()),
        ("partition", pa.int32()),
        ("time", pa.int64()),
        ("seq", pa.int64()),
        ("position", pa.int64()),
        ("trades", pa.int64()),
        *((name, pa.int64()) for name in trade_sums.FOLDS),
        ("first_time", pa.int64()),
        ("first_seq", pa.int64()),
        ("first_position", pa.int64()),
        ("first_price", pa.string()),
        ("payload", pa.binary()),
        ("reason", pa.string()),
        ("error", pa.string()),
    ]
)

_SPARK_TYPES = {
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.string(): "string",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.binary(): "binary",
}

SCHEMA = ", ".join(f"{field.name} {_SPARK_TYPES[field.type]}" for field in ARROW_SCHEMA)

FIRST = ("first_time", "first_seq", "first_position", "first_price")
"""The columns of the first one of a row's trades: its order, and its price.

Of trades that do not count for the last price they are null, and of what is no trade.
"""

FOLDED = {"trades": "sum", **trade_sums.FOLDS}
"""The columns that a combined row has of all its rows, and how they fold.

All but the first may be null, which adds nothing.
"""


def with_columns(table: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    """Return the table with these columns in the place of its own."""
    for name, column in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, column)
    return table


def records(table: pa.Table, names: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    """Yield some columns of each row."""
    # Column by column: turning rows into dictionaries takes ten times as long.
    return zip(*(table[name].to_pylist() for name in names), strict=True)
