"""The simulated market: the same every time, and like a market."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice, pairwise
from math import inf
from typing import Any

import pytest

from ingest.sources.event import Event
from ingest.sources.market import daily_limits, price_step
from ingest.sources.rate_profile import Profile
from ingest.sources.simulator import MAX_DELAY_US, Simulator, day_factor
from ingest.trade import REASONS, InvalidTrade, Trade, check_not_ahead

START_US = 1_773_964_800_000_000


def make_events(seconds: float = 20, **options: Any) -> list[Event]:
    """The events of a market that trades for some seconds."""
    return list(Simulator(seconds=seconds, **options).events(START_US))


def make_trades(events: Iterable[Event]) -> list[Trade]:
    """The events' trades; every one is valid."""
    return [Trade.from_wire(event.payload) for event in events]


def test_same_options_give_the_same_bytes() -> None:
    """A seed and a start decide every event, whenever they are asked for."""
    options = {"seed": 3, "malformed": 0.05, "shape": "day", "session_s": 5}
    assert make_events(5, **options) == make_events(5, **options)
    assert make_events(5, seed=3) != make_events(5, seed=4)


def test_start_moves_the_stamps_alone() -> None:
    """Another start gives the same trades at other exchange times."""
    simulator = Simulator(seconds=2)
    early = make_trades(simulator.events(START_US))
    later = make_trades(simulator.events(START_US + 5_000))
    assert [trade.time_us + 5_000 for trade in early] == [t.time_us for t in later]
    assert [trade.price for trade in early] == [trade.price for trade in later]


def test_events_are_in_order_of_their_due_time() -> None:
    """A due time never goes back, even with every second trade late."""
    events = make_events(disorder=0.5, repeats=0.2, malformed=0.1)
    assert all(a.due_us <= b.due_us for a, b in pairwise(events))
    assert events[0].due_us >= 0


@pytest.mark.parametrize(
    ("rate", "lowest", "highest"), [(600, 300, 500), (900, 400, 700)]
)
def test_two_seconds_touch_as_many_instruments_as_a_real_market(
    rate: int, lowest: int, highest: int
) -> None:
    """600 to 900 trades a second fall on 300 to 700 of 2,879 in two seconds."""
    for seed in range(2):
        windows: dict[int, set[str]] = defaultdict(set)
        for event in make_events(10, rate=rate, seed=seed):
            windows[event.due_us // 2_000_000].add(event.key)
        windows.pop(5, None)  # what came late after the close
        assert all(lowest <= len(isins) <= highest for isins in windows.values())


def test_payload_is_what_the_codec_writes() -> None:
    """The fast encoding equals the contract's, byte for byte; the key is the ISIN."""
    for event in make_events(5):
        trade = Trade.from_wire(event.payload)
        assert trade.to_wire() == event.payload
        assert event.key == trade.isin


def test_prices_stay_on_the_grid_within_the_limits() -> None:
    """However long a market trades, no price leaves grid or daily limits."""
    simulator = Simulator(rate=20_000, instruments=20, seconds=5)
    limits = {i.isin: daily_limits(i.base_price) for i in simulator.listing()}
    trades = make_trades(simulator.events(START_US))
    for trade in trades:
        price = int(trade.price)
        lower, upper = limits[trade.isin]
        assert lower <= price <= upper
        assert price % price_step(price) == 0
    assert len({trade.price for trade in trades}) > 100


def test_one_instrument_s_numbers_add_up() -> None:
    """In order of version: seq rises by one, totals by the trade, price by one step."""
    by_instrument: dict[str, dict[tuple[int, int], Trade]] = defaultdict(dict)
    for trade in make_trades(make_events(disorder=0.1, repeats=0.1)):
        by_instrument[trade.isin][trade.version] = trade
    for trades in by_instrument.values():
        volume = value = 0
        for seq, (_, trade) in enumerate(sorted(trades.items()), start=1):
            volume += int(trade.size)
            value += int(trade.size) * int(trade.price)
            assert trade.seq == seq
            assert (trade.extra["cum_volume"], trade.extra["cum_value"]) == (
                volume,
                value,
            )
            assert trade.extra["side"] in ("B", "S")


@pytest.mark.parametrize("disorder", [0.0, 0.3])
def test_share_of_late_trades(disorder: float) -> None:
    """The asked share comes 1 to 500 ms after its exchange stamp, all else on time."""
    events = make_events(40, disorder=disorder, repeats=0)
    delays = [
        START_US + event.due_us - trade.time_us
        for event, trade in zip(events, make_trades(events), strict=True)
    ]
    late = [delay for delay in delays if delay]
    assert len(late) / len(delays) == pytest.approx(disorder, rel=0.15)
    assert all(1_000 <= delay <= MAX_DELAY_US for delay in late)


@pytest.mark.parametrize("repeats", [0.0, 0.2])
def test_share_of_repeats(repeats: float) -> None:
    """The asked share repeats a trade byte for byte, and no trade comes three times."""
    counts = Counter(event.payload for event in make_events(40, repeats=repeats))
    assert counts.total() == 30_000
    assert (counts.total() - len(counts)) / counts.total() == pytest.approx(
        repeats, rel=0.15
    )
    assert max(counts.values()) <= 2


def test_repeats_find_nothing_to_repeat_at_first() -> None:
    """A market that repeats all it can repeats every trade once."""
    counts = Counter(event.payload for event in make_events(4, repeats=0.5, disorder=0))
    assert max(counts.values()) == 2


def test_share_of_malformed_trades() -> None:
    """The asked share is refused; the trades around them stay consistent."""
    events = make_events(20, malformed=0.1, disorder=0, repeats=0)
    refused = Counter[str]()
    seqs: dict[str, int] = defaultdict(int)
    for event in events:
        try:
            trade = Trade.from_wire(event.payload)
            check_not_ahead(trade, START_US + event.due_us, 1_000_000)
        except InvalidTrade as error:
            refused[error.reason] += 1
            continue
        seqs[trade.isin] += 1
        assert trade.seq == seqs[trade.isin]
    assert refused.total() / len(events) == pytest.approx(0.1, rel=0.15)
    assert set(refused) == {*REASONS} - {"not_decoded", "old_stamp"}


@pytest.mark.parametrize("shape", ["flat", "day"])
@pytest.mark.parametrize("rate", [0.5, 750.0])
def test_mean_rate_is_the_asked_one(shape: str, rate: float) -> None:
    """Over the whole session there are rate x seconds events, give or take 1 %."""
    events = make_events(40, rate=rate, shape=shape, session_s=40)
    assert len(events) == pytest.approx(rate * 40, rel=0.01, abs=1)


def test_day_is_busy_at_both_ends() -> None:
    """A day opens at 1.5 times the mean or more, rests at midday, closes busily."""
    events = make_events(100, shape="day", session_s=100)
    per_tenth = Counter(min(9, event.due_us // 10_000_000) for event in events)
    mean = len(events) / 10
    assert per_tenth[0] > 1.4 * mean
    assert per_tenth[5] < 0.8 * mean
    assert per_tenth[9] > 1.15 * mean
    assert day_factor(0.0) > 1.5
    assert day_factor(1.0) > 1.5


def test_day_begins_again_after_its_session() -> None:
    """The second day is as busy in its opening as the first."""
    events = make_events(40, shape="day", session_s=20)
    opening = sum(event.due_us < 2_000_000 for event in events)
    again = sum(20_000_000 <= event.due_us < 22_000_000 for event in events)
    assert again == pytest.approx(opening, rel=0.05)


def test_there_are_bursts_within_a_second() -> None:
    """In every two seconds one tenth of a second has three times the mean or more."""
    slots = Counter(event.due_us // 100_000 for event in make_events(20))
    for begin in range(0, 200, 20):
        assert max(slots[slot] for slot in range(begin, begin + 20)) > 3 * 75


def test_market_without_an_end_is_lazy() -> None:
    """Events are made as they are asked for."""
    first = list(islice(Simulator().events(START_US), 1_000))
    assert len(first) == 1_000
    assert first == list(islice(Simulator(seconds=1_000).events(START_US), 1_000))


def test_shares_are_at_most_one_together() -> None:
    with pytest.raises(ValueError, match="must be at most 1"):
        Simulator(disorder=0.6, malformed=0.6)


def test_a_profile_says_all_about_the_rate() -> None:
    """Every slot of 10 ms has its trades, bursts and silences included."""
    profile = Profile.parse("500:1s,0:1s,500..1500:2s,1700/100ms@3s")
    options = {"disorder": 0.0, "repeats": 0.1, "malformed": 0.1}
    events = make_events(profile=profile, seconds=10, **options)
    slots = Counter(event.due_us // 10_000 for event in events)
    assert slots == {
        from_us // 10_000: trades for from_us, _, trades in profile.slots() if trades
    }
    assert len(events) == 500 + 2_000 + 1_700
    assert Simulator(profile=profile).total == pytest.approx(len(events))
    early = make_events(profile=profile, seconds=0.5, **options)
    assert early == events[: len(early)]
    assert len(early) == Simulator(profile=profile, seconds=0.5).total == 250


def test_a_profile_s_repeats_are_as_old_as_others() -> None:
    """A quarter second at a low rate, as after a step down from a high one."""
    events = make_events(
        profile=Profile.parse("10000:1s,40:5s"), repeats=0.3, disorder=0.0, seconds=6
    )
    first: dict[bytes, int] = {}
    ages_us = [
        event.due_us - first.setdefault(event.payload, event.due_us)
        for event in events
        if event.due_us > 3_000_000
    ]
    again = [age_us for age_us in ages_us if age_us]
    assert len(again) > 20
    assert max(again) < 2_500_000


def test_what_takes_time_is_done_before_the_start() -> None:
    """A prepared market yields what ``events`` yields."""
    market = Simulator(seconds=1)
    assert list(market.prepare()(START_US)) == list(market.events(START_US))


def test_the_rate_and_the_time_give_a_total() -> None:
    """Without an end there is none."""
    assert Simulator(rate=10, seconds=6).total == 60
    assert Simulator().total == inf
