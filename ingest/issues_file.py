"""PURE: what is known of issues besides their trades, as a file."""

import csv
import io
from collections.abc import Iterable

from ingest.market import Issue

COLUMNS = ("isin", "code", "name", "market", "sector", "prev_close")


def encode_issues(issues: Iterable[Issue]) -> str:
    """Return the issues as CSV with a header, one a line."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(
        (i.isin, i.code, i.name, i.market, i.sector, i.base_price) for i in issues
    )
    return text.getvalue()
