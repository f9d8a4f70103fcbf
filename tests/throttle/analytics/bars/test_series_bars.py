"""Bars of series: each is what the trades of the series alone would have been."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.series import TradeSeries, instrument_of, is_series
from tests.examples import many
from tests.throttle.standing.test_series import SERIES, Step, fields_of, tapes
from throttle.contract.bars import Bar
from throttle.testing.analytics_driver import AnalyticsDriver

ISIN = "KR7005930003"
MINUTE = 60_000


def play(
    driver: AnalyticsDriver, tape: list[Step], only: TradeSeries | None = None
) -> None:
    """Append a tape, its moments thirty times as far apart; publish, and restart."""
    at_ms = 0
    for number, step in enumerate(tape):
        at_ms += 30 * step.after_ms
        fields = fields_of(step)
        if step.cancels is not None:
            driver.cancel(ISIN, step.cancels, at_ms=at_ms)
        elif only is None or only.has(fields):
            driver.trade(
                ISIN,
                str(step.price),
                at_ms=at_ms,
                time_ms=at_ms - 30 * step.late_ms,
                seq=number,
                size=str(step.size),
                **fields,
            )
        elif step.corrects is not None:
            # What a correction of another series takes back is taken back of each.
            driver.cancel(ISIN, step.corrects, at_ms=at_ms)
        if step.is_turned:
            driver.turn_clock(at_ms)
        if step.crash is not None:
            driver.restart_job()
    driver.turn_clock(at_ms + 5 * MINUTE)


def of_key(driver: AnalyticsDriver, key: str) -> list[Bar]:
    """Return the bars of a key, under the instrument's."""
    return [
        replace(bar, isin=instrument_of(bar.isin))
        for bar in driver.bars()
        if bar.isin == key
    ]


@settings(max_examples=many(40), deadline=None)
@given(tape=tapes, name=st.sampled_from(SERIES.split(",")))
def test_bars_of_a_series_are_those_of_its_trades(tape: list[Step], name: str) -> None:
    """Amended, taken back, and of its days; the instrument's own stay what they are."""
    series = TradeSeries.parse(name)
    every, alone, without = (
        AnalyticsDriver(analytics="bars", series=kept) for kept in (SERIES, "", "")
    )
    play(every, tape)
    play(alone, tape, series)
    play(without, tape)
    key = series.key(ISIN)
    assert of_key(every, key) == of_key(alone, ISIN)
    assert of_key(every, ISIN) == of_key(without, ISIN)
    days = {isin: day.bar for isin, day in every.days().items()}
    due = alone.days().get(ISIN)
    found = days.get(key)
    assert (found and replace(found, isin=ISIN)) == (due and due.bar)


def test_other_products_know_instruments_alone() -> None:
    """A series' trades are its instrument's, too: nobody shall count them twice."""
    driver = AnalyticsDriver(series="KRX", burst_trades=2, move_percent=1)
    for n in range(20):
        price = str(100 + n)
        driver.trade(ISIN, price, at_ms=100 * n, seq=n, venue="KRX")
    driver.turn_clock(10 * MINUTE)
    assert [bar.isin for bar in driver.bars()] == [ISIN, f"{ISIN}@KRX"]
    assert {row["isin"] for row in driver.movers()["gainers"]} <= {ISIN}
    told = [one.bar.isin for one in driver.bursts()]
    told += [move.isin for move in driver.moves()]
    assert told
    assert not any(map(is_series, told))
    assert driver.tally("bars").extra == 20
    assert driver.tally("movers").extra == 0
