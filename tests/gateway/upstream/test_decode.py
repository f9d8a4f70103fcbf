"""Reading what the throttle sent or stored, doubting every byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.stream.board import DEFAULT_WINDOW_MS, Position
from gateway.upstream.decode import decode_state, decode_update
from ingest.redis_keys import FORM
from tests.gateway.samples import EPOCH, SAMSUNG, make_row, make_snapshot
from throttle.contract.snapshot import LastValue

META = {
    b"epoch": b"k3x9",
    b"offset": b"7",
    b"window": b"1773964802000",
    b"form": b"%d" % FORM,
}


def test_a_message_of_the_throttle_is_read() -> None:
    """What was encoded comes back equal."""
    snapshot = make_snapshot(3, make_row(), windows=2)
    assert decode_update(snapshot.encode()) == snapshot


def test_anything_else_is_none() -> None:
    """A message nobody understands is no exception."""
    for message in [
        b"",
        b"garbage",
        b"[]",
        b"5",
        b'{"epoch":"k"}',
        b'{"epoch":5,"offset":1,"window":1,"windows":1,"published":1}',
        b'{"epoch":"k","offset":"1","window":1,"windows":1,"published":1}',
        b'{"epoch":"k","offset":1,"window":1,"windows":0,"published":1}',
        make_snapshot(1).encode() + b"\nKR7005930003 broken",
        pytest.param(make_snapshot(1).encode() + b"\n\xff 1 1 {}", id="no text"),
        1,
    ]:
        assert decode_update(message) is None


@given(st.binary())
def test_no_bytes_raise(message: bytes) -> None:
    """Whatever the bytes are, decoding returns."""
    assert decode_update(message) is None


def test_before_anything_is_published_there_is_no_state() -> None:
    """Neither without a hash nor with one that names no window."""
    assert decode_state({}, {}, {}) is None
    assert decode_state({b"epoch": b"k3x9", b"form": b"%d" % FORM}, {}, {}) is None


def test_the_stored_state_is_read() -> None:
    """Position, window length and values; fields of others are ignored."""
    row = make_row()
    value = b"%b 7 %b" % (row.version, row.body)
    meta = {**META, b"window_ms": b"500", b"window:job": b"x"}
    state = decode_state(meta, {SAMSUNG.encode(): value}, {})
    assert state is not None
    assert state.position == Position(EPOCH, 7, 1773964802000)
    assert state.window_ms == 500
    assert state.values == [LastValue(SAMSUNG, row.version, 7, row.body)]
    assert state.unreadable == []


def test_a_value_that_cannot_be_read_is_left_out_and_named() -> None:
    """One bad value does not cost the others."""
    state = decode_state(META, {b"KR7005930003": b"bad"}, {b"market:X": b"7 {}"})
    assert state is not None
    unreadable = [b"KR7005930003", b"market:X"]
    assert (state.values, state.groups, state.unreadable) == ([], [], unreadable)
    assert state.window_ms == DEFAULT_WINDOW_MS


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({b"offset": b"7", b"window": b"1"}, "no epoch"),
        ({**META, b"offset": b"seven"}, "offset is not a number"),
        ({**META, b"window": b"-1"}, "window is not a number"),
        ({**META, b"form": b"5"}, r"has the form '5', this version has 4: see docs"),
        ({**META, b"form": b"2"}, r"has the form '2', this version has 4: see docs"),
        ({b"epoch": b"k3x9"}, r"has the form '1', this version has 4: see docs"),
    ],
)
def test_a_state_that_does_not_say_where_it_stands_is_refused(
    meta: dict[bytes, bytes], words: str
) -> None:
    """Without a position nothing can be followed."""
    with pytest.raises(ValueError, match=words):
        decode_state(meta, {}, {})
