"""A feed made worse: exactly as much as asked."""

from collections import Counter
from itertools import islice, pairwise

import pytest

from ingest.event import Event
from ingest.simulator import Simulator
from ingest.spoil import MAX_DELAY_US, REPEAT_AFTER_US, Spoil
from ingest.trade import InvalidTrade, Trade, check_not_ahead

START_US = 1_773_964_800_000_000
EVENTS = list(Simulator(seconds=8, disorder=0, repeats=0).events(START_US))


def spoil(**options: float) -> list[Event]:
    """The events of a market after something was done to them."""
    return list(Spoil(**options).spoil(EVENTS))


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
    assert spoil() == EVENTS


def test_held_up_events_keep_their_stamps() -> None:
    """The asked share comes 1 to 500 ms late, everything else on time."""
    events = spoil(disorder=0.2)
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
    events = spoil(repeats=0.1)
    assert all(one.due_us <= other.due_us for one, other in pairwise(events))
    twice = [p for p, n in Counter(event.payload for event in events).items() if n > 1]
    assert len(twice) == len(events) - len(EVENTS)
    assert len(twice) == pytest.approx(0.1 * len(EVENTS), rel=0.1)
    dues = [event.due_us for event in events if event.payload == twice[0]]
    assert dues[1] - dues[0] == REPEAT_AFTER_US


def test_broken_copies_come_on_top() -> None:
    """All trades are still there, and the asked share of broken ones beside them."""
    events = spoil(malformed=0.1)
    assert [event for event in events if is_valid(event)] == EVENTS
    assert len(events) == pytest.approx(1.1 * len(EVENTS), rel=0.02)


def test_any_issue_s_trade_can_be_broken() -> None:
    """Not only those of the market that the simulator knows."""
    trade = Trade("US0378331005", START_US, 1, "1.50", "1")
    events = [Event(0, trade.isin, trade.to_wire())] * 500
    broken = list(Spoil(malformed=1.0).spoil(events))[1::2]
    assert len(broken) == 500
    assert not any(map(is_valid, broken))


def test_the_same_seed_does_the_same() -> None:
    """Another one does not."""
    options = {"disorder": 0.1, "repeats": 0.1, "malformed": 0.1}
    assert spoil(**options) == spoil(**options) != spoil(**options, seed=2)


def test_an_endless_feed_is_spoiled_as_it_comes() -> None:
    """Nothing waits for an end."""
    market = Simulator().events(START_US)
    assert len(list(islice(Spoil(disorder=1.0).spoil(market), 100))) == 100


@pytest.mark.parametrize("name", ["disorder", "repeats", "malformed"])
@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_is_from_0_to_1(name: str, share: float) -> None:
    """Everything else is refused by name."""
    with pytest.raises(ValueError, match=rf"{name} {share}: must be from 0 to 1"):
        Spoil(**{name: share})
    assert Spoil(**{name: 0.5}).factor == (1.0 if name == "disorder" else 1.5)
