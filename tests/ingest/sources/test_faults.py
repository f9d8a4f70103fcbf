"""A feed made worse: exactly as much as asked."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from random import Random

import pytest

from ingest.sources.event import Event
from ingest.sources.faults import MAX_DELAY_US, REPEAT_AFTER_US, Faults, break_trade
from ingest.sources.simulator import Simulator
from ingest.sources.tape import TapeError
from ingest.trade import REASONS, InvalidTrade, Trade, check_not_ahead

START_US = 1_773_964_800_000_000
EVENTS = list(Simulator(seconds=8, disorder=0, repeats=0).events(START_US))


def make_faulty(**options: float) -> list[Event]:
    """The events of a market after something was done to them."""
    return list(Faults(**options).inject(EVENTS))


def is_valid(event: Event) -> bool:
    """Whether its trade would be taken."""
    try:
        trade = Trade.from_wire(event.payload)
        check_not_ahead(trade, START_US + event.due_us, 10**9)
    except InvalidTrade:
        return False
    return True


def test_nothing_is_done_unless_asked_for() -> None:
    """Without a share the events go out as they come in."""
    assert make_faulty() == EVENTS


def test_held_up_events_keep_their_stamps() -> None:
    """The asked share comes 1 to 500 ms late, everything else on time."""
    events = make_faulty(disorder=0.2)
    assert all(one.due_us <= other.due_us for one, other in pairwise(events))
    due_us = {event.payload: event.due_us for event in EVENTS}
    delays = [event.due_us - due_us[event.payload] for event in events]
    late = [delay for delay in delays if delay]
    assert len(events) == len(EVENTS)
    assert len(late) == pytest.approx(0.2 * len(EVENTS), rel=0.1)
    assert min(late) >= 1_000
    assert MAX_DELAY_US * 0.9 < max(late) <= MAX_DELAY_US


def test_repeats_come_on_top() -> None:
    """Byte for byte, a quarter second later."""
    events = make_faulty(repeats=0.1)
    assert all(one.due_us <= other.due_us for one, other in pairwise(events))
    twice = [p for p, n in Counter(event.payload for event in events).items() if n > 1]
    assert len(twice) == len(events) - len(EVENTS)
    assert len(twice) == pytest.approx(0.1 * len(EVENTS), rel=0.1)
    dues = [event.due_us for event in events if event.payload == twice[0]]
    assert dues[1] - dues[0] == REPEAT_AFTER_US


def test_broken_copies_come_on_top() -> None:
    """All trades are still there, and the asked share of broken ones beside them."""
    events = make_faulty(malformed=0.1)
    assert [event for event in events if is_valid(event)] == EVENTS
    assert len(events) == pytest.approx(1.1 * len(EVENTS), rel=0.02)


def test_any_instrument_s_trade_can_be_broken() -> None:
    """Not only those of the market that the simulator knows."""
    trade = Trade("US0378331005", START_US, 1, "1.50", "1")
    events = [Event(0, trade.isin, trade.to_wire())] * 500
    broken = list(Faults(malformed=1.0).inject(events))[1::2]
    assert len(broken) == 500
    assert not any(map(is_valid, broken))


def test_the_same_seed_does_the_same() -> None:
    """Another one does not."""
    options = {"disorder": 0.1, "repeats": 0.1, "malformed": 0.1}
    assert (
        make_faulty(**options)
        == make_faulty(**options)
        != make_faulty(**options, seed=2)
    )


def test_an_endless_feed_is_spoiled_as_it_comes() -> None:
    """Nothing waits for an end."""
    market = Simulator().events(START_US)
    assert len(list(islice(Faults(disorder=1.0).inject(market), 100))) == 100


def test_what_is_held_comes_before_an_error_of_the_feed() -> None:
    """A damaged tape loses nothing of what was before the damage."""

    def breaking_off() -> Iterator[Event]:
        yield from EVENTS[:50]
        raise TapeError(Path("day.csv"), "damaged")

    came = []
    with pytest.raises(TapeError, match="damaged"):
        came.extend(Faults(disorder=1.0).inject(breaking_off()))
    assert sorted(event.payload for event in came) == sorted(
        event.payload for event in EVENTS[:50]
    )


GOOD = Trade("KR7005930003", 1_773_964_804_000_000, 1, "199500", "3").to_wire()


def refusal_of(payload: bytes) -> str:
    """The reason a broken trade is refused for."""
    with pytest.raises(InvalidTrade) as caught:
        check_not_ahead(Trade.from_wire(payload), 1_773_964_804_000_000, 1_000_000)
    return caught.value.reason


def test_every_broken_trade_is_refused_and_every_reason_occurs() -> None:
    """No kind passes, and none of the trade's rules goes unused.

    A user's decoder alone can say that an entry cannot be decoded.
    """
    rng = Random(1)
    found = {refusal_of(break_trade(rng, GOOD)) for _ in range(500)}
    assert found == {*REASONS} - {"not_decoded", "old_stamp"}
