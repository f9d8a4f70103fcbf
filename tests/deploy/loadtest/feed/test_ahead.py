"""Events drawn ahead: the same ones, and never at the price of being late."""

from collections.abc import Iterator

import pytest

from deploy.loadtest.feed.ahead import MOST, Ahead
from ingest.sources.event import Event


class Clock:
    """A clock that sleeping turns, and drawing an event."""

    def __init__(self) -> None:
        self.now = 100.0
        self.drawn = 0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Turn the clock."""
        self.now += seconds

    def events(self, count: int, seconds_each: float) -> Iterator[Event]:
        """Yield numbered events that take their time to make."""
        for number in range(count):
            self.now += seconds_each
            self.drawn += 1
            yield Event(number, "KR7005930003", b"")


@pytest.mark.parametrize("naps", [0, 1, 3])
def test_every_event_comes_once_and_in_order(naps: int) -> None:
    """However many were drawn while there was nothing to do."""
    clock = Clock()
    ahead = Ahead(clock.events(1_000, 0.00001), clock, clock.sleep)
    for _ in range(naps):
        ahead.sleep(0.004)
    assert [event.due_us for event in ahead] == list(range(1_000))


def test_a_sleep_draws_and_is_no_longer_for_it() -> None:
    """It draws as long as there is time and sleeps for the rest."""
    clock = Clock()
    ahead = Ahead(clock.events(10_000, 0.00001), clock, clock.sleep)
    ahead.sleep(0.01)
    assert clock.now == pytest.approx(100.01)
    assert 700 <= clock.drawn <= 900


def test_a_short_sleep_draws_nothing() -> None:
    """A piece of work could take longer than there is time."""
    clock = Clock()
    ahead = Ahead(clock.events(100, 0.00001), clock, clock.sleep)
    ahead.sleep(0.001)
    assert clock.now == pytest.approx(100.001)
    assert clock.drawn == 0


def test_events_drawn_ahead_are_bounded() -> None:
    """A feed with a slow schedule does not draw for ever."""
    clock = Clock()
    ahead = Ahead(clock.events(2 * MOST, 0.0), clock, clock.sleep)
    ahead.sleep(10.0)
    assert clock.drawn == MOST
    assert clock.now == pytest.approx(110.0)


def test_the_end_is_found_while_drawing() -> None:
    """What was drawn before it comes all the same."""
    clock = Clock()
    ahead = Ahead(clock.events(10, 0.0), clock, clock.sleep)
    ahead.sleep(1.0)
    ahead.sleep(1.0)
    assert clock.now == pytest.approx(102.0)
    assert len(list(ahead)) == 10
