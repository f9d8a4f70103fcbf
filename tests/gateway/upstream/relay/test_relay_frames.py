"""What gateways that follow each other say."""

from typing import Any

import pytest

from gateway.stream.board import Board, Position
from gateway.stream.statuses.status_board import StatusBoard
from gateway.upstream.relay import relay_frames
from gateway.upstream.relay.relay_source import relay_url
from ingest.statuses.status_entry import decode_added
from ingest.statuses.trading_status import TradingStatus
from tests.gateway.samples import (
    EPOCH,
    FIRST_WINDOW,
    HYNIX,
    LISTED,
    SAMSUNG,
    make_row,
    make_snapshot,
)
from throttle.contract.group import Group

HERE = {"epoch": EPOCH, "offset": 3, "window": FIRST_WINDOW}
KOSPI = Group.decode(
    b'{"group":"group:market:KOSPI","window":1773964802000,"instruments":1,'
    b'"advancing":1,"declining":0,"unchanged":0,"unpriced":0,"trades":1,"volume":1,'
    b'"value":1,"mean_change_pct":null}'
)


def full_board() -> Board:
    """Return a board with instruments, a series, a day and a group."""
    board = Board()
    board.replace(Position(EPOCH, 1, FIRST_WINDOW), [])
    day = make_row(HYNIX)._replace(day=b"!1773964800000,1,2,3,4,5")
    series = make_row()._replace(isin=f"{SAMSUNG}@NXT")
    rows = make_row(price="0.30"), day, series
    board.apply(make_snapshot(2, *rows, groups=[KOSPI]))
    return board


def test_a_state_comes_out_as_it_went_in() -> None:
    """Values, days, groups and the place of the stream."""
    board = full_board()
    stored = relay_frames.decode_state(*relay_frames.encode_state(board))
    assert stored is not None
    assert (stored.position, stored.values) == (board.position, board.values())
    assert stored.groups == board.groups.stored()
    assert (stored.window_ms, stored.jobs, stored.chain) == (2_000, 1, None)


def test_of_a_bad_state_the_rest_is_read() -> None:
    """A value and a group that cannot be read are named."""
    head, _ = relay_frames.encode_state(full_board())
    stored = relay_frames.decode_state(head, b"KR7005930003 x\n\n\n\nx y")
    assert stored is not None
    assert stored.unreadable == [b"KR7005930003", b"x y"]


def test_before_the_first_window_there_is_no_state() -> None:
    """Nothing is published: no place, and nothing to read."""
    head, body = relay_frames.encode_state(Board())
    assert relay_frames.decode_state(head, body) is None
    assert relay_frames.position_of(head) == Position()


@pytest.mark.parametrize(
    "head",
    [
        HERE | {"epoch": 7},
        HERE | {"window": "soon"},
        HERE | {"offset": -1},
        HERE | {"offset": True},
    ],
)
def test_a_place_that_is_none_is_refused(head: dict[str, Any]) -> None:
    """Of numbers of another form nothing is believed."""
    with pytest.raises(ValueError, match=r"must be|no position"):
        relay_frames.position_of(head)


@pytest.mark.parametrize("message", [b"", b"[]\n", b'{"type":1}\n', b"{}\nbody"])
def test_a_message_without_a_type_is_refused(message: bytes) -> None:
    """The line is then cut."""
    with pytest.raises(ValueError):  # noqa: PT011 - orjson's own words, too
        relay_frames.split(message)


def test_a_table_comes_out_as_it_went_in() -> None:
    """With the version and the digest, by which clients resume."""
    head, body = relay_frames.split(relay_frames.encode_table(LISTED))
    table = relay_frames.decode_table(head, body)
    assert (table.digest, table.version) == (LISTED.digest, LISTED.version)


def test_statuses_come_out_as_they_went_in() -> None:
    """The current ones, and the newest; with the trade before, and bare."""
    status = TradingStatus(SAMSUNG, "halted", FIRST_WINDOW * 1_000)
    last = make_row().body
    fields = {b"taken": b"7", b"status": status.encode(), b"last": last}
    board, entry = StatusBoard(), decode_added(fields, 1)
    board.epoch = "s1"
    board.put(entry)
    head, body = relay_frames.split(relay_frames.encode_statuses(board))
    entries = relay_frames.decode_entries(body)
    assert (head["current"], head["number"], head["first"]) == (1, 1, 1)
    assert [(e.number, e.text, e.bare, e.status) for e in entries] == [
        (1, entry.text, entry.bare, status)
    ] * 2
    _, body = relay_frames.split(relay_frames.encode_news("s1", [entry]))
    assert [e.text for e in relay_frames.decode_entries(body)] == [entry.text]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://a:8000", "ws://a:8000/v1/relay"),
        ("https://a/ticks/", "wss://a/ticks/v1/relay"),
        ("wss://a/v1/stream", "wss://a/v1/relay"),
    ],
)
def test_a_gateway_is_named_by_any_of_its_addresses(url: str, expected: str) -> None:
    """That of its page, or of its stream."""
    assert relay_url(url) == expected
