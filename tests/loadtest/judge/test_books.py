"""The ledger's movement, and waiting for it."""

from dataclasses import replace

import pytest
import redis

from loadtest.judge.books import movement, wait_for_books
from throttle.audit.published import PublishedHistory
from throttle.contract.cut import Cut
from throttle.contract.ledger import Books, Ledger
from throttle.testing.driver import START_MS, ThrottleDriver

A = "KR7005930003"


def make_ledger(books: Books, windows: int = 1, log: int | None = None) -> Ledger:
    since, upto = Cut(2_000, (0,), (0,)), Cut(4_000, (9,), (9,))
    return Ledger("throttle", since, upto, 1, windows, (books,), (log,), 4_000)


BEFORE = make_ledger(Books(10, 5, 3, 1, {"bad_isin": 1}))
REFUSED = {"bad_isin": 1, "not_json": 2}
AFTER = make_ledger(Books(22, 9, 6, 2, REFUSED, not_last=2), 5)


def test_a_movement_is_what_was_added() -> None:
    """By what became of the trades, refusals by reason; those without any left out."""
    moved = movement(BEFORE, AFTER)
    assert (moved.read, moved.published, moved.superseded, moved.stale) == (12, 4, 3, 1)
    assert moved.not_last == 2
    assert moved.refused == {"not_json": 2}
    assert moved.windows == 4
    assert moved.problems == []


def test_what_does_not_balance_is_said() -> None:
    """The ledger's own problems, and those of the movement alone."""
    for after, words in (
        (make_ledger(Books(21, 9, 6, 2, REFUSED), 5), "21"),
        (make_ledger(Books(20, 9, 6, 2, {"bad_isin": 1}), 5), "18 are accounted for"),
        (replace(AFTER, log=(23,)), "the log counted 23 trades"),
        (replace(AFTER, since=Cut(4_000, (5,), (5,))), "began anew during the run"),
        (make_ledger(Books(), 0), "began anew during the run"),
    ):
        assert words in "; ".join(movement(BEFORE, after).problems)


@pytest.mark.redis
def test_books_are_waited_for(redis_url: str, client: redis.Redis) -> None:
    """Until they pass a moment; the newest there is when they do not."""
    past = PublishedHistory(client, "tt")
    assert wait_for_books(past, "throttle", 0, within_s=0) is None
    with ThrottleDriver(redis_url=redis_url) as driver:
        driver.trade(A, "1", at_ms=100)
        driver.turn_clock(2_000)
        steps = iter(range(3_000, 9_000, 1_000))
        ledger = wait_for_books(
            past,
            "throttle",
            START_MS + 5_500,
            within_s=10,
            pause=lambda _: driver.turn_clock(next(steps)),
        )
        assert ledger is not None
        assert ledger.upto.end_ms == START_MS + 6_000
        assert movement(ledger, driver.ledger()).read == 0
        late = wait_for_books(past, "throttle", START_MS + 9_000, within_s=0)
        assert late == ledger
