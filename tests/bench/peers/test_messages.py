"""What each engine publishes, in one form."""

import pytest

from bench.peers.messages import (
    Message,
    Received,
    arrivals,
    read_ours,
    read_peer,
    rows_of,
)
from throttle.contract.snapshot import Row, WindowSnapshot

ISIN = "KR7005930003"
BODY = b'{"isin":"KR7005930003","time":17,"seq":3,"price":199500,"size":1}'


def test_both_forms_say_the_same() -> None:
    """A row is an instrument and the version of its trade."""
    row = Row(ISIN, b"0", b"2", BODY)
    ours = WindowSnapshot("e", 1, 4_000, 2, 5_000_000, (row,)).encode()
    peers = b'{"window":4000,"rows":[%b]}' % BODY
    assert read_ours(ours) == Message(4_000, [(ISIN, (17, 3))])
    assert read_peer(peers) == Message(4_000, [(ISIN, (17, 3))])
    assert Received.of(9.0, ours) == Received(9.0, 4_000, 2, ours)
    assert Received.of(9.0, peers) == Received(9.0, 4_000, 1, peers)


def test_a_message_that_names_no_window_is_refused() -> None:
    with pytest.raises(ValueError, match="says no window"):
        Received.of(9.0, b"hello")


def test_rows_of_a_window_in_parts_are_put_together() -> None:
    parts = [Message(2_000, [("A", (1, 1))]), Message(2_000, [("B", (2, 1))])]
    assert rows_of(parts) == {2_000: {"A": (1, 1), "B": (2, 1)}}


def test_a_message_arrives_for_every_window_it_stands_for() -> None:
    """A window in parts has as many arrivals."""
    received = [
        Received(9.0, 6_000, 3, b""),
        Received(10.0, 8_000, 1, b""),
        Received(11.0, 8_000, 1, b""),
    ]
    assert arrivals(received) == {
        2_000: [9.0],
        4_000: [9.0],
        6_000: [9.0],
        8_000: [10.0, 11.0],
    }
