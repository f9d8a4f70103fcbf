"""One client's commands: the keys it holds and the answer to each message."""

import json
from typing import Any

import pytest

from gateway.admission.bounds import Bounds
from gateway.admission.tokens import TokenGrant
from gateway.protocol.messages import BadMessage, Subscribe
from gateway.stream.board import Board, Position
from gateway.stream.commands import ClientCommands
from tests.gateway.samples import (
    EPOCH,
    HYNIX,
    LISTED,
    NAVER,
    SAMSUNG,
    make_board,
    make_commands,
    make_isins,
    make_row,
    make_snapshot,
    make_update,
    offer,
)
from throttle.contract.snapshot import Row


def say(commands: ClientCommands, now_s: float = 0.0, **message: Any) -> dict[str, Any]:
    """Send a message and return the answer."""
    answer: dict[str, Any] = json.loads(commands.answer(json.dumps(message), now_s, 55))
    return answer


def drain(commands: ClientCommands) -> list[dict[str, Any]]:
    """Return every frame the commands is due."""
    due = []
    while (frame := commands.delivery.next_frame()) is not None:
        due.append(json.loads(frame))
    return due


def publish(board: Board, commands: ClientCommands, *rows: Row) -> bool:
    """Put an update on the board and offer it."""
    news = board.apply(make_snapshot(board.position.offset + 1, *rows))
    return offer(commands.delivery, make_update(board, news))


def isins(frame: dict[str, Any]) -> list[str]:
    """Return the instruments in a frame."""
    return [item["isin"] for item in frame["data"]]


def test_a_subscribe_is_acknowledged_key_by_key() -> None:
    """Good keys are held, bad ones come back with the reason."""
    commands = make_commands(make_board())
    answer = say(commands, op="subscribe", id=1, keys=[SAMSUNG, "KR7005930004"])
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


def test_the_interval_granted_is_whole_windows() -> None:
    """Never shorter than asked for, but a minute is the longest."""
    cases: list[tuple[int, int]] = [
        (0, 500),
        (1, 500),
        (500, 500),
        (501, 1_000),
        (60_001, 60_000),
        (2**62, 60_000),
    ]
    for wanted_ms, granted_ms in cases:
        board = make_board()
        board.window_ms = 500
        commands = make_commands(board)
        answer = say(commands, op="subscribe", keys=["*"], min_interval_ms=wanted_ms)
        assert answer["min_interval_ms"] == granted_ms


def test_a_longer_interval_merges_windows() -> None:
    """Updates come at the boundaries of intervals, with the newest of each."""
    board = make_board(make_row(SAMSUNG))
    commands = make_commands(board)
    say(commands, op="subscribe", keys=["*"], min_interval_ms=6_000)
    [snapshot] = drain(commands)
    frames: list[dict[str, Any]] = []
    for number in range(2, 10):
        is_due = publish(board, commands, make_row(HYNIX, seq=number, trades=number))
        new = drain(commands)
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
    commands = make_commands(board)
    say(commands, op="subscribe", keys=["*"], min_interval_ms=60_000)
    drain(commands)
    before = commands.delivery.position()
    publish(board, commands, make_row(HYNIX))
    assert drain(commands) == []
    assert commands.delivery.position().offset == before.offset < board.position.offset


def test_the_newest_subscribe_decides_the_interval() -> None:
    """It holds for the whole connection; without the field it is one window."""
    board = make_board()
    commands = make_commands(board)
    say(commands, op="subscribe", keys=[SAMSUNG], min_interval_ms=60_000)
    answer = say(commands, op="subscribe", keys=[HYNIX])
    assert answer["min_interval_ms"] == board.window_ms
    drain(commands)
    assert publish(board, commands, make_row(SAMSUNG))


def test_a_snapshot_follows_a_subscribe_and_updates_follow_it() -> None:
    """The snapshot holds the stored value, the update what came later."""
    board = make_board(make_row(SAMSUNG, price="1.50"))
    commands = make_commands(board)
    say(commands, op="subscribe", keys=[SAMSUNG, NAVER])
    publish(board, commands, make_row(NAVER, seq=2, trades=4))
    snapshot, update = drain(commands)
    assert (snapshot["type"], snapshot["final"], isins(snapshot)) == (
        "snapshot",
        True,
        [SAMSUNG],
    )
    assert (update["type"], isins(update)) == ("update", [NAVER])
    assert update["data"][0]["trades"] == 4
    assert update["offset"] == board.position.offset


def test_a_snapshot_is_cut_into_pieces() -> None:
    """Pieces hold at most so many items and no instrument twice."""
    many = make_isins(7)
    board = make_board(*(make_row(isin) for isin in many))
    commands = make_commands(board, bounds=Bounds(snapshot_items=3))
    say(commands, op="subscribe", keys=["*"])
    pieces = drain(commands)
    assert [len(p["data"]) for p in pieces] == [3, 3, 1]
    assert [p["final"] for p in pieces] == [False, False, True]
    assert [isin for piece in pieces for isin in isins(piece)] == many


def test_a_client_may_do_without_a_snapshot() -> None:
    """Then it gets what changes from now on."""
    board = make_board(make_row(SAMSUNG))
    commands = make_commands(board)
    answer = say(
        commands,
        op="subscribe",
        keys=["*"],
        snapshot=False,
        since={"epoch": EPOCH, "offset": 0},
    )
    assert answer["resumed"] is False
    assert drain(commands) == []
    publish(board, commands, make_row(HYNIX))
    assert [isins(frame) for frame in drain(commands)] == [[HYNIX]]


def test_a_subscribe_of_bad_keys_alone_gets_no_snapshot() -> None:
    """Nothing was accepted, so nothing follows."""
    commands = make_commands(make_board(make_row()))
    assert say(commands, op="subscribe", keys=["nope"])["count"] == 0
    assert drain(commands) == []


def test_a_returning_client_gets_what_changed() -> None:
    """With a position of this epoch the snapshot holds only what came after it."""
    cases: list[list[str]] = [["*"], [SAMSUNG, HYNIX, NAVER]]
    for keys in cases:
        board = make_board(make_row(SAMSUNG), offset=1)
        board.apply(make_snapshot(2, make_row(HYNIX)))
        commands = make_commands(board)
        answer = say(
            commands, op="subscribe", keys=keys, since={"epoch": EPOCH, "offset": 1}
        )
        assert answer["resumed"] is True
        assert [isins(frame) for frame in drain(commands)] == [[HYNIX]]


def test_a_position_that_says_nothing_here_gets_everything() -> None:
    """Another epoch or an offset far from here: the full truth, never a part."""
    cases: list[dict[str, Any]] = [
        {"epoch": "gone", "offset": 1},
        {"epoch": EPOCH, "offset": 36},
    ]
    for since in cases:
        commands = make_commands(make_board(make_row(SAMSUNG), offset=5))
        answer = say(commands, op="subscribe", keys=["*"], since=since)
        assert answer["resumed"] is False
        assert [isins(frame) for frame in drain(commands)] == [[SAMSUNG]]


def test_a_slow_client_gets_one_update_with_the_newest_values() -> None:
    """Two windows not yet sent become one frame that says so."""
    board = make_board()
    commands = make_commands(board)
    say(commands, op="subscribe", keys=[SAMSUNG])
    drain(commands)
    publish(board, commands, make_row(price="1.10", seq=2, trades=3))
    publish(board, commands, make_row(price="1.20", seq=3, trades=4))
    (frame,) = drain(commands)
    assert (frame["merged"], frame["offset"]) == (2, board.position.offset)
    assert (frame["data"][0]["price"], frame["data"][0]["trades"]) == (1.2, 7)


def test_more_keys_than_the_limit_change_nothing() -> None:
    """The error says the limit, what is held and what was asked for."""
    one, two, three, four = make_isins(4)
    commands = make_commands(make_board(), max_keys=3)
    say(commands, op="subscribe", keys=[one, two])
    answer = say(commands, op="subscribe", id=7, keys=[two, three, four])
    assert answer == {
        "type": "error",
        "id": 7,
        "code": "key_limit",
        "message": "3 keys a connection; you hold 2 and asked for 2 more",
    }
    assert say(commands, op="list")["accepted"] == [one, two]


def test_bad_keys_do_not_count_towards_the_limit() -> None:
    """A client may ask for as many keys as fit, whatever else it asks for."""
    commands = make_commands(make_board(), max_keys=2)
    answer = say(commands, op="subscribe", keys=[SAMSUNG, "nope"])
    assert (answer["type"], answer["count"]) == ("ack", 1)
    answer = say(commands, op="subscribe", keys=[HYNIX, "nope"])
    assert (answer["type"], answer["count"]) == ("ack", 2)
    assert say(commands, op="subscribe", keys=[NAVER])["code"] == "key_limit"


def test_a_quick_start_is_bound_by_the_limit_too() -> None:
    """Keys in the address are a subscribe like any other."""
    commands = make_commands(make_board(), max_keys=1)
    with pytest.raises(BadMessage, match="1 keys a connection"):
        commands.subscribe(Subscribe(None, (SAMSUNG, HYNIX)), 0.0)


def test_unsubscribing_drops_keys_and_what_was_due() -> None:
    """A key that was not held is named, the others are dropped at once."""
    board = make_board()
    commands = make_commands(board)
    say(commands, op="subscribe", keys=[SAMSUNG, HYNIX], snapshot=False)
    publish(board, commands, make_row(SAMSUNG), make_row(HYNIX))
    answer = say(commands, op="unsubscribe", id=2, keys=[SAMSUNG, NAVER])
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
    assert [isins(frame) for frame in drain(commands)] == [[HYNIX]]


def test_a_code_stands_for_its_instrument() -> None:
    """The ack says for which; both names are one key."""
    commands = make_commands(make_board(make_row()), LISTED, max_keys=2)
    answer = say(commands, op="subscribe", keys=["005930", SAMSUNG])
    assert (answer["accepted"], answer["count"]) == ([SAMSUNG], 1)
    assert answer["codes"] == {"005930": SAMSUNG}
    assert [isins(frame) for frame in drain(commands)] == [[SAMSUNG]]
    answer = say(commands, op="subscribe", keys=["000660", NAVER])
    assert answer["code"] == "key_limit"
    [rejection] = say(commands, op="subscribe", keys=["005931"])["rejected"]
    assert (rejection["key"], rejection["code"]) == ("005931", "unknown_key")
    answer = say(commands, op="unsubscribe", keys=["005930", "000660"])
    assert (answer["accepted"], answer["count"]) == ([SAMSUNG], 0)
    assert [r["key"] for r in answer["rejected"]] == ["000660"]
    assert "codes" not in say(commands, op="subscribe", keys=[NAVER])


def test_a_code_that_the_token_does_not_allow_is_refused_by_its_name() -> None:
    """As it was asked for."""
    commands = make_commands(make_board(), LISTED)
    commands.admit(TokenGrant(frozenset({SAMSUNG})), 0.0, 0)
    answer = say(commands, op="subscribe", keys=["000660", SAMSUNG])
    assert answer["accepted"] == [SAMSUNG]
    assert [r["key"] for r in answer["rejected"]] == ["000660"]


def test_giving_up_everything_keeps_the_keys_named_before() -> None:
    """``*`` is a key of its own beside the others."""
    board = make_board()
    commands = make_commands(board)
    say(commands, op="subscribe", keys=[SAMSUNG, "*"], snapshot=False)
    say(commands, op="unsubscribe", keys=["*"])
    assert not publish(board, commands, make_row(HYNIX))
    assert publish(board, commands, make_row(SAMSUNG))


def test_list_tells_what_is_held() -> None:
    """In the order of keys."""
    commands = make_commands(make_board())
    say(commands, op="subscribe", keys=[SAMSUNG, "*", HYNIX])
    answer = say(commands, op="list", id="x")
    assert (answer["id"], answer["op"], answer["count"]) == ("x", "list", 3)
    assert (answer["accepted"], answer["rejected"]) == (["*", HYNIX, SAMSUNG], [])


def test_a_ping_is_answered_with_the_time() -> None:
    """The time of day is that of this process."""
    commands = make_commands(make_board())
    assert say(commands, op="ping", id=9) == {
        "type": "pong",
        "id": 9,
        "server_time": 55,
    }


def test_a_bad_message_is_answered() -> None:
    """Whatever is wrong with it, there is an error and the commands goes on."""
    commands = make_commands(make_board())
    assert json.loads(commands.answer("{", 0.0, 55))["code"] == "bad_json"
    assert say(commands, op="nonsense", id=4)["id"] == 4
    assert say(commands, op="ping")["type"] == "pong"


def test_messages_that_come_too_fast_are_refused_with_a_wait() -> None:
    """Those of two seconds may come at once; a refusal says when to ask again."""
    commands = make_commands(make_board(), messages_per_second=4)
    for _ in range(8):
        assert say(commands, op="ping")["type"] == "pong"
    assert say(commands, op="ping", id=3) == {
        "type": "error",
        "id": 3,
        "code": "rate_limited",
        "message": "more than 4 messages a second",
        "retry_after_ms": 250,
    }
    assert say(commands, now_s=0.25, op="ping")["type"] == "pong"


def test_another_epoch_sends_everything_held_anew() -> None:
    """The client gets the new truth in full, with the new epoch."""
    board = make_board(make_row(SAMSUNG, seq=9))
    commands = make_commands(board)
    say(commands, op="subscribe", keys=[SAMSUNG])
    publish(board, commands, make_row(SAMSUNG, seq=10))
    board.replace(Position("new", 0, 1), [])
    board.apply(make_snapshot(1, make_row(SAMSUNG, seq=1), epoch="new"))
    commands.delivery.restart()
    (frame,) = drain(commands)
    assert (frame["type"], frame["epoch"], frame["offset"]) == ("snapshot", "new", 1)
    assert frame["data"][0]["seq"] == 1


def test_a_client_that_shows_a_token_in_vain_learns_it() -> None:
    """Where none is needed, the answer says so and nothing ends."""
    commands = make_commands(make_board())
    answer = say(commands, op="auth", id=0, token="t")
    assert answer["code"] == "bad_request"
    assert answer["message"] == "op: no authentication is configured"
    assert commands.ending is None


def test_a_client_that_has_seen_more_waits() -> None:
    """Never backwards: the other gateway was ahead, this one has to catch up first."""
    board = make_board(make_row(SAMSUNG), make_row(HYNIX), offset=5)
    commands = make_commands(board)
    since = {"epoch": EPOCH, "offset": 7}
    answer = say(commands, op="subscribe", keys=["*"], since=since)
    assert (answer["resumed"], answer["count"]) == (True, 1)
    assert drain(commands) == []
    assert not publish(board, commands, make_row(SAMSUNG, seq=6))
    assert drain(commands) == []
    assert publish(board, commands, make_row(SAMSUNG, seq=7))
    [snapshot] = drain(commands)
    assert (snapshot["type"], snapshot["offset"], snapshot["data"]) == (
        "snapshot",
        7,
        [],
    )
    assert publish(board, commands, make_row(HYNIX, seq=8))
    [update] = drain(commands)
    assert (update["offset"], isins(update)) == (8, [HYNIX])


def test_what_a_client_missed_while_it_waited_is_sent() -> None:
    """Never lost: several windows at once may take the gateway past the client."""
    board = make_board(make_row(SAMSUNG), offset=5)
    commands = make_commands(board)
    say(commands, op="subscribe", keys=[SAMSUNG], since={"epoch": EPOCH, "offset": 6})
    say(commands, op="subscribe", keys=[NAVER])
    drain(commands)
    news = board.apply(make_snapshot(8, make_row(SAMSUNG, seq=8), make_row(NAVER)))
    assert offer(commands.delivery, make_update(board, news))
    frames = drain(commands)
    assert sorted(isin for frame in frames for isin in isins(frame)) == [SAMSUNG, NAVER]


def test_another_epoch_ends_the_waiting() -> None:
    """And so does dropping the key, or asking for it without a position."""
    board = make_board(make_row(SAMSUNG), offset=5)
    commands = make_commands(board)
    since = {"epoch": EPOCH, "offset": 9}
    say(commands, op="subscribe", keys=[SAMSUNG], since=since)
    commands.delivery.restart()
    assert isins(drain(commands)[0]) == [SAMSUNG]
    say(commands, op="subscribe", keys=[SAMSUNG], since=since)
    say(commands, op="subscribe", keys=[SAMSUNG])
    assert isins(drain(commands)[0]) == [SAMSUNG]
    say(commands, op="subscribe", keys=[SAMSUNG], since=since)
    say(commands, op="unsubscribe", keys=[SAMSUNG])
    publish(board, commands, make_row(SAMSUNG, seq=20))
    assert drain(commands) == []


def publish_part(board: Board, commands: ClientCommands, *rows: Row) -> bool:
    """Put another part of the newest window on the board and offer it."""
    here = board.position
    part = make_snapshot(here.offset + 1, *rows, window=here.window)
    news = board.apply(part)
    return offer(commands.delivery, make_update(board, news))


def test_a_part_of_a_window_comes_at_once_less_what_was_shown() -> None:
    """Every offset is covered once: ``merged`` says by how much an update moves it."""
    board = make_board()
    commands = make_commands(board)
    say(commands, op="subscribe", keys=["*"])
    [snapshot] = drain(commands)
    offset, window = snapshot["offset"], 0
    frames = []
    for step, rows in [
        (publish, [make_row(SAMSUNG, seq=1), make_row(HYNIX, seq=1)]),
        (publish_part, [make_row(SAMSUNG, seq=2, trades=2), make_row(NAVER)]),
        (publish, [make_row(SAMSUNG, seq=3, trades=4)]),
        (publish_part, [make_row(HYNIX, seq=2)]),
    ]:
        assert step(board, commands, *rows)
        [frame] = drain(commands)
        assert frame["offset"] - frame.get("merged", 1) == offset
        assert frame["window"] >= window
        assert commands.delivery.position().offset == frame["offset"]
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
    commands = make_commands(board)
    say(commands, op="subscribe", keys=[SAMSUNG])
    publish(board, commands, make_row(SAMSUNG, seq=1))
    drain(commands)
    publish_part(board, commands, make_row(SAMSUNG, seq=2))
    say(commands, op="subscribe", keys=[HYNIX])
    [snapshot] = drain(commands)
    returned = make_commands(board)
    since = {"epoch": EPOCH, "offset": snapshot["offset"]}
    say(returned, op="subscribe", keys=[SAMSUNG, HYNIX], since=since)
    assert [item["seq"] for item in drain(returned)[0]["data"]] == [2]


def test_what_was_shown_in_a_snapshot_is_not_shown_again_in_its_window() -> None:
    """A further part waits for the next window, for this client alone."""
    board = make_board(make_row(SAMSUNG))
    commands = make_commands(board)
    say(commands, op="subscribe", keys=["*"])
    drain(commands)
    assert not publish_part(board, commands, make_row(HYNIX))
    assert drain(commands) == []
    assert publish(board, commands)
    [update] = drain(commands)
    assert (isins(update), update["merged"]) == ([HYNIX], 2)


def test_a_client_that_is_behind_is_calm_too() -> None:
    """An instrument of the window before is not followed by one more of this window."""
    board = make_board()
    commands = make_commands(board)
    say(commands, op="subscribe", keys=["*"])
    drain(commands)
    publish(board, commands, make_row(SAMSUNG, seq=1))
    publish(board, commands, make_row(HYNIX))
    [late] = drain(commands)
    assert not publish_part(board, commands, make_row(SAMSUNG, seq=2))
    publish(board, commands)
    [update] = drain(commands)
    assert (isins(late), isins(update)) == ([SAMSUNG, HYNIX], [SAMSUNG])
    assert update["window"] > late["window"]
