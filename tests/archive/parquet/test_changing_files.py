"""Files that are merged while somebody reads them, and an instrument's rows in them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archive.parquet.changing_files import ATTEMPTS, ChangingFiles, steadily

ROWS = pa.table({"isin": ["A", "A", "B", "C"], "trades": [1, 2, 3, 4]})


def test_a_question_is_asked_anew_while_files_go() -> None:
    """A few times; what is gone for good is said."""
    asked: list[int] = []

    def read(gone: int) -> str:
        asked.append(gone)
        if len(asked) <= gone:
            raise FileNotFoundError("merged")
        return "read"

    assert steadily(read)(ATTEMPTS - 1) == "read"
    assert len(asked) == ATTEMPTS
    asked.clear()
    with pytest.raises(FileNotFoundError, match="merged"):
        steadily(read)(ATTEMPTS)
    assert len(asked) == ATTEMPTS


def test_the_rows_of_an_instrument_are_found_in_whatever_groups_they_are(
    tmp_path: Path,
) -> None:
    """None where the file's own statistics say that there are none."""
    file = tmp_path / "rows.parquet"
    pq.write_table(ROWS, file, row_group_size=1)
    files = ChangingFiles(tmp_path, ROWS.schema)
    for isin, trades in (("A", [1, 2]), ("C", [4])):
        found = files.rows_of_instrument(file, isin)
        assert found is not None
        assert found["trades"].to_pylist() == trades
    few = ChangingFiles(tmp_path, ROWS.select(["isin"]).schema)
    only = few.rows_of_instrument(file, "B")
    assert only is not None
    assert only.column_names == ["isin"]
    assert files.rows_of_instrument(file, "D") is None
