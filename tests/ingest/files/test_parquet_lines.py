"""Rows of Parquet as lines of JSON: every digit, times, what is left out."""

import json
from datetime import date
from decimal import Decimal
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest.files.parquet_lines import read_lines

TIME_NS = 1_764_028_801_123_456_789


def rows(**columns: pa.Array) -> list[dict[str, object]]:
    """Return what the rows of these columns become, numbers as text."""
    file = BytesIO()
    pq.write_table(pa.table(columns), file)
    lines = b"".join(read_lines(file)).splitlines()
    return [json.loads(line, parse_float=str, parse_int=str) for line in lines]


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (pa.array([1, None]), ["1", None]),
        (pa.array([2**64 - 1], pa.uint64()), [str(2**64 - 1)]),
        (pa.array([0.1, float("nan"), 1e-8]), ["0.1", None, "1e-8"]),
        (pa.array([0.1], pa.float32()), ["0.1"]),
        (pa.array([Decimal("71900.10")], pa.decimal128(30, 2)), ["71900.10"]),
        (pa.array(["a", "a"]).dictionary_encode(), ["a", "a"]),
        (
            pa.array([TIME_NS], pa.timestamp("ns", "Asia/Seoul")),
            ["2025-11-25 00:00:01.123456789Z"],
        ),
        (pa.array([1], pa.timestamp("us")), ["1970-01-01 00:00:00.000001"]),
        (pa.array([date(2026, 1, 2)]), ["2026-01-02"]),
        (pa.array([b"abc"]), ["abc"]),
        (pa.array([True]), [True]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else None,
)
def test_a_value_keeps_all_of_its_digits(
    column: pa.Array, texts: list[str | None]
) -> None:
    """No binary fraction stands between."""
    assert [row["x"] for row in rows(x=column)] == texts


@pytest.mark.parametrize(
    "kind",
    [
        pa.large_list(pa.large_string()),
        pa.list_(pa.large_string()),
        pa.list_(pa.string_view()),
        pa.list_(pa.string(), 2),
        pa.list_(pa.dictionary(pa.int32(), pa.large_string())),
    ],
    ids=str,
)
def test_codes_are_lists_however_they_are_written(kind: pa.DataType) -> None:
    """As by Polars, with whose lists sale conditions come."""
    assert rows(c=pa.array([["@", "T"], None], kind)) == [
        {"c": ["@", "T"]},
        {"c": None},
    ]


def test_parts_have_names_with_points_and_codes_stay_lists() -> None:
    """As in JSON; a list of anything else is left out."""
    deep = pa.array([{"px": 1, "of": {"qty": 2}}])
    lists = {"l": pa.array([[1, 2]]), "t": pa.array([["@"]]), "f": pa.array([[0.5]])}
    told = {"d.px": "1", "d.of.qty": "2", "l": ["1", "2"], "t": ["@"]}
    assert rows(d=deep, **lists) == [told]
