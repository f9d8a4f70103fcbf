"""From log entries to Spark's columns."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from ingest.trade import Trade
from ingest.tradelog.contract import Chunk
from tests.speedups import BOTH_WAYS
from throttle.window.checked_rows import joined, trade_rows
from throttle.window.combine import combine
from throttle.window.row_schema import (
    ARROW_SCHEMA,
)

RowsOf = Callable[..., pa.Table]

TRADE = Trade("KR7005930003", 1_773_964_801_566_788, 7, "199400", "918", {"side": "B"})
APPENDED_MS = TRADE.time_us // 1000 + 5
W = 2_000
LATER_MS = 2 * APPENDED_MS
"""The end of a batch that holds whatever is tested here."""


def make_chunk(*payloads: bytes, append_ms: int = APPENDED_MS) -> Chunk:
    """Make the entries of one append, at positions 42, 43, ..."""
    return Chunk(
        pa.array(range(42, 42 + len(payloads)), pa.int64()),
        pa.array([append_ms] * len(payloads), pa.int64()),
        pa.array(payloads, pa.binary()),
        upto=41 + len(payloads),
    )


@pytest.fixture(params=BOTH_WAYS)
def rows_of(request: pytest.FixtureRequest) -> RowsOf:
    """What checks chunks, with and without the compiled package."""
    return partial(trade_rows, speedups=request.param)


def row_of(
    rows_of: RowsOf,
    payload: bytes,
    append_ms: int = APPENDED_MS,
    previous: int = 0,
    end: int = LATER_MS,
) -> Any:
    """Return the one row of one entry."""
    chunk = make_chunk(payload, append_ms=append_ms)
    table = rows_of(chunk, 3, previous, end, 5_000)
    assert table.schema == ARROW_SCHEMA
    [row] = table.to_pylist()
    return row


def test_a_straggler_counts_as_appended_after_the_cut(rows_of: RowsOf) -> None:
    """Its window is the first one of the batch that reads it, valid or refused."""
    for payload in (TRADE.to_wire(), b"not json"):
        row = row_of(rows_of, payload, APPENDED_MS, previous=APPENDED_MS + 1_000)
        assert row["append_time"].timestamp() == (APPENDED_MS + 1_000) / 1000


def test_an_entry_stamped_past_the_cut_counts_just_before_it(rows_of: RowsOf) -> None:
    """A writer's stamp does not move it into a window that is not published yet."""
    for payload in (TRADE.to_wire(), b"not json"):
        row = row_of(rows_of, payload, APPENDED_MS + 3_000, end=APPENDED_MS + 1_000)
        assert row["append_time"].timestamp() == (APPENDED_MS + 999) / 1000
    assert row["time"] == (APPENDED_MS + 999) * 1000


def test_an_entry_stamped_past_the_cut_cannot_be_ahead_of_it(rows_of: RowsOf) -> None:
    """A trade's time is compared with the cut, if its stamp is beyond: nobody can let
    a trade from 2099 in by stamping its entry so.
    """
    assert (
        row_of(rows_of, TRADE.to_wire(), 2**50, end=APPENDED_MS - 5_003)["reason"]
        is None
    )
    late = row_of(rows_of, TRADE.to_wire(), 2**50, end=APPENDED_MS - 5_004)
    assert late["reason"] == "future_time"


def test_a_stamp_of_any_size_is_no_trouble(rows_of: RowsOf) -> None:
    """A topic lets its producers stamp what they like, even nothing (-1)."""
    for stamp in (2**63 - 1, -1):
        row = row_of(rows_of, b"x", stamp, previous=APPENDED_MS, end=APPENDED_MS + 1)
        assert row["append_time"].timestamp() == APPENDED_MS / 1000


def by_line(payload: bytes) -> dict[str, str]:
    """Decode a line; the price is what is after the last space."""
    if payload.startswith(b"?"):
        raise ValueError("is a riddle")
    fields = ("isin", "time", "seq", "size", "price")
    return dict(zip(fields, payload.decode().split(" "), strict=True))


def test_a_decoded_trade_goes_on_in_the_project_s_own_form(rows_of: RowsOf) -> None:
    """Who publishes it need not know the decoder; what is refused keeps its bytes."""
    line = f"{TRADE.isin} {TRADE.time_us} 7 918 199400".encode()
    wire = Trade(TRADE.isin, TRADE.time_us, 7, "199400", "918").to_wire()
    chunk = make_chunk(line, b"?", wire, b"")
    table = rows_of(chunk, 3, 0, LATER_MS, 5_000, by_line)
    assert table.schema == ARROW_SCHEMA
    good, riddle, json, empty = table.to_pylist()
    same = rows_of(make_chunk(wire), 3, 0, LATER_MS, 5_000).to_pylist()
    assert [good] == same
    assert (riddle["key"], riddle["payload"]) == ("!43", b"?")
    assert riddle["reason"] == "not_decoded"
    assert riddle["error"].endswith("ValueError: is a riddle")
    assert (json["reason"], json["payload"]) == ("not_decoded", wire)
    assert (empty["reason"], empty["payload"]) == ("empty", b"")


def test_a_decoded_trade_is_held_to_the_same_rules(rows_of: RowsOf) -> None:
    """Its window and its time are judged as those of any other."""
    line = f"{TRADE.isin} {TRADE.time_us} 7 918 199400".encode()
    end_ms = APPENDED_MS - 5_005
    [late] = rows_of(make_chunk(line), 3, 0, end_ms, 5_000, by_line).to_pylist()
    assert (late["reason"], late["payload"]) == ("future_time", line)
    assert late["append_time"].timestamp() == (end_ms - 1) / 1000
    none = rows_of(make_chunk(), 3, 0, LATER_MS, 5_000, by_line)
    assert (none.num_rows, none.schema) == (0, ARROW_SCHEMA)


def test_no_entries_make_no_rows_with_all_types(rows_of: RowsOf) -> None:
    """Spark checks the types of a batch without rows too."""
    table = rows_of(make_chunk(), 3, 0, LATER_MS, 5_000)
    assert table.num_rows == 0
    assert table.schema == ARROW_SCHEMA
    assert combine(table, W).schema == ARROW_SCHEMA


def test_an_entry_over_the_limit_is_not_decoded(rows_of: RowsOf) -> None:
    """Whoever decodes it: the size alone refuses it."""

    def decoder(payload: bytes) -> dict[str, Any]:
        raise AssertionError(payload)

    wire = TRADE.to_wire()
    for decode in (decoder, None):
        table = rows_of(make_chunk(wire), 3, 0, LATER_MS, 5_000, decode, len(wire) - 1)
        assert table["reason"].to_pylist() == ["too_large"]
    table = rows_of(make_chunk(wire), 3, 0, LATER_MS, 5_000, None, len(wire))
    assert table["reason"].to_pylist() == [None]


def test_chunks_of_several_partitions_are_checked_as_one(rows_of: RowsOf) -> None:
    """An entry keeps its partition, be it valid, refused or out of form."""
    chunks = [
        (7, make_chunk(TRADE.to_wire(), b"x")),
        (2, make_chunk()),
        (0, make_chunk(b"", TRADE.to_wire().replace(b"}", b" }"))),
    ]
    together = rows_of(*joined(chunks), 0, LATER_MS, 5_000).to_pylist()
    apart = [
        row
        for partition, chunk in chunks
        for row in rows_of(chunk, partition, 0, LATER_MS, 5_000).to_pylist()
    ]

    def place(row: dict[str, Any]) -> tuple[int, int]:
        return row["partition"], row["position"]

    assert sorted(together, key=place) == sorted(apart, key=place)
    assert {row["partition"] for row in together} == {7, 0}
