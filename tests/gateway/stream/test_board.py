"""The board: the last value of every instrument, and what counts as news."""

from gateway.stream.board import Board, News, Position
from tests.gateway.samples import (
    EPOCH,
    HYNIX,
    NAVER,
    SAMSUNG,
    make_board,
    make_row,
    restate,
)
from tests.gateway.samples import make_snapshot as snapshot
from throttle.contract.snapshot import LastValue, Row


def stored(row: Row, offset: int) -> LastValue:
    """Return a row as the last-value table holds it."""
    return LastValue(row.isin, row.version, offset, row.body)


def test_an_update_moves_the_board_and_is_news() -> None:
    """A row of a new instrument is news and becomes its last value."""
    board, row = Board(), make_row()
    update = snapshot(1, row)
    assert board.apply(update) == News([row], 1, stale=0, held=0)
    assert board.get(SAMSUNG) == stored(row, 1)
    assert board.position == Position(EPOCH, 1, update.window)


def test_an_older_row_is_dropped() -> None:
    """An instrument never goes back, though the update itself counts."""
    newer = make_row(price="2", seq=2)
    board = make_board(newer)
    other = make_row(HYNIX)
    news = board.apply(snapshot(2, make_row(price="1", seq=1), other))
    assert news == News([other], 1, stale=1, held=0)
    assert board.get(SAMSUNG) == stored(newer, 1)
    assert board.position.offset == 2


def test_a_row_that_restates_what_is_shown_is_news() -> None:
    """It says what was traded too late; who comes back is told that it changed."""
    shown = stored(make_row(seq=2), 1)
    board = make_board(make_row(seq=2))
    row = restate(shown, make_row(price="199600", seq=1))
    assert row.sums == b"1,40,7984000,199600,199600"
    assert board.apply(snapshot(2, row)) == News([row], 1, stale=0, held=0)
    assert board.get(SAMSUNG) == shown._replace(offset=2)
    assert board.changed_since(1) == [SAMSUNG]


def test_what_was_restated_in_a_hole_is_news() -> None:
    """Nobody knows what was traded in it; what is stored from before is none."""
    board = make_board(make_row(SAMSUNG), make_row(HYNIX))
    there = Position(EPOCH, 3, (board.position.window or 0) + 2_000)
    values = [stored(make_row(SAMSUNG), 1), stored(make_row(HYNIX), 3)]
    row = make_row(HYNIX)._replace(sums=b"0")
    assert board.catch_up(there, values) == News([row], 2, stale=0, held=0)
    assert board.changed_since(1) == [HYNIX]


def test_changed_since_names_what_changed_after_an_offset() -> None:
    """A returning client needs just the instruments that changed after its offset."""
    board = make_board(make_row(SAMSUNG), offset=1)
    board.apply(snapshot(2, make_row(HYNIX)))
    assert board.changed_since(0) == [HYNIX, SAMSUNG]
    assert board.changed_since(1) == [HYNIX]
    assert board.changed_since(2) == []
    assert board.isins() == [HYNIX, SAMSUNG]


def test_catching_up_yields_what_is_newer() -> None:
    """Stored values that are newer are news of unknown trade count; others are not."""
    held, older = make_row(SAMSUNG, seq=2), make_row(SAMSUNG, seq=1)
    fresh = make_row(HYNIX, seq=3, trades=9)
    board = make_board(held)
    there = Position(EPOCH, 7, board.position.window + 2_000)
    news = board.catch_up(there, [stored(older, 6), stored(fresh, 7)])
    row = Row(HYNIX, fresh.version, b"0", fresh.body)
    assert news == News([row], 6, stale=0, held=0)
    assert board.get(SAMSUNG) == stored(held, 1)
    assert board.get(HYNIX) == stored(fresh, 7)
    assert board.position == board.complete == there


def test_another_epoch_replaces_everything() -> None:
    """Positions of two epochs never compare, so nothing of the old one stays."""
    board = make_board(make_row(SAMSUNG, seq=9), make_row(HYNIX, seq=9))
    older = stored(make_row(SAMSUNG, seq=1), 1)
    board.replace(Position("new", 1, 1), [older])
    assert board.isins() == [SAMSUNG]
    assert board.get(SAMSUNG) == older
    assert board.position == board.complete == Position("new", 1, 1)


def test_what_is_held_back_is_on_the_board_and_not_complete() -> None:
    """A new client sees the newest; who resumes from ``complete`` misses nothing."""
    board = make_board(make_row(SAMSUNG), make_row(HYNIX), offset=1)
    window = board.position.window
    newer, other = make_row(SAMSUNG, seq=2, trades=3), make_row(NAVER)
    news = board.apply(snapshot(2, newer, other, window=window))
    assert news == News([other], 0, stale=0, held=1)
    assert board.get(SAMSUNG) == stored(newer, 2)
    assert board.position == Position(EPOCH, 2, window)
    assert board.complete == Position(EPOCH, 1, window)
    assert board.is_in_parts
    assert SAMSUNG in board.changed_since(board.complete.offset)
    assert board.apply(snapshot(3)) == News([newer], 2, stale=0, held=0)
    assert board.complete == board.position
    assert not board.is_in_parts


def test_an_older_window_takes_no_position_back() -> None:
    """A job that is behind brings its rows; the window stays the newest."""
    board = make_board(make_row(SAMSUNG), offset=1)
    here = board.position
    assert here.window is not None
    row = make_row(HYNIX)
    news = board.apply(snapshot(2, row, window=here.window - 6_000))
    assert news == News([row], 1, stale=0, held=0)
    assert board.position == board.complete == Position(EPOCH, 2, here.window)


def test_catching_up_within_a_window_holds_back_too() -> None:
    """What a reload brings is news like any other."""
    board = make_board(make_row(SAMSUNG), offset=1)
    newer = make_row(SAMSUNG, seq=2)
    there = Position(EPOCH, 4, board.position.window)
    assert board.catch_up(there, [stored(newer, 4)]) == News([], 0, stale=0, held=1)
    assert (board.position.offset, board.complete.offset) == (4, 1)


def test_another_epoch_forgets_what_was_held_back() -> None:
    """Clients get its full state anyway."""
    board = make_board(make_row(SAMSUNG), offset=1)
    window = board.position.window
    board.apply(snapshot(2, make_row(SAMSUNG, seq=2), window=window))
    board.replace(Position("new", 1, window), [stored(make_row(SAMSUNG), 1)])
    assert board.apply(snapshot(2, epoch="new")) == News([], 1, stale=0, held=0)
