"""What issues are called, as a file."""

import csv
from random import Random

from ingest.issues_file import COLUMNS, encode_issues
from ingest.market import create_issues


def test_every_issue_is_a_line_under_the_header() -> None:
    """What is read back is what was listed, in its order."""
    issues = create_issues(Random(1), 50)
    header, *rows = csv.reader(encode_issues(issues).splitlines())
    assert tuple(header) == COLUMNS
    assert rows == [
        [i.isin, i.code, i.name, i.market, i.sector, str(i.base_price)] for i in issues
    ]
