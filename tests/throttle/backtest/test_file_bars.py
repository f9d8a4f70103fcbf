"""Bars of a file are those of the oracle, of the trades that stand."""

from hypothesis import given, settings

from ingest.trade import Trade
from tests.examples import many
from tests.throttle.analytics import bar_oracle
from tests.throttle.analytics.analytics_rig import fields_of
from tests.throttle.analytics.bar_entries import TAKING_ENTRIES, trade_of
from tests.throttle.analytics.bar_oracle import Entry, Rules
from throttle.backtest.file_bars import bars_of_log
from throttle.backtest.file_windows import TimedEntries

NOW_US = 1_773_964_800_000_000


@settings(max_examples=many(80))
@given(TAKING_ENTRIES)
def test_bars_are_those_of_the_trades_that_stand(entries: list[Entry]) -> None:
    """Whatever trades count for, whatever is cancelled or corrected later."""
    ordered = sorted(entries, key=lambda entry: entry.time_us)
    log = [
        entry._replace(append_ms=entry.time_us // 1_000, partition=0, position=n)
        for n, entry in enumerate(ordered)
    ]
    made, unfit = bars_of_log(
        TimedEntries((entry.time_us, trade_of(entry).to_wire()) for entry in log),
        bar_oracle.MINUTE_MS,
    )
    expected, _ = bar_oracle.bars(log, Rules(lateness_ms=2**50))
    left = {place: bar for place, bar in expected.items() if bar["trades"]}
    standing = {place: {**bar, "revision": 0} for place, bar in left.items()}
    assert {(bar.isin, bar.start_ms): fields_of(bar) for bar in made} == standing
    assert all(bar.closed for bar in made)
    assert unfit == 0


def test_a_number_that_no_bar_can_hold_is_counted() -> None:
    """The others are in their bar."""
    numbers = (("5", "1"), ("9" * 18, "9" * 18))
    trades = [
        (NOW_US, Trade("KR7005930003", NOW_US, seq, price, size).to_wire())
        for seq, (price, size) in enumerate(numbers)
    ]
    [bar], unfit = bars_of_log(TimedEntries(trades), 60_000)
    assert (bar.trades, unfit) == (1, 1)


def test_no_trade_no_bar() -> None:
    """A file of cancels alone."""
    cancel = Trade.from_fields({"isin": "KR7005930003", "time": NOW_US, "cancels": 1})
    assert bars_of_log(TimedEntries([(NOW_US, cancel.to_wire())]), 60_000) == ([], 0)
