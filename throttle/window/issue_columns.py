"""What the issue table says of each row: its columns, and the join without Spark. Pure.

In a job Spark joins (``conflate.py``): the table is small, and every task gets it all.
"""

import pyarrow as pa
import pyarrow.compute as pc

from ingest.issue_table.known_issues import Issues

JOINED = ("is_known", "market", "sector", "prev_close")
"""What a row gets by the join; all is null of an issue that is not in the table."""

SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("is_known", pa.bool_()),
        ("market", pa.string()),
        ("sector", pa.string()),
        ("prev_close", pa.string()),
    ]
)


def issue_columns(issues: Issues) -> pa.Table:
    """Return the table: a row for each issue, its ISIN as ``key``."""
    entries = list(issues)
    columns = {
        "key": [entry.isin for entry in entries],
        "is_known": [True] * len(entries),
        "market": [entry.market for entry in entries],
        "sector": [entry.sector for entry in entries],
        "prev_close": [entry.prev_close for entry in entries],
    }
    return pa.table(columns, schema=SCHEMA)


def join_issues(rows: pa.Table, issues: pa.Table) -> pa.Table:
    """Return rows with the columns of ``JOINED``, by their ``key``.

    It does what Spark's left join does.
    """
    at = pc.index_in(rows["key"], issues["key"])
    for name in JOINED:
        rows = rows.append_column(name, issues[name].take(at))
    return rows
