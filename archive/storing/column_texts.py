"""Columns as text, with the digits that were published. Pure."""

import pyarrow as pa
import pyarrow.compute as pc


def exact_digits(rows: pa.Table, name: str) -> pa.ChunkedArray:
    """Return a column of decimals as text, without zeros at their end.

    A column ``<name>_text``, if there is one, has the digits as they were published, or
    those of a number that no decimal holds.
    """
    digits = pc.cast(rows[name], pa.string())
    for pattern in (r"^([0-9]+)\.0*$", r"^([0-9]+\.[0-9]*[1-9])0*$"):
        digits = pc.replace_substring_regex(digits, pattern, r"\1")
    text = f"{name}_text"
    return pc.coalesce(rows[text], digits) if text in rows.column_names else digits
