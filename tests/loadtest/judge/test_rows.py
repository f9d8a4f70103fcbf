"""Frames are read fast, and exactly."""

import json

import pytest

from loadtest.judge.rows import RowReader
from tests.loadtest.frames import A, B, make_item


def test_prices_are_kept_as_they_were_written() -> None:
    """With zeros at the end, and more digits than a double has."""
    head = b'{"type":"update","epoch":"e","offset":1,"window":2,"data":['
    row = b'{"isin":"%b","time":1,"seq":1,"price":%b,"trades":1}'
    reader = RowReader()
    for text in (b"0.30", b"12345678901234567890.10", b"7", b"1e5"):
        other = row % (B.encode(), b"5")
        _, items = reader.read(head + row % (A.encode(), text) + b"," + other + b"]}")
        assert [item[3] for item in items] == [text.decode(), "5"]


def test_rows_that_cannot_be_cut_are_read_as_a_whole() -> None:
    """Nested fields, other orders, spaces, what looks like an end of a row."""
    reader = RowReader()
    odd = [make_item(A, 1, note="},{"), make_item(B, 2, more={"data": [{}, {}]})]
    for separators in ((",", ":"), (", ", ": ")):
        frame = {"data": odd, "type": "update", "offset": 3}
        head, items = reader.read(json.dumps(frame, separators=separators).encode())
        assert (head["type"], head["offset"]) == ("update", 3)
        assert [item[0] for item in items] == [A, B]
        frame = {"type": "update", "offset": 3, "data": odd}
        head, items = reader.read(json.dumps(frame, separators=separators).encode())
        assert [item[2] for item in items] == [1, 2]
    assert reader.read(b'{"type":"snapshot","data":[]}')[1] == ()
    for broken in (b'{"data":[1]}', b"[]", b'{"data":[{]}', b'{"data":[{}]}'):
        with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
            reader.read(broken)
