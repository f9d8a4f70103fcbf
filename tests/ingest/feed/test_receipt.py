"""The receipt of a feed: what was written can be read, anything else is told."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.feed.receipt import InvalidReceipt, Receipt, read_receipt
from ingest.tradelog.contract import AppendTally

numbers = st.integers(0, 2**63 - 1)


@st.composite
def tallies(draw: st.DrawFn) -> AppendTally:
    """Any tally a writer can have."""
    ends = draw(st.none() | st.tuples(numbers, numbers).map(sorted))
    first, last = ends or (None, None)
    return AppendTally(draw(numbers), first, last, draw(numbers))


receipts = st.builds(
    Receipt,
    log_id=st.text(min_size=1),
    started_ms=numbers,
    written_ms=numbers,
    ended=st.booleans(),
    refused=st.dictionaries(st.text(), numbers, max_size=3),
    dropped_at_cap=numbers,
    partitions=st.lists(tallies(), min_size=1, max_size=4).map(tuple),
)


@given(receipts)
def test_what_was_encoded_is_decoded(receipt: Receipt) -> None:
    """Every field comes back as it was."""
    assert read_receipt(receipt.encode()) == receipt


def test_a_receipt_can_be_read_by_people() -> None:
    """It is JSON with a field a line, and says which form it has."""
    receipt = Receipt(
        "kafka:x", 1, 2, True, {}, 0, (AppendTally(3, 0, 2, 1), AppendTally())
    )
    assert orjson.loads(receipt.encode()) == {
        "version": 1,
        "log_id": "kafka:x",
        "started_ms": 1,
        "written_ms": 2,
        "ended": True,
        "refused": {},
        "dropped_at_cap": 0,
        "partitions": [
            {"acknowledged": 3, "first": 0, "last": 2, "in_doubt": 1},
            {"acknowledged": 0, "first": None, "last": None, "in_doubt": 0},
        ],
    }
    assert receipt.encode().count(b"\n") > 10


def changed(**fields: Any) -> bytes:
    """A good receipt with some fields replaced."""
    good = Receipt("id", 1, 2, True, {}, 0, (AppendTally(3, 0, 2, 1),))
    return orjson.dumps({**orjson.loads(good.encode()), **fields})


def partition(**fields: Any) -> list[dict[str, Any]]:
    """A list of one good partition with some fields replaced."""
    return [{"acknowledged": 3, "first": 5, "last": 7, "in_doubt": 0, **fields}]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"nonsense", "Invalid JSON"),
        (b"[]", "Input should be an object"),
        (b"{}", "log_id : Field required"),
        (changed(version=2), "version 2: Input should be 1"),
        (changed(log_id=""), "log_id '': must not be empty"),
        (changed(started_ms=-1), "started_ms -1: must not be below 0"),
        (changed(written_ms=True), "written_ms True: Input should be a valid integer"),
        (changed(refused={"a": "1"}), "refused.a 1: Input should be a valid integer"),
        (changed(partitions=[]), "partitions []: there is one at least"),
        (
            changed(partitions=partition(in_doubt=-1)),
            "partitions.0 acknowledged=3, first=5, last=7, in_doubt=-1: no number may",
        ),
        (
            changed(partitions=partition(first=None)),
            "partitions.0 acknowledged=3, first=None, last=7, in_doubt=0: there",
        ),
        (
            changed(partitions=partition(first=9)),
            "partitions.0 acknowledged=3, first=9, last=7, in_doubt=0: first must not",
        ),
    ],
)
def test_what_cannot_be_read_is_named(raw: bytes, said: str) -> None:
    """The sentence has the field, its value and the rule."""
    with pytest.raises(InvalidReceipt) as caught:
        read_receipt(raw)
    assert str(caught.value).startswith(said)
