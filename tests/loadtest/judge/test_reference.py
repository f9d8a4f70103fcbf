"""What was published in a run."""

import pickle

import pytest

from loadtest.judge.reference import Change, Changes, Reference

CHANGES = [
    Change(3, 5_500_000, 1, "0.30", 4, 5_400.0),
    Change(5, 9_100_000, 2, "7", 2),
    Change(6, 1_000_000, 3, "7", 1),
]


def make_reference() -> Reference:
    """Return one instrument's changes; a window's end is 2 s times its offset."""
    ends = {n: (n * 2_000, n * 2_000 + 90.5) for n in (6, 5, 4, 3)}
    return Reference("k3x9", ends, {"A": CHANGES})


def test_offsets_do_not_go_back() -> None:
    with pytest.raises(ValueError, match="offset 3: has to be greater than 3"):
        Changes([CHANGES[0], CHANGES[0]])


def test_trades_add_up_between_offsets() -> None:
    """The first is left out, the last is not."""
    changes = Changes(CHANGES)
    spans = [(0, 9), (2, 3), (3, 6), (5, 5), (6, 3), (6, 99)]
    assert [changes.trades_between(*span) for span in spans] == [7, 4, 3, 0, 0, 0]
    assert [changes.place(offset) for offset in (2, 3, 4, 6, 7)] == [0, 1, 1, 3, 3]


def test_a_reference_survives_the_way_to_another_process() -> None:
    """With windows in order; an instrument that did not trade has no changes."""
    reference = pickle.loads(pickle.dumps(make_reference()))
    assert list(reference.windows) == [3, 4, 5, 6]
    assert reference.windows[4] == (8_000, 8_090.5)
    assert reference.changes("A").prices == ["0.30", "7", "7"]
    assert list(reference.changes("A").offsets) == [3, 5, 6]
    assert len(reference.changes("B")) == 0


def test_news_entered_the_log_when_it_is_said_or_when_it_traded() -> None:
    """A trade's own time counts if it is within its window, else the window's end."""
    reference = make_reference()
    changes = reference.changes("A")
    firsts_ms = [reference.first_ms(changes, place) for place in range(3)]
    assert firsts_ms == [5_400, 9_100, 12_000]


def test_several_jobs_are_told_by_windows_that_come_again() -> None:
    assert not make_reference().is_in_parts
    windows = {1: (2_000, 0.0), 2: (4_000, 0.0), 3: (4_000, 0.0)}
    assert Reference("e", windows, {}).is_in_parts
