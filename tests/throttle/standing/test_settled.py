"""Which trades stand, by the entries alone."""

from ingest.trade import Trade
from throttle.standing.settled import LoggedTrade, settle
from throttle.testing.driver import START_MS

A = "KR7005930003"


def trade(place: int, seq: int, *, time_ms: int = 0, **more: int | str) -> LoggedTrade:
    """Make a trade that came at a place of the log."""
    time_us = (START_MS + time_ms) * 1_000
    extra = dict(more)
    return LoggedTrade(place, 0, place, Trade(A, time_us, seq, "5", "1", extra))


def cancel(place: int, seq: int) -> LoggedTrade:
    """Make an entry that takes a trade back."""
    fields = {"isin": A, "time": START_MS * 1_000, "cancels": seq}
    return LoggedTrade(place, 0, place, Trade.from_fields(fields))


def test_what_nobody_takes_back_stands() -> None:
    """The newest one is the latest by time, not by place."""
    first, second = trade(1, 1, time_ms=9), trade(2, 2, time_ms=3)
    settled = settle([second, first])
    assert settled.standing == [first, second]
    assert settled.newest == first


def test_a_cancel_takes_the_newest_of_its_number() -> None:
    """A number that a feed uses again stands for the newest trade before the cancel."""
    old, new, after = trade(1, 7), trade(2, 7, time_ms=1), trade(4, 7, time_ms=2)
    settled = settle([old, new, cancel(3, 7), after])
    assert [one.trade for one in settled.taken_back] == [new]
    assert settled.standing == [old, after]


def test_what_is_in_the_log_twice_is_taken_back_as_one() -> None:
    """A feed that was not sure of its first attempt appended it again."""
    settled = settle([trade(1, 7), trade(2, 7), cancel(3, 7)])
    assert len(settled.taken_back) == 2
    assert settled.standing == []
    assert settled.newest is None


def test_in_a_partition_the_position_decides() -> None:
    """A writer of Kafka may stamp the cancel before the trade; one partition's order
    says nothing of another's.
    """
    only, late = trade(5, 7), cancel(6, 7)._replace(append_ms=2)
    settled = settle([only, late])
    assert ([one.trade for one in settled.taken_back], settled.standing) == ([only], [])
    elsewhere = cancel(6, 7)._replace(append_ms=4, partition=1)
    assert settle([only, elsewhere]).unknown == [elsewhere]


def test_a_second_cancel_finds_nothing() -> None:
    """Nor does one of a number that was never there."""
    again, unknown = cancel(3, 7), cancel(4, 99)
    assert settle([trade(1, 7), cancel(2, 7), again, unknown]).unknown == [
        again,
        unknown,
    ]


def test_a_correction_stands_in_the_place_of_the_other() -> None:
    """It may have the other one's number; a further one corrects the correction."""
    entries = [trade(1, 7), trade(2, 7, corrects=7), trade(3, 8, corrects=7)]
    settled = settle(entries)
    assert settled.standing == entries[2:]
    assert [one.trade for one in settled.taken_back] == entries[:2]


def test_a_correction_of_nothing_is_a_trade() -> None:
    """It stands, and its target is unknown."""
    only = trade(1, 7, corrects=3)
    settled = settle([only])
    assert (settled.standing, settled.unknown) == ([only], [only])


def test_a_trade_that_is_not_for_the_last_price_is_never_the_newest() -> None:
    """But it can be taken back."""
    first, block = trade(1, 1), trade(2, 2, time_ms=9, updates="volume")
    assert settle([first, block]).newest == first
    assert settle([first, block, cancel(3, 2)]).standing == [first]
