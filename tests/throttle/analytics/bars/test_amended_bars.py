"""What changes with a batch: bars, newest bars, days; what the clock alone closes."""

from dataclasses import replace
from decimal import Decimal

from throttle.analytics.bars.amended_bars import BarBoard
from throttle.contract.bars import Bar
from throttle.contract.session_calendar import SessionCalendars

A, B, AMERICAN = "KR7005930003", "KR7000660001", "US0378331005"
MINUTE = 60_000
SUMMER = 29_705_760
"""2026-06-25 00:00 UTC, in minutes since 1970."""


def make_bar(isin: str, minute: int, trades: int = 1, price: int = 5) -> Bar:
    """Make a bar of so many trades at one price."""
    amount = Decimal(price)
    span = minute * MINUTE, (minute + 1) * MINUTE
    sums = Decimal(trades), amount * trades
    return Bar(isin, *span, amount, amount, amount, amount, *sums, trades, False, 0)


def publish(
    board: BarBoard, bars: list[Bar], clock_ms: int, known: list[Bar] | None = None
) -> tuple[Bar, ...]:
    """Take a batch; return what it has changed."""
    by_place = {(bar.isin, bar.start_ms): bar for bar in known or ()}
    changes = board.changes(bars, by_place, clock_ms)
    board.apply(changes)
    return changes.bars


def make_board() -> BarBoard:
    """Make a board that knows nothing."""
    return BarBoard(
        SessionCalendars.create("Asia/Seoul", "00:00", "US=America/New_York@09:30")
    )


def test_an_open_bar_closes_when_the_clock_has_passed_its_end() -> None:
    """Once, whether it trades any more or not."""
    board = make_board()
    bar = make_bar(A, 0)
    assert publish(board, [bar], 30_000) == (bar,)
    assert publish(board, [], MINUTE - 1) == ()
    assert publish(board, [], MINUTE) == (replace(bar, closed=True),)
    assert publish(board, [], 2 * MINUTE) == ()


def test_two_bars_of_an_instrument_may_be_open() -> None:
    """Trades of the next minute come before the last one is closed."""
    board = make_board()
    publish(board, [make_bar(A, 0), make_bar(A, 1)], MINUTE - 1)
    assert len(board.open) == 2
    assert board.newest[A].start_ms == MINUTE
    publish(board, [make_bar(A, 0, trades=2)], MINUTE)
    assert list(board.open) == [(A, MINUTE)]
    assert board.newest[A].start_ms == MINUTE
    assert board.days[A].bar.trades == 3


def test_only_bars_that_are_no_news_are_asked_for() -> None:
    """Those that were closed already, of instruments that are known."""
    board = make_board()
    publish(board, [make_bar(A, 5)], 6 * MINUTE)
    asked = board.unknown([make_bar(A, 5), make_bar(A, 4), make_bar(A, 6)])
    assert asked == [(A, 5 * MINUTE), (A, 4 * MINUTE)]
    assert board.unknown([make_bar(B, 1)]) == []


def test_a_closed_bar_is_amended_with_its_day() -> None:
    """By the difference to what was known of it."""
    board = make_board()
    publish(board, [make_bar(A, 0, trades=2)], MINUTE)
    known = replace(make_bar(A, 0, trades=2), closed=True)
    amended = replace(make_bar(A, 0, trades=3), revision=1)
    changed = publish(board, [amended], 2 * MINUTE, [known])
    assert changed == (replace(amended, closed=True),)
    day = board.days[A].bar
    assert (day.trades, day.volume, day.revision) == (3, 3, 1)


def test_days_are_those_of_the_market_of_an_instrument() -> None:
    """At 09:30 in New York, 13:30 UTC then, a day begins there; not in Seoul."""
    board, half_past_nine = make_board(), 13 * 60 + 30
    for minute in (half_past_nine - 1, half_past_nine):
        bars = [make_bar(isin, SUMMER + minute) for isin in (A, AMERICAN)]
        publish(board, bars, (SUMMER + minute + 1) * MINUTE)
    assert board.days[A].bar.trades == 2
    assert board.days[AMERICAN].bar.trades == 1
    assert board.days[AMERICAN].bar.start_ms == (SUMMER + half_past_nine) * MINUTE


def test_a_poorer_bar_changes_nothing_and_is_counted() -> None:
    """It comes after a checkpoint was lost, of a log that has lost trades."""
    board = make_board()
    known = replace(make_bar(A, 0, trades=9), closed=True)
    publish(board, [make_bar(A, 0, trades=9)], MINUTE)
    changes = board.changes([make_bar(A, 0)], {(A, 0): known}, 2 * MINUTE)
    assert (changes.bars, changes.kept) == ((), 1)


def test_a_day_that_lost_its_high_is_folded_anew() -> None:
    """From all its bars; it stays as it is where some of them are gone."""
    board = make_board()
    high, other = make_bar(A, 0, 2, price=99), make_bar(A, 1, 3, price=30)
    publish(board, [high, other], 1)
    lower = replace(make_bar(A, 0, price=20), revision=1)
    changes = board.changes([lower], {}, 2)
    assert changes.narrowed == {A}
    assert changes.days[A].bar.high == 99
    folded = changes.refolded({A: [other, high]}, board.calendars).days[A]
    assert (folded.bar.high, folded.bar.low, folded.bar.trades) == (30, 20, 4)
    assert (folded.first_ms, folded.last_ms) == (high.start_ms, other.start_ms)
    assert changes.refolded({A: [high]}, board.calendars).days[A].bar.high == 99


def test_a_batch_that_failed_leaves_the_board_as_it_was() -> None:
    """Only what was published is taken over."""
    board = make_board()
    board.changes([make_bar(A, 0)], {}, 1)
    assert not board.open
    assert not board.newest
    assert not board.days
