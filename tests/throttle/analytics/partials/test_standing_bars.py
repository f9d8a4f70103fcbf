"""What is taken back leaves bars, days and spans, whenever, and whatever was read."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import many
from tests.throttle.analytics import bar_oracle
from tests.throttle.analytics.analytics_rig import fields_of
from tests.throttle.analytics.bar_entries import (
    RULES,
    START_MS,
    TAKING_ENTRIES,
    trade_of,
)
from tests.throttle.analytics.bar_oracle import Entry, Rules
from throttle.analytics.partials import standing_prices, taken_back
from throttle.standing import entry_budget
from throttle.testing.analytics_driver import AnalyticsDriver

MINUTE = 60_000
A = "KR7005930003"


def driver_of(products: str, **more: Any) -> AnalyticsDriver:
    """Return a job in memory."""
    own = {"movers_span_s": 60, "lateness_s": RULES.lateness_ms // 1_000, **more}
    return AnalyticsDriver(analytics=products, **own)


def append(driver: AnalyticsDriver, entries: Sequence[Entry]) -> list[Entry]:
    """Append entries by their times; return them as the log has them."""
    placed = []
    for entry in sorted(entries, key=lambda entry: entry.append_ms):
        at_ms, wire = entry.append_ms - START_MS, trade_of(entry).to_wire()
        where = driver.payload(wire, at_ms=at_ms, partition=entry.partition)
        placed.append(entry._replace(position=where))
    return placed


@settings(max_examples=many(60), deadline=None)
@given(TAKING_ENTRIES, st.lists(st.integers(0, 600_000), max_size=4), st.data())
def test_bars_and_days_are_those_of_what_stands(
    entries: list[Entry], clocks: list[int], data: st.DataObject
) -> None:
    """Batch by batch, with restarts between them; and the books balance."""
    batch_ms = data.draw(st.sampled_from([10_000, 60_000]))
    driver = driver_of("bars", analytics_batch_ms=batch_ms)
    log = append(driver, entries)
    for to_ms in [*sorted(clocks), 700_000]:
        driver.turn_clock(to_ms)
        if data.draw(st.booleans()):
            driver.restart_job()
    expected, too_late = bar_oracle.bars(log, RULES)
    bars = {(bar.isin, bar.start_ms): bar for bar in driver.bars()}
    assert {place: fields_of(bar) for place, bar in bars.items()} == expected
    bounds = {(d.bar.start_ms, d.bar.end_ms) for d in driver.days().values()}
    of_days = dict(bar_oracle.days(expected, sorted(bounds)))
    for isin, day in driver.days().items():
        assert fields_of(day.bar) == of_days[isin, day.bar.start_ms]
    tally = driver.tally("bars")
    assert (tally.too_late, tally.unaccounted) == (too_late.total(), 0)
    assert tally.counted - tally.taken_back == sum(b.trades for b in bars.values())


@settings(max_examples=many(40), deadline=None)
@given(TAKING_ENTRIES, st.integers(1, 30))
def test_a_span_has_what_stands_when_it_is_over(
    entries: list[Entry], spans: int
) -> None:
    driver = driver_of("movers")
    log = append(driver, entries)
    driver.turn_clock(START_MS % 10_000 + spans * 10_000 + 1_000)
    movers = driver.movers()
    if not movers:
        return
    expected = bar_oracle.span(log, movers["end"], Rules())
    assert movers["instruments"] == len(expected)
    for row in movers["value"]:
        of_it = expected[row["isin"]]
        assert (row["trades"], row["volume"]) == (of_it["trades"], of_it["volume"])
        for name in ("open", "high", "low", "close"):
            assert row[name] == of_it[name]


def test_a_bar_may_lose_all_that_it_had() -> None:
    """It stays, without a price: it was shown."""
    driver = driver_of("bars")
    driver.trade(A, "100", at_ms=500, seq=1)
    driver.turn_clock(3_000)
    driver.cancel(A, 1, at_ms=3_500)
    driver.turn_clock(6_000)
    [bar] = driver.bars()
    assert (bar.trades, bar.volume, bar.open, bar.high, bar.vwap) == (
        *(0, 0, None, None, None),
    )
    assert bar.revision == 1
    assert driver.days()[A].bar.high is None


def test_a_day_loses_the_price_that_a_bar_of_hours_ago_had() -> None:
    """As long as a late trade would amend that bar."""
    driver = driver_of("bars", lateness_s=7_200)
    for minute, price in enumerate(("100", "999", "101")):
        at_ms = minute * MINUTE + 500
        driver.trade(A, price, at_ms=at_ms, seq=minute)
    driver.turn_clock(90 * MINUTE)
    driver.cancel(A, 1, at_ms=90 * MINUTE + 500)
    driver.turn_clock(90 * MINUTE + 3_000)
    day = driver.days()[A].bar
    assert (day.high, day.low, day.trades, day.revision) == (101, 100, 2, 1)
    driver.cancel(A, 2, at_ms=124 * MINUTE)
    driver.turn_clock(130 * MINUTE)
    assert driver.days()[A].bar.trades == 2
    tally = driver.tally("bars")
    assert (tally.taken_back, tally.not_taken_back) == (1, 1)


def test_what_is_not_found_changes_nothing_and_is_counted() -> None:
    driver = driver_of("bars")
    driver.trade(A, "100", at_ms=500, seq=1)
    driver.cancel(A, 7, at_ms=600)
    driver.turn_clock(3_000)
    [bar] = driver.bars()
    assert (bar.trades, bar.revision) == (1, 0)
    tally = driver.tally("bars")
    assert (tally.taken_back, tally.not_taken_back) == (0, 1)


@pytest.mark.parametrize("bound", ["sums", "prices"])
def test_looking_back_is_bounded(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing is taken back; or sums are right, prices those of all trades."""
    if bound == "sums":
        monkeypatch.setattr(taken_back, "MOST_ENTRIES", 0)
    else:
        monkeypatch.setattr(entry_budget, "MOST_ENTRIES", 0)
        monkeypatch.setattr(entry_budget, "LEAST_ENTRIES", 0)
    driver = driver_of("bars")
    driver.trade(A, "100", at_ms=500, seq=1)
    driver.trade(A, "999", at_ms=600, seq=2)
    driver.turn_clock(3_000)
    driver.cancel(A, 2, at_ms=3_500)
    driver.turn_clock(6_000)
    [bar] = driver.bars()
    assert (bar.trades, bar.high) == ((2, 999) if bound == "sums" else (1, 999))


def test_looking_back_goes_on_with_the_next_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Little by little; what was found is not read again, so it stays right."""
    monkeypatch.setattr(entry_budget, "MOST_ENTRIES", 0)
    monkeypatch.setattr(entry_budget, "LEAST_ENTRIES", 15)
    driver = driver_of("bars", analytics_batch_ms=1_000)
    driver.trade(A, "999", at_ms=100, seq=1)
    for seq in range(2, 40):
        driver.trade(A, "100", at_ms=100 * seq, seq=seq)
    driver.turn_clock(5_000)
    driver.cancel(A, 1, at_ms=5_100)
    highs = []
    for seq in range(40, 85):
        at_ms = 5_200 + 1_000 * (seq - 40)
        driver.trade(A, "101", at_ms=at_ms, seq=seq)
        driver.turn_clock(at_ms + 1_000)
        highs.append(int(driver.bars()[0].high or 0))
    assert set(highs[:2]) == {999}
    assert set(highs[-10:]) == {101}
    assert highs == sorted(highs, reverse=True)


def test_what_was_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read anew then, of more instruments than one, and right all the same."""
    monkeypatch.setattr(standing_prices, "MOST_KEPT", 3)
    driver, isins = driver_of("bars"), [A, "KR7000660001"]
    for number in range(10):
        at_ms = 2_000 * number
        for isin in isins:
            driver.trade(isin, "100", at_ms=at_ms, seq=3 * number)
            driver.trade(isin, "999", at_ms=at_ms + 1, seq=3 * number + 1)
        driver.cancel(isins[number % 2], 3 * number + 1, at_ms=at_ms + 2)
        driver.turn_clock(at_ms + 2_000)
    driver.turn_clock(24_000)
    volumes = {bar.isin: (bar.high, bar.trades) for bar in driver.bars()}
    assert volumes == dict.fromkeys(isins, (999, 15))


def test_what_a_query_never_counted_it_does_not_lose() -> None:
    """One that begins with what is new, and a cancel of a trade from before."""
    driver = driver_of("bars")
    driver._queries["bars"].since_ms = START_MS + 1_000
    driver.trade(A, "100", at_ms=500, seq=1)
    driver.trade(A, "101", at_ms=1_500, seq=2)
    driver.cancel(A, 1, at_ms=1_600)
    driver.turn_clock(3_000)
    [bar] = driver.bars()
    assert (bar.trades, driver.tally("bars").not_taken_back) == (2, 1)


def test_a_trade_that_the_log_has_twice_is_taken_back_twice() -> None:
    """As after a feed's second attempt, however far apart the two are."""
    driver = driver_of("bars")
    for at_ms in (100, 15_000):
        driver.trade(A, "999", at_ms=at_ms, time_ms=100, seq=1)
        driver.turn_clock(at_ms + 4_000)
    driver.trade(A, "100", at_ms=29_000, seq=2)
    driver.cancel(A, 1, at_ms=30_100)
    driver.turn_clock(34_000)
    [bar] = driver.bars()
    assert (bar.trades, bar.high) == (1, 100)
    assert driver.tally("bars").taken_back == 2
