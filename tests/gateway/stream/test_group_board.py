"""When the figures of groups may be shown."""

import json
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.stream.group_board import (
    REMEMBERED,
    GroupBoard,
    WholeWindows,
    add_parts,
)
from tests.examples import many
from tests.gateway.samples import (
    FIRST_WINDOW,
    WINDOW_MS,
    at_window,
    make_group,
    make_snapshot,
)
from throttle.contract.group import Group, GroupFigures, StoredGroup, units
from throttle.contract.snapshot import WindowSnapshot

KOSPI, CHIPS = "group:market:KOSPI", "group:sector:chips"


class Stream:
    """Updates one after the other, put on a board."""

    def __init__(self) -> None:
        self.board = GroupBoard()
        self.offset = 0
        self.late = 0
        self.updates: list[WindowSnapshot] = []

    def put(self, number: int, **trades: int) -> dict[str, int]:
        """Publish a part of a window; return the trades of what may be shown."""
        self.offset += 1
        names = {"kospi": "market:KOSPI", "chips": "sector:chips"}
        groups = [make_group(names[key], n) for key, n in trades.items()]
        window = FIRST_WINDOW + number * WINDOW_MS
        update = make_snapshot(self.offset, window=window, groups=groups)
        self.updates.append(update)
        shown, late = self.board.apply(update)
        self.late += late
        return trades_of(shown.values())

    def shown(self) -> dict[str, int]:
        """Return the trades of all figures on the board."""
        board = self.board
        return trades_of(filter(None, map(board.get, board.keys())))


def trades_of(bodies: Iterable[bytes]) -> dict[str, int]:
    """Return the trades of each group."""
    read = map(json.loads, bodies)
    return {figures["group"]: figures["trades"] for figures in read}


def stored(update: WindowSnapshot) -> list[StoredGroup]:
    """Return what the hash has after an update."""
    return [StoredGroup(update.offset, group) for group in update.groups]


def test_windows_in_one_update_each_are_shown_as_they_come() -> None:
    """The usual case. A group that did not trade stays as it was."""
    stream = Stream()
    assert stream.put(1, kospi=3, chips=2) == {KOSPI: 3, CHIPS: 2}
    assert stream.put(2, kospi=4) == {KOSPI: 4}
    assert stream.put(3) == {}
    assert stream.shown() == {KOSPI: 4, CHIPS: 2}
    assert (stream.board.keys(), len(stream.board)) == ([KOSPI, CHIPS], 2)
    assert stream.board.get("group:market:X") is None


def test_parts_are_added_up_and_shown_with_the_last() -> None:
    """Half a window is not shown as the whole, once it is known that there are two."""
    stream = Stream()
    assert stream.put(1, kospi=3) == {KOSPI: 3}
    assert stream.put(1, kospi=10) == {}
    assert stream.shown() == {KOSPI: 3}
    assert stream.put(2, kospi=4) == {}
    assert stream.put(2, kospi=20, chips=1) == {KOSPI: 24, CHIPS: 1}
    assert stream.put(3) == {}
    assert stream.put(3, chips=2) == {CHIPS: 2}
    assert stream.shown() == {KOSPI: 24, CHIPS: 2}


def test_a_part_too_many_is_shown_with_the_next_window() -> None:
    """Unless the group has newer figures by then."""
    stream = Stream()
    stream.put(1, kospi=3, chips=5)
    stream.put(1, kospi=10, chips=7)
    stream.put(2, kospi=1)
    assert stream.put(2) == {KOSPI: 1, CHIPS: 12}


def test_a_job_that_stops_holds_figures_back_for_a_while_only() -> None:
    """After three windows in one part they are shown as they come, again."""
    stream = Stream()
    for number in range(1, 4):
        stream.put(number, kospi=number)
        stream.put(number, kospi=number)
    shown = [stream.put(number, kospi=number) for number in range(4, 9)]
    held = [{}] * REMEMBERED
    assert shown == [*held, {KOSPI: 7}, {KOSPI: 8}]


def test_a_job_that_is_late_once_changes_nothing() -> None:
    """Its figures of the window before are left out where newer ones are there."""
    stream = Stream()
    for number in range(1, 4):
        stream.put(number, kospi=1)
        stream.put(number, kospi=1)
    stream.put(4, kospi=1)
    assert stream.put(5, kospi=2) == {}
    assert stream.put(4, kospi=9, chips=9) == {}
    assert stream.late == 1
    assert stream.put(5, kospi=3) == {KOSPI: 5, CHIPS: 9}


@pytest.mark.parametrize("wanted", [1, 2])
def test_a_resume_gets_what_was_shown_since(wanted: int) -> None:
    """Where there are parts, a little more: another gateway may have been later."""
    stream = Stream()
    stream.board._windows._before.append(wanted)
    for number in range(1, 4):
        for _ in range(wanted):
            stream.put(number, kospi=number)
    newer = stream.board.newer
    offset = stream.offset
    assert newer([KOSPI, "group:market:X"], -1) == [KOSPI]
    assert newer([KOSPI], offset - 1) == [KOSPI]
    assert newer([KOSPI], offset) == ([] if wanted == 1 else [KOSPI])
    assert newer([KOSPI], offset + 1) == []


def test_stored_figures_are_news_where_they_differ() -> None:
    """After a hole: all of it, without what clients have."""
    stream = Stream()
    stream.put(1, kospi=3, chips=2)
    newest = make_snapshot(9, groups=[make_group("market:KOSPI", 8)])
    news = stream.board.catch_up([*stored(stream.updates[0])[1:], *stored(newest)])
    assert trades_of(news.values()) == {KOSPI: 8}
    assert stream.shown() == {KOSPI: 8, CHIPS: 2}
    assert stream.board.newer([KOSPI, CHIPS], 8) == [KOSPI]
    assert stream.board.catch_up([]) == {}
    assert len(stream.board) == 0


def test_who_comes_later_knows_the_same_of_windows_in_parts() -> None:
    """What is stored is the last part alone; the newest windows have the others."""
    stream, later = Stream(), GroupBoard()
    for number in range(1, 6):
        stream.put(number, kospi=number, chips=1)
        stream.put(number, kospi=10)
    stream.put(6, kospi=6)
    newest = {g.group.key: g for update in stream.updates for g in stored(update)}
    old = StoredGroup(1, at_window(make_group("market:KOSDAQ", 77), FIRST_WINDOW))
    later.catch_up([*newest.values(), old], stream.updates[2:])
    shown = trades_of(filter(None, map(later.get, later.keys())))
    assert shown == {**stream.shown(), "group:market:KOSDAQ": 77}
    assert stream.shown() == {KOSPI: 15, CHIPS: 1}


def test_a_window_is_whole_with_one_update_at_most() -> None:
    """However many parts come, and whatever older windows come between."""
    windows = WholeWindows()
    assert [windows.is_whole_with(w) for w in (2, 2, 1, 2)] == [True, *[False] * 3]
    assert windows.wanted == 1
    assert [windows.is_whole_with(w) for w in (4, 4, 2, 4, 4)] == [
        *(False, False, False, True, False)
    ]


_PART = st.dictionaries(st.sampled_from(["kospi", "chips"]), st.integers(1, 9))


@given(st.lists(st.tuples(_PART, _PART)))
@settings(max_examples=many(50))
def test_with_two_jobs_what_is_shown_is_the_whole_window(
    windows: list[tuple[dict[str, int], dict[str, int]]],
) -> None:
    """Once, with both parts, as soon as it is known that there are two."""
    stream = Stream()
    stream.put(0)
    stream.put(0)
    for number, (one, other) in enumerate(windows, 1):
        assert stream.put(number, **one) == {}
        names = {"kospi": KOSPI, "chips": CHIPS}
        whole = {
            names[key]: one.get(key, 0) + other.get(key, 0) for key in {*one, *other}
        }
        assert stream.put(number, **other) == whole


def test_bodies_leave_as_they_came() -> None:
    """No figure is parsed where a window is in one piece."""
    board, group = GroupBoard(), Group(KOSPI, b'{"group":"group:market:KOSPI",garbage}')
    update = make_snapshot(1)
    update = WindowSnapshot(
        update.epoch, 1, update.window, 1, update.published_us, (), (group,), 1
    )
    assert board.apply(update) == ({KOSPI: group.body}, 0)


def figures(*prices: str, before: str | None = "100", volume: str = "1") -> Group:
    """Return figures of instruments with these prices, in window 4,000."""
    made = GroupFigures()
    for price in prices:
        made.add_instrument(price, before)
        made.add_trades(2, units(volume), units("0.000000000000000001"))
    return made.encode(KOSPI, 4_000)


def test_sums_are_exact_and_the_mean_is_weighted() -> None:
    """A double would keep neither the first digit nor the last."""
    one = figures("110", "90", "130", volume="12345678901234567890.5")
    other = figures("99", volume="0.05")
    unpriced = figures("7", before=None)
    added = add_parts(add_parts(one, other), unpriced)
    assert added == Group(
        KOSPI,
        b'{"group":"group:market:KOSPI","window":4000,"instruments":5,"advancing":2,'
        b'"declining":2,"unchanged":0,"unpriced":1,"trades":10,'
        b'"volume":37037036703703703672.55,"value":0.000000000000000005,'
        b'"mean_change_pct":7.2500}',
    )


def test_a_mean_below_zero_and_none_at_all() -> None:
    """What nobody knows stays unknown."""
    small = add_parts(figures("99.9999"), figures("99.9997"))
    assert json.loads(small.body)["mean_change_pct"] == -0.0002
    unknown = figures("1", before=None)
    assert json.loads(add_parts(unknown, unknown).body)["mean_change_pct"] is None
    assert add_parts(unknown, figures("110")).body.endswith(
        b'"mean_change_pct":10.0000}'
    )


def test_parts_in_either_order_are_the_same() -> None:
    """And are the whole, where no digit of a mean was rounded away."""
    one, other = figures("110", "90"), figures("99", "98.5", "3")
    assert add_parts(one, other) == add_parts(other, one)
    assert add_parts(one, other) == figures("110", "90", "99", "98.5", "3")
