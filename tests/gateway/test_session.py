"""One client's session: the keys it holds and the answer to each message."""

import json
from typing import Any

import pytest

from gateway.board import Board, Position
from gateway.frames import Update
from gateway.protocol import BadMessage, Subscribe
from gateway.session import Session
from tests.gateway.samples import (
    EPOCH,
    HYNIX,
    NAVER,
    SAMSUNG,
    make_board,
    make_isins,
    make_row,
    make_session,
    make_snapshot,
)
from throttle.snapshot import Row


def say(session: Session, now_s: float = 0.0, **message: Any) -> dict[str, Any]:
    """Send a message and return the answer."""
    answer: dict[str, Any] = json.loads(session.answer(json.dumps(message), now_s, 55))
    return answer


def drain(session: Session) -> list[dict[str, Any]]:
    """Return every frame the session is due."""
    due = []
    while (frame := session.next_frame()) is not None:
        due.append(json.loads(frame))
    return due


def publish(board: Board, session: Session, *rows: Row) -> bool:
    """Put an update on the board and offer it."""
    news = board.apply(make_snapshot(board.position.offset + 1, *rows))
    return session.offer(Update(board.complete, news.windows, news.rows))


def isins(frame: dict[str, Any]) -> list[str]:
    """Return the issues in a frame."""
    return [item["isin"] for item in frame["data"]]


def test_a_subscribe_is_acknowledged_key_by_key() -> None:
    """Good keys are held, bad ones come back with the reason."""
    session = make_session(make_board())
    answer = say(session, op="subscribe", id=1, keys=[SAMSUNG, "KR7005930004"])
    assert answer == {
        "type": "ack",
        "id": 1,
        "op": "subscribe",
        "accepted": [SAMSUNG],
        "rejected": [
            {"key": "KR7005930004", "code": "bad_isin", "message": "check digit is 3"}
        ],
        "count": 1,
        "min_interval_ms": 2000,
        "resumed": False,
    }


@pytest.mark.parametrize(
    ("wanted_ms", "granted_ms"),
    [(0, 500), (1, 500), (500, 500), (501, 1_000), (60_001, 60_000), (2**62, 60_000)],
)
def test_the_interval_granted_is_whole_windows(wanted_ms: int, granted_ms: int) -> None:
    """Never shorter than asked for, but a minute is the longest."""
    board = make_board()
    board.window_ms = 500
    session = make_session(board)
    answer = say(session, op="subscribe", keys=["*"], min_interval_ms=wanted_ms)
    assert answer["min_interval_ms"] == granted_ms


def test_a_longer_interval_merges_windows() -> None:
    """Updates come at the boundaries of intervals, with the newest of each."""
    board = make_board(make_row(SAMSUNG))
    session = make_session(board)
    say(session, op="subscribe", keys=["*"], min_interval_ms=6_000)
    [snapshot] = drain(session)
    frames: list[dict[str, Any]] = []
    for number in range(2, 10):
        is_due = publish(board, session, make_row(HYNIX, seq=number, trades=number))
        new = drain(session)
        assert is_due == bool(new)
        frames += new
    intervals = [frame["window"] // 6_000 for frame in frames]
    assert intervals == sorted(set(intervals))
    assert len(frames) >= 2
    assert [frame["merged"] for frame in frames[1:]] == [3] * len(frames[1:])
    assert frames[-1]["data"][0]["trades"] == sum(
        range(frames[-1]["offset"] - 2, frames[-1]["offset"] + 1)
    )
    assert snapshot["final"]


def test_what_is_held_back_is_not_passed_over_on_resume() -> None:
    """A heartbeat's position is that of what was sent, not of what was published."""
    board = make_board(make_row(SAMSUNG))
    session = make_session(board)
    say(session, op="subscribe", keys=["*"], min_interval_ms=60_000)
    drain(session)
    before = session.position()
    publish(board, session, make_row(HYNIX))
    assert drain(session) == []
    assert session.position().offset == before.offset < board.position.offset


def test_the_newest_subscribe_decides_the_interval() -> None:
    """It holds for the whole connection; without the field it is one window."""
    board = make_board()
    session = make_session(board)
    say(session, op="subscribe", keys=[SAMSUNG], min_interval_ms=60_000)
    answer = say(session, op="subscribe", keys=[HYNIX])
    assert answer["min_interval_ms"] == board.window_ms
    drain(session)
    assert publish(board, session, make_row(SAMSUNG))


def test_a_snapshot_follows_a_subscribe_and_updates_follow_it() -> None:
    """The snapshot holds the stored value, the update what came later."""
    board = make_board(make_row(SAMSUNG, price="1.50"))
    session = make_session(board)
    say(session, op="subscribe", keys=[SAMSUNG, NAVER])
    publish(board, session, make_row(NAVER, seq=2, trades=4))
    snapshot, update = drain(session)
    assert (snapshot["type"], snapshot["final"], isins(snapshot)) == (
        "snapshot",
        True,
        [SAMSUNG],
    )
    assert (update["type"], isins(update)) == ("update", [NAVER])
    assert update["data"][0]["trades"] == 4
    assert update["offset"] == board.position.offset


def test_a_snapshot_is_cut_into_pieces() -> None:
    """Pieces hold at most the configured number of items and no issue twice."""
    many = make_isins(7)
    board = make_board(*(make_row(isin) for isin in many))
    session = make_session(board, snapshot_items=3)
    say(session, op="subscribe", keys=["*"])
    pieces = drain(session)
    assert [len(p["data"]) for p in pieces] == [3, 3, 1]
    assert [p["final"] for p in pieces] == [False, False, True]
    assert [isin for piece in pieces for isin in isins(piece)] == many


def test_a_client_may_do_without_a_snapshot() -> None:
    """Then it gets what changes from now on."""
    board = make_board(make_row(SAMSUNG))
    session = make_session(board)
    answer = say(
        session,
        op="subscribe",
        keys=["*"],
        snapshot=False,
        since={"epoch": EPOCH, "offset": 0},
    )
    assert answer["resumed"] is False
    assert drain(session) == []
    publish(board, session, make_row(HYNIX))
    assert [isins(frame) for frame in drain(session)] == [[HYNIX]]


def test_a_subscribe_of_bad_keys_alone_gets_no_snapshot() -> None:
    """Nothing was accepted, so nothing follows."""
    session = make_session(make_board(make_row()))
    assert say(session, op="subscribe", keys=["nope"])["count"] == 0
    assert drain(session) == []


@pytest.mark.parametrize("keys", [["*"], [SAMSUNG, HYNIX, NAVER]])
def test_a_returning_client_gets_what_changed(keys: list[str]) -> None:
    """With a position of this epoch the snapshot holds only what came after it."""
    board = make_board(make_row(SAMSUNG), offset=1)
    board.apply(make_snapshot(2, make_row(HYNIX)))
    session = make_session(board)
    answer = say(
        session, op="subscribe", keys=keys, since={"epoch": EPOCH, "offset": 1}
    )
    assert answer["resumed"] is True
    assert [isins(frame) for frame in drain(session)] == [[HYNIX]]


@pytest.mark.parametrize(
    "since", [{"epoch": "gone", "offset": 1}, {"epoch": EPOCH, "offset": 36}]
)
def test_a_position_that_says_nothing_here_gets_everything(
    since: dict[str, Any],
) -> None:
    """Another epoch or an offset far from here: the full truth, never a part."""
    session = make_session(make_board(make_row(SAMSUNG), offset=5))
    answer = say(session, op="subscribe", keys=["*"], since=since)
    assert answer["resumed"] is False
    assert [isins(frame) for frame in drain(session)] == [[SAMSUNG]]


def test_a_slow_client_gets_one_update_with_the_newest_values() -> None:
    """Two windows not yet sent become one frame that says so."""
    board = make_board()
    session = make_session(board)
    say(session, op="subscribe", keys=[SAMSUNG])
    drain(session)
    publish(board, session, make_row(price="1.10", seq=2, trades=3))
    publish(board, session, make_row(price="1.20", seq=3, trades=4))
    (frame,) = drain(session)
    assert (frame["merged"], frame["offset"]) == (2, board.position.offset)
    assert (frame["data"][0]["price"], frame["data"][0]["trades"]) == (1.2, 7)


def test_more_keys_than_the_limit_change_nothing() -> None:
    """The error says the limit, what is held and what was asked for."""
    one, two, three, four = make_isins(4)
    session = make_session(make_board(), max_keys=3)
    say(session, op="subscribe", keys=[one, two])
    answer = say(session, op="subscribe", id=7, keys=[two, three, four])
    assert answer == {
        "type": "error",
        "id": 7,
        "code": "key_limit",
        "message": "3 keys a connection; you hold 2 and asked for 2 more",
    }
    assert say(session, op="list")["accepted"] == [one, two]


def test_bad_keys_do_not_count_towards_the_limit() -> None:
    """A client may ask for as many keys as fit, whatever else it asks for."""
    session = make_session(make_board(), max_keys=2)
    answer = say(session, op="subscribe", keys=[SAMSUNG, "nope"])
    assert (answer["type"], answer["count"]) == ("ack", 1)
    answer = say(session, op="subscribe", keys=[HYNIX, "nope"])
    assert (answer["type"], answer["count"]) == ("ack", 2)
    assert say(session, op="subscribe", keys=[NAVER])["code"] == "key_limit"


def test_a_quick_start_is_bound_by_the_limit_too() -> None:
    """Keys in the address are a subscribe like any other."""
    session = make_session(make_board(), max_keys=1)
    with pytest.raises(BadMessage, match="1 keys a connection"):
        session.subscribe(Subscribe(None, (SAMSUNG, HYNIX)))


def test_unsubscribing_drops_keys_and_what_was_due() -> None:
    """A key that was not held is named, the others are dropped at once."""
    board = make_board()
    session = make_session(board)
    say(session, op="subscribe", keys=[SAMSUNG, HYNIX], snapshot=False)
    publish(board, session, make_row(SAMSUNG), make_row(HYNIX))
    answer = say(session, op="unsubscribe", id=2, keys=[SAMSUNG, NAVER])
    assert answer == {
        "type": "ack",
        "id": 2,
        "op": "unsubscribe",
        "accepted": [SAMSUNG],
        "rejected": [
            {"key": NAVER, "code": "unknown_key", "message": "you do not hold it"}
        ],
        "count": 1,
    }
    assert [isins(frame) for frame in drain(session)] == [[HYNIX]]


def test_giving_up_everything_keeps_the_keys_named_before() -> None:
    """``*`` is a key of its own beside the others."""
    board = make_board()
    session = make_session(board)
    say(session, op="subscribe", keys=[SAMSUNG, "*"], snapshot=False)
    say(session, op="unsubscribe", keys=["*"])
    assert not publish(board, session, make_row(HYNIX))
    assert publish(board, session, make_row(SAMSUNG))


def test_an_update_taken_back_before_it_was_sent_leaves_nothing() -> None:
    """A frame without items is never sent."""
    board = make_board()
    session = make_session(board)
    say(session, op="subscribe", keys=[SAMSUNG], snapshot=False)
    publish(board, session, make_row(SAMSUNG))
    say(session, op="unsubscribe", keys=[SAMSUNG])
    assert drain(session) == []


def test_list_tells_what_is_held() -> None:
    """In the order of keys."""
    session = make_session(make_board())
    say(session, op="subscribe", keys=[SAMSUNG, "*", HYNIX])
    answer = say(session, op="list", id="x")
    assert (answer["id"], answer["op"], answer["count"]) == ("x", "list", 3)
    assert (answer["accepted"], answer["rejected"]) == (["*", HYNIX, SAMSUNG], [])


def test_a_ping_is_answered_with_the_time() -> None:
    """The time of day is that of this process."""
    session = make_session(make_board())
    assert say(session, op="ping", id=9) == {"type": "pong", "id": 9, "server_time": 55}


def test_a_bad_message_is_answered() -> None:
    """Whatever is wrong with it, there is an error and the session goes on."""
    session = make_session(make_board())
    assert json.loads(session.answer("{", 0.0, 55))["code"] == "bad_json"
    assert say(session, op="nonsense", id=4)["id"] == 4
    assert say(session, op="ping")["type"] == "pong"


def test_messages_that_come_too_fast_are_refused_with_a_wait() -> None:
    """The refusal has the id and the time to wait; after that all is well."""
    session = make_session(make_board(), ops_burst=1, ops_per_second=4)
    say(session, op="ping")
    assert say(session, op="ping", id=3) == {
        "type": "error",
        "id": 3,
        "code": "rate_limited",
        "message": "more than 4 messages a second",
        "retry_after_ms": 250,
    }
    assert say(session, now_s=0.25, op="ping")["type"] == "pong"


def test_another_epoch_sends_everything_held_anew() -> None:
    """The client gets the new truth in full, with the new epoch."""
    board = make_board(make_row(SAMSUNG, seq=9))
    session = make_session(board)
    say(session, op="subscribe", keys=[SAMSUNG])
    publish(board, session, make_row(SAMSUNG, seq=10))
    board.replace(Position("new", 0, 1), [])
    board.apply(make_snapshot(1, make_row(SAMSUNG, seq=1), epoch="new"))
    session.restart()
    (frame,) = drain(session)
    assert (frame["type"], frame["epoch"], frame["offset"]) == ("snapshot", "new", 1)
    assert frame["data"][0]["seq"] == 1


def test_another_epoch_is_nothing_to_a_client_without_keys() -> None:
    """It asked for nothing and gets nothing."""
    session = make_session(make_board(make_row()))
    session.restart()
    assert drain(session) == []


def test_a_client_that_shows_a_token_in_vain_learns_it() -> None:
    """Where none is needed, the answer says so and nothing ends."""
    session = make_session(make_board())
    answer = say(session, op="auth", id=0, token="t")
    assert answer["code"] == "bad_request"
    assert answer["message"] == "op: no authentication is configured"
    assert session.ending is None


def test_a_client_that_has_seen_more_waits() -> None:
    """Never backwards: the other gateway was ahead, this one has to catch up first."""
    board = make_board(make_row(SAMSUNG), make_row(HYNIX), offset=5)
    session = make_session(board)
    since = {"epoch": EPOCH, "offset": 7}
    answer = say(session, op="subscribe", keys=["*"], since=since)
    assert (answer["resumed"], answer["count"]) == (True, 1)
    assert drain(session) == []
    assert not publish(board, session, make_row(SAMSUNG, seq=6))
    assert drain(session) == []
    assert publish(board, session, make_row(SAMSUNG, seq=7))
    [snapshot] = drain(session)
    assert (snapshot["type"], snapshot["offset"], snapshot["data"]) == (
        "snapshot",
        7,
        [],
    )
    assert publish(board, session, make_row(HYNIX, seq=8))
    [update] = drain(session)
    assert (update["offset"], isins(update)) == (8, [HYNIX])


def test_what_a_client_missed_while_it_waited_is_sent() -> None:
    """Never lost: several windows at once may take the gateway past the client."""
    board = make_board(make_row(SAMSUNG), offset=5)
    session = make_session(board)
    say(session, op="subscribe", keys=[SAMSUNG], since={"epoch": EPOCH, "offset": 6})
    say(session, op="subscribe", keys=[NAVER])
    drain(session)
    news = board.apply(make_snapshot(8, make_row(SAMSUNG, seq=8), make_row(NAVER)))
    assert session.offer(Update(board.complete, news.windows, news.rows))
    frames = drain(session)
    assert sorted(isin for frame in frames for isin in isins(frame)) == [SAMSUNG, NAVER]


def test_another_epoch_ends_the_waiting() -> None:
    """And so does dropping the key, or asking for it without a position."""
    board = make_board(make_row(SAMSUNG), offset=5)
    session = make_session(board)
    since = {"epoch": EPOCH, "offset": 9}
    say(session, op="subscribe", keys=[SAMSUNG], since=since)
    session.restart()
    assert isins(drain(session)[0]) == [SAMSUNG]
    say(session, op="subscribe", keys=[SAMSUNG], since=since)
    say(session, op="subscribe", keys=[SAMSUNG])
    assert isins(drain(session)[0]) == [SAMSUNG]
    say(session, op="subscribe", keys=[SAMSUNG], since=since)
    say(session, op="unsubscribe", keys=[SAMSUNG])
    publish(board, session, make_row(SAMSUNG, seq=20))
    assert drain(session) == []


def publish_part(board: Board, session: Session, *rows: Row) -> bool:
    """Put another part of the newest window on the board and offer it."""
    here = board.position
    part = make_snapshot(here.offset + 1, *rows, window=here.window)
    news = board.apply(part)
    return session.offer(Update(board.complete, news.windows, news.rows))


def test_a_part_of_a_window_comes_at_once_less_what_was_shown() -> None:
    """Every offset is covered once: ``merged`` says by how much an update moves it."""
    board = make_board()
    session = make_session(board)
    say(session, op="subscribe", keys=["*"])
    [snapshot] = drain(session)
    offset, window = snapshot["offset"], 0
    frames = []
    for step, rows in [
        (publish, [make_row(SAMSUNG, seq=1), make_row(HYNIX, seq=1)]),
        (publish_part, [make_row(SAMSUNG, seq=2, trades=2), make_row(NAVER)]),
        (publish, [make_row(SAMSUNG, seq=3, trades=4)]),
        (publish_part, [make_row(HYNIX, seq=2)]),
    ]:
        assert step(board, session, *rows)
        [frame] = drain(session)
        assert frame["offset"] - frame.get("merged", 1) == offset
        assert frame["window"] >= window
        assert session.position().offset == frame["offset"]
        offset, window = frame["offset"], frame["window"]
        frames.append(frame)
    assert [isins(frame) for frame in frames] == [
        [HYNIX, SAMSUNG],
        [NAVER],
        [SAMSUNG],
        [HYNIX],
    ]
    assert [frame.get("merged") for frame in frames] == [None, 0, 2, None]
    assert frames[2]["data"][0]["trades"] == 6


def test_a_snapshot_lies_before_what_is_held_back() -> None:
    """Who asks for one key more and resumes from there misses nothing of the others."""
    board = make_board()
    session = make_session(board)
    say(session, op="subscribe", keys=[SAMSUNG])
    publish(board, session, make_row(SAMSUNG, seq=1))
    drain(session)
    publish_part(board, session, make_row(SAMSUNG, seq=2))
    say(session, op="subscribe", keys=[HYNIX])
    [snapshot] = drain(session)
    returned = make_session(board)
    since = {"epoch": EPOCH, "offset": snapshot["offset"]}
    say(returned, op="subscribe", keys=[SAMSUNG, HYNIX], since=since)
    assert [item["seq"] for item in drain(returned)[0]["data"]] == [2]


def test_what_was_shown_in_a_snapshot_is_not_shown_again_in_its_window() -> None:
    """A further part waits for the next window, for this client alone."""
    board = make_board(make_row(SAMSUNG))
    session = make_session(board)
    say(session, op="subscribe", keys=["*"])
    drain(session)
    assert not publish_part(board, session, make_row(HYNIX))
    assert drain(session) == []
    assert publish(board, session)
    [update] = drain(session)
    assert (isins(update), update["merged"]) == ([HYNIX], 2)


def test_a_client_that_is_behind_is_calm_too() -> None:
    """An issue of the window before is not followed by one more of this window."""
    board = make_board()
    session = make_session(board)
    say(session, op="subscribe", keys=["*"])
    drain(session)
    publish(board, session, make_row(SAMSUNG, seq=1))
    publish(board, session, make_row(HYNIX))
    [late] = drain(session)
    assert not publish_part(board, session, make_row(SAMSUNG, seq=2))
    publish(board, session)
    [update] = drain(session)
    assert (isins(late), isins(update)) == ([SAMSUNG, HYNIX], [SAMSUNG])
    assert update["window"] > late["window"]
