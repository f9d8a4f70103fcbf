"""One client's checks, frame by frame."""

import pytest

from tests.loadtest.frames import EPOCH, A, B, C, Told, make_item


def joined() -> Told:
    """Return a client that has two instruments, at offset 5."""
    return Told().join(5, make_item(A, 1), make_item(B, 2))


def test_a_stream_as_it_should_be_has_no_fault() -> None:
    """Updates, parts of windows, repairs, heartbeats, quiet windows."""
    told = (
        joined()
        .update(6, make_item(A, 3, 4))
        .tell("heartbeat", 7)
        .update(9, make_item(A, 4, 2), make_item(B, 4), merged=2)
        .update(9, make_item(A, 5), merged=0, window=20_000)
        .update(10, make_item(B, 6, 0))
        .tell("heartbeat", 10)
    )
    assert told.faults == []
    assert list(told.checker.offsets) == [5, 6, 7, 9, 10]
    assert told.checker.position == (EPOCH, 10)
    assert told.checker.held[A].trades == 7
    assert told.checker.held[B].trades == 0
    assert told.checker.holes == [(9, 10)]


def test_a_wrong_item_is_found() -> None:
    """Of an update; what is no item at all cannot even be read."""
    without = make_item(A, 9)
    del without["trades"]
    for item, words in (
        (make_item(A, 0), "went back"),
        (make_item(A, 9, time=7), "went back"),
        (make_item(C, 9), "not asked for"),
        (make_item(A, 9, -3), "without trades"),
        (without, "without trades"),
    ):
        [fault] = joined().update(6, item).faults
        assert words in fault
    with pytest.raises(TypeError, match="whole numbers"):
        joined().update(6, make_item(A, 9, time="9"))


def test_a_key_twice_is_found_within_a_frame_and_within_a_window() -> None:
    twice = joined().update(6, make_item(A, 7), make_item(A, 8))
    assert twice.faults == [f"{A} twice in window 12000, at offset 6"]
    again = joined().update(6, make_item(A, 7)).update(7, make_item(A, 8), window=12000)
    assert again.faults == [f"{A} twice in window 12000, at offset 7"]
    image = Told().join(5, make_item(A, 7), make_item(A, 7))
    assert image.faults == ["a key twice in one frame at offset 5"]


def test_an_instrument_that_is_asked_for_again_may_come_again() -> None:
    """Within the same window, after a new connection."""
    told = joined().update(6, make_item(A, 7)).join(6, resumed=True)
    assert told.update(7, make_item(A, 8), window=12_000).faults == []


def test_positions_do_not_go_back_on_a_connection() -> None:
    """Neither the offset nor the window, by whatever frame."""
    assert joined().tell("heartbeat", 4, window=10_000).faults == ["offset 5, then 4"]
    assert joined().tell("heartbeat", 6, window=1).faults == ["window 10000, then 1"]
    assert joined().update(4, make_item(A, 9), window=10_000).faults == [
        "offset 5, then 4"
    ]


def test_an_update_before_the_snapshot_is_found() -> None:
    told = Told().subscribe().update(5, make_item(A, 1))
    assert told.faults == ["an update before the snapshot, at offset 5"]
    again = joined().subscribe(resumed=True).update(6, make_item(A, 3))
    assert again.faults == ["an update before the snapshot, at offset 6"]


def test_a_client_that_was_not_resumed_says_so() -> None:
    """Unless the gateway is far behind, or the epoch is another."""
    assert "not resumed" in joined().join(5, make_item(A, 1)).faults[0]
    behind = Told().join(50, make_item(A, 9)).join(10, make_item(A, 1))
    assert behind.faults == []
    assert behind.checker.offset == 10
    other = joined().subscribe()
    other.tell("snapshot", 1, final=True, epoch="new")
    assert other.faults == []
    assert other.checker.position == ("new", 1)


def test_a_gateway_that_has_read_nothing_need_not_resume() -> None:
    """Its first snapshot has no epoch; everything comes when it has read."""
    told = joined().subscribe().tell("snapshot", 0, epoch=None, window=None, final=True)
    assert told.snapshot(6, make_item(A, 3), make_item(B, 3)).faults == []
    assert told.checker.held[A].base == 6


def test_a_resumed_client_keeps_counting_what_did_not_change() -> None:
    """What the snapshot holds is counted anew from there."""
    told = joined().update(6, make_item(A, 3, 4), make_item(B, 3, 2))
    told.join(8, make_item(B, 5), resumed=True)
    assert told.faults == []
    assert (told.checker.held[A].base, told.checker.held[A].trades) == (5, 4)
    assert (told.checker.held[B].base, told.checker.held[B].trades) == (8, 0)
    assert told.checker.resumed == 1


def test_heartbeats_before_the_snapshot_move_nothing() -> None:
    """A gateway that is behind says where it is while the client waits."""
    told = joined().subscribe(resumed=True).tell("heartbeat", 4)
    assert told.checker.position == (EPOCH, 5)
    assert told.snapshot(5).faults == []


def test_an_epoch_that_is_over_does_not_come_back() -> None:
    told = joined().tell("snapshot", 1, final=True, epoch="new")
    assert told.faults == []
    assert told.tell("snapshot", 6, final=True).faults == [
        f"epoch {EPOCH} again, after new"
    ]


def test_errors_refusals_and_nonsense_are_faults() -> None:
    told = joined().tell("error", code="internal", message="oh")
    told.tell(
        "ack", op="subscribe", resumed=False, rejected=[{"key": A, "message": "no"}]
    )
    told.tell("update", offset="x")
    assert [fault[:12] for fault in told.faults] == [
        "an error: in",
        f"{A}",
        "a frame not ",
    ]


def test_quotes_are_checked_like_a_stream() -> None:
    """None vanishes, none goes back; another gateway's older answer counts nothing."""
    told = Told()
    checker = told.checker

    def answer(offset: int, *seqs: int) -> None:
        items = [
            (isin, 1, seq, "1", -1) for isin, seq in zip((A, B), seqs, strict=False)
        ]
        head = {"epoch": EPOCH, "offset": offset, "window": offset}
        checker.take_quotes(head, items, offset)

    answer(5, 1, 1)
    answer(6, 2, 1)
    assert told.faults == []
    checker.connected()
    answer(5, 1, 1)
    assert (checker.held[A].item[2], told.faults) == (2, [])
    checker.connected()
    answer(7, 1)
    assert [fault.split()[0] for fault in told.faults] == [B, A]
    assert list(checker.offsets) == [5, 6, 7]
