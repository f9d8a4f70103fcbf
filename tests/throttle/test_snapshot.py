"""The published message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from throttle.snapshot import (
    VERSION_CHARS,
    Keys,
    LastValue,
    Row,
    WindowSnapshot,
    encode_version,
)

numbers = st.tuples(
    st.integers(0, 10**16 - 1), st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1)
)
ROW = Row("KR7005930003", encode_version(1, 2, 3), 37, b'{"price":0.30}')


@given(a=numbers, b=numbers)
def test_versions_compare_as_text_like_the_numbers_do(a: tuple, b: tuple) -> None:
    """Lua compares text, so the text must order as the numbers."""
    assert (encode_version(*a) < encode_version(*b)) == (a < b)
    assert len(encode_version(*a)) == VERSION_CHARS


def test_a_message_survives_the_wire_with_its_price_text() -> None:
    """What is decoded equals what was encoded, to the byte of a price."""
    snapshot = WindowSnapshot("k3x9", 5, 4_000, 1, 4_000_123, (ROW, ROW))
    assert WindowSnapshot.decode(snapshot.encode()) == snapshot


def test_an_empty_window_is_a_message_without_rows() -> None:
    """A quiet window is published too."""
    snapshot = WindowSnapshot("k3x9", 5, 4_000, 1, 4_000_123, ())
    assert snapshot.encode().count(b"\n") == 0
    assert WindowSnapshot.decode(snapshot.encode()) == snapshot


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"garbage",
        b"[]",
        b'{"epoch":"a"}',
        b'{"epoch":"a","offset":1,"window":2,"windows":1,"published":3}\nx',
        b'{"epoch":"a","offset":1,"window":2,"windows":1,"published":3}\na b c d',
    ],
)
def test_a_foreign_message_is_a_value_error(message: bytes) -> None:
    """Whatever comes over the channel, there is one kind of error."""
    with pytest.raises(ValueError):  # noqa: PT011 - the contract is the type
        WindowSnapshot.decode(message)


def test_a_last_value_is_decoded_from_its_field() -> None:
    """The table holds version, offset and the row's bytes."""
    value = encode_version(1, 2, 3) + b' 17 {"a": "b c"}'
    decoded = LastValue.decode(b"KR7005930003", value)
    assert decoded == LastValue(
        "KR7005930003", encode_version(1, 2, 3), 17, b'{"a": "b c"}'
    )


def test_every_key_starts_with_the_namespace() -> None:
    """Two streams share a server by their namespaces, two jobs a stream."""
    keys = Keys("krx")
    names = [keys.meta, keys.last, keys.windows, keys.updates]
    for job in ("throttle", "other"):
        names += [keys.lease(job), keys.ledger(job), keys.batches(job), keys.dead(job)]
    assert all(name.startswith("krx:") for name in names)
    assert len(set(names)) == len(names)
