"""What was published in a run: numbering, rows, and the truth for clients."""

from math import nan

from loadtest.judge.published_run import PublishedRun
from throttle.contract.snapshot import Row, WindowSnapshot
from throttle.contract.trade_order import encode_version

A, B = "KR7005930003", "KR7000660001"
END_MS = 1_773_964_802_000


def row(isin: str, price: str, trades: int = 1, time_us: int = 7) -> Row:
    body = b'{"isin":"%b","time":%d,"seq":3,"price":%b,"size":1}'
    filled = body % (isin.encode(), time_us, price.encode())
    return Row(isin, encode_version(time_us, 3, 1), b"%d" % trades, filled)


def message(offset: int, *rows: Row, windows: int = 1, epoch: str = "e") -> bytes:
    """Make a message of the window log: the window of an offset ends with it."""
    end_ms = END_MS + 2_000 * offset
    published_us = (end_ms + 150) * 1_000
    return WindowSnapshot(epoch, offset, end_ms, windows, published_us, rows).encode()


def test_windows_and_rows_become_the_truth() -> None:
    """Every window, every row by instrument, with when its news entered the log."""
    run = PublishedRun("e", 4, 2_000)
    run.add(message(5, row(A, "0.30", 2), row(B, "7")))
    run.add(message(6))
    run.add(message(7, row(A, "0.31", 1, 8)))
    truth = run.reference({5: [1.5, nan]})
    assert truth.epoch == "e"
    assert list(truth.windows) == [5, 6, 7]
    assert truth.windows[6] == (END_MS + 12_000, END_MS + 12_150.0)
    changes = truth.changes(A)
    assert (list(changes.offsets), changes.prices) == ([5, 7], ["0.30", "0.31"])
    assert (list(changes.times_us), list(changes.seqs)) == ([7, 8], [3, 3])
    assert (list(changes.trades), str(list(changes.firsts_ms))) == (
        [2, 1],
        "[1.5, nan]",
    )
    assert truth.changes(B).prices == ["7"]
    assert (run.offset, run.end_ms, run.faults) == (7, END_MS + 14_000, [])
    assert [len(held.rows()) for held in run.windows] == [2, 0, 1]
    assert [held.lag_ms for held in run.windows] == [150.0] * 3


def test_an_update_for_several_windows_covers_their_offsets() -> None:
    run = PublishedRun("e", 1, 2_000)
    run.add(message(4, row(A, "1"), windows=3))
    truth = run.reference()
    assert {offset: one.end_ms for offset, one in truth.windows.items()} == {
        offset: END_MS + 2_000 * offset for offset in (2, 3, 4)
    }
    assert list(truth.changes(A).offsets) == [4]
    assert run.faults == []


def test_whatever_breaks_the_numbering_is_a_fault() -> None:
    for messages, words in (
        ([message(7)], "offset 7: stands for 1 windows, the one before it was 5"),
        ([message(5)], "offset 5: came again after 5"),
        ([message(6), message(6)], "offset 6: came again after 6"),
        ([message(7, windows=3)], "offset 7: stands for 3 windows"),
        ([message(6, epoch="f")], "the stream e began anew as f after the offset 5"),
        ([b""], "the window log holds b''"),
        ([b'{"epoch":"e"}'], "KeyError"),
        ([b"[]"], "TypeError"),
    ):
        run = PublishedRun("e", 5, 2_000)
        for each in messages:
            run.add(each)
        [fault] = run.faults
        assert words in fault


def test_another_epoch_is_left_out_and_told_once() -> None:
    """Nothing of it mixes with what is known."""
    run = PublishedRun("e", 5, 2_000)
    for each in (message(6), message(1, epoch="f"), message(2, epoch="f")):
        run.add(each)
    run.begin_anew(None)
    assert (run.offset, len(run.windows), len(run.faults)) == (6, 1, 1)


def test_an_instrument_twice_in_a_window_counts_once() -> None:
    """The audit tells of it; the truth stays one that clients can be judged by."""
    run = PublishedRun("e", 0, 2_000)
    run.add(message(1, row(A, "1"), row(A, "2")))
    assert run.reference().changes(A).prices == ["1"]
