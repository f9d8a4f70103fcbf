"""Frames of tick.v1 as bytes."""

import json

from gateway.protocol.key_sets import (
    EVERYTHING,
    NOTHING,
    InstrumentNumbers,
    KeySet,
    KeySets,
)
from gateway.stream import frames
from gateway.stream.board import Position
from tests.gateway.samples import (
    EPOCH,
    FIRST_WINDOW,
    HYNIX,
    NAVER,
    SAMSUNG,
    make_row,
    make_snapshot,
)
from throttle.contract.snapshot import LastValue, Row

HERE = Position(EPOCH, 7, FIRST_WINDOW)
NUMBERS = InstrumentNumbers()


def update(*rows: Row, windows: int = 1) -> frames.Update:
    """Return an update at ``HERE``."""
    return frames.Update(HERE, windows, rows, NUMBERS)


def naming(*isins: str) -> KeySet:
    """Return what watches these instruments."""
    return KeySet(NUMBERS, isins, isins)


def test_a_price_leaves_as_it_came() -> None:
    """Zeros at the end and digits beyond a double are kept in every frame."""
    for price in ("0.30", "199500", "123456789012345678.000000000000000001"):
        row = make_row(price=price)
        wanted = b'"price":%b,' % price.encode()
        assert wanted in (update(row).frame(EVERYTHING) or b"")
        assert wanted in frames.snapshot_frame(HERE, [stored(row)], final=True)
        assert wanted in frames.list_object(HERE, [row.body])
        assert wanted in frames.window_object(make_snapshot(1, row), with_rows=True)


def test_an_update_says_where_it_is_and_what_it_stands_for() -> None:
    """An update of one window has its position and its rows with their trades."""
    frame = update(make_row(trades=37)).frame(EVERYTHING)
    message = json.loads(frame or b"")
    (item,) = message.pop("data")
    assert message == {
        "type": "update",
        "epoch": EPOCH,
        "offset": 7,
        "window": FIRST_WINDOW,
    }
    assert (item["isin"], item["price"], item["trades"]) == (SAMSUNG, 199500, 37)


def test_a_row_of_several_trades_says_what_they_add_up_to() -> None:
    """At its end, every digit as it came; a row of one trade leaves it out."""
    sums = b"37,9170.5,1829145000000000000000000.000000000000000001,199600,0.30"
    row = make_row()._replace(sums=sums)
    wanted = (
        b'"size":40,"trades":37,"volume":9170.5,'
        b'"value":1829145000000000000000000.000000000000000001,'
        b'"high":199600,"low":0.30}]'
    )
    assert wanted in (update(row).frame(EVERYTHING) or b"")
    assert wanted in frames.window_object(make_snapshot(1, row), with_rows=True)
    says = [(sums, b'"trades":%b' % sums) for sums in (b"0", b"1", b"37")]
    # No trade counts for the range.
    says.append((b"2,40,7980000,,", b'"trades":2,"volume":40,"value":7980000'))
    for sums, text in says:
        row = make_row()._replace(sums=sums)
        wanted = b'"size":40,%b}]' % text
        assert wanted in (update(row).frame(EVERYTHING) or b"")


def test_an_update_of_several_windows_says_so() -> None:
    """Windows published together after an outage are announced as merged."""
    frame = update(make_row(), windows=3).frame(EVERYTHING)
    assert json.loads(frame or b"")["merged"] == 3


def test_an_update_that_stands_for_no_whole_window_says_so() -> None:
    """Some of it is held back: its offset is the one that clients had before."""
    assert json.loads(frames.update_frame(HERE, 0, []))["merged"] == 0
    assert "merged" not in json.loads(frames.update_frame(HERE, 1, []))


def test_a_view_gets_its_own_instruments_in_order() -> None:
    """A client gets the rows it watches, none else, sorted by ISIN."""
    rows = [make_row(isin) for isin in (SAMSUNG, NAVER, HYNIX)]
    frame = update(*rows).frame(naming(HYNIX, SAMSUNG))
    assert [i["isin"] for i in json.loads(frame or b"")["data"]] == [HYNIX, SAMSUNG]


def test_equal_key_sets_share_one_frame() -> None:
    """A frame is built once for all clients that watch the same, however often."""
    key_sets = KeySets(NUMBERS)
    pairs = [
        (
            key_sets.move(NOTHING, {SAMSUNG, isin}),
            key_sets.move(NOTHING, {isin, SAMSUNG}),
        )
        for isin in (NAVER, HYNIX)
    ]
    published = update(make_row(SAMSUNG), make_row(HYNIX))
    first = [published.frame(one) for one, _ in pairs]
    assert all(f is published.frame(o) for f, (_, o) in zip(first, pairs, strict=True))
    assert published.frame(EVERYTHING) is published.frame(EVERYTHING)


def test_an_update_without_the_views_instruments_has_no_frame() -> None:
    """Nobody is sent an empty update."""
    other = naming(HYNIX)
    assert update(make_row(SAMSUNG)).frame(other) is None
    assert update().frame(EVERYTHING) is None


def stored(row: Row, day: bytes = b"") -> LastValue:
    """Return a row as the board has it."""
    return LastValue(row.isin, row.version, 1, row.body, day)


def test_an_item_says_its_day_in_a_snapshot_and_where_a_sum_would_go_wrong() -> None:
    """High, low and open are left out where no trade counts for them."""
    text = b"1773964800000,412,91700,18291450000,199900,198700,199000"
    row = make_row()._replace(day=text)
    snapshot = frames.snapshot_frame(HERE, [stored(row, text)], final=True)
    starting = update(row.as_starting()).frame(EVERYTHING) or b""
    for frame in (snapshot, starting):
        assert json.loads(frame)["data"][0]["day"] == {
            "start": 1773964800000,
            "trades": 412,
            "volume": 91700,
            "value": 18291450000,
            "high": 199900,
            "low": 198700,
            "open": 199000,
        }
    assert b'"day"' not in (update(row).frame(EVERYTHING) or b"")
    bare = frames.snapshot_frame(HERE, [stored(row, b"5,1,0,0,,,")], final=True)
    day = json.loads(bare)["data"][0]["day"]
    assert day == {"start": 5, "trades": 1, "volume": 0, "value": 0}


def test_a_snapshot_piece_says_whether_it_is_the_last() -> None:
    """Items of a snapshot stand for no trades; only the last piece is final."""
    piece = json.loads(frames.snapshot_frame(HERE, [stored(make_row())], final=False))
    assert (piece["final"], piece["data"][0]["trades"]) == (False, 0)
    empty = json.loads(frames.snapshot_frame(Position(), [], final=True))
    assert empty == {
        "type": "snapshot",
        "epoch": None,
        "offset": 0,
        "window": None,
        "final": True,
        "data": [],
    }


def test_a_window_for_rest_may_leave_out_its_rows() -> None:
    """The count is there in either case."""
    snapshot = make_snapshot(3, make_row(trades=4), windows=1)
    full = json.loads(frames.window_object(snapshot, with_rows=True))
    assert (full["count"], full["data"][0]["trades"]) == (1, 4)
    del full["data"]
    assert json.loads(frames.window_object(snapshot, with_rows=False)) == full
    assert full["published"] == snapshot.published_us


def test_an_answer_echoes_its_id_if_there_was_one() -> None:
    """Answers to messages without an id have none, and 0 is an id."""
    pong = json.loads(frames.message_frame("pong", server_time=5))
    assert pong == {"type": "pong", "server_time": 5}
    assert json.loads(frames.message_frame("pong", 0, server_time=5))["id"] == 0


def test_a_heartbeat_says_up_to_where_everything_was_sent() -> None:
    assert json.loads(frames.heartbeat_frame(HERE, 9)) == {
        "type": "heartbeat",
        "epoch": EPOCH,
        "offset": 7,
        "window": FIRST_WINDOW,
        "server_time": 9,
    }


def test_an_update_outlives_the_numbering_of_further_instruments() -> None:
    """A slow client's update waits while instruments trade for the first time."""
    numbers = InstrumentNumbers()
    first = frames.Update(HERE, 1, [make_row(HYNIX)], numbers)
    frames.Update(HERE, 1, [make_row(SAMSUNG)], numbers)
    both = KeySet(numbers, (HYNIX, SAMSUNG), (HYNIX, SAMSUNG))
    assert first.count(both) == 1
    assert json.loads(first.frame(both) or b"")["data"][0]["isin"] == HYNIX
