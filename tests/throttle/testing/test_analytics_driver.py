"""The test driver of analytics: the same scenarios by hand and through real Spark."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from json import loads
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import given, settings
from pyspark.sql import SparkSession

from ingest.redis_keys import PRODUCTS
from tests.throttle.analytics import bar_oracle
from tests.throttle.analytics.analytics_rig import PARTITIONS, AnalyticsRig, fields_of
from tests.throttle.analytics.bar_entries import ENTRIES, RULES, trade_of
from tests.throttle.analytics.bar_oracle import Entry
from throttle.contract.bars import Bar
from throttle.contract.products.bursts import TradingBurst
from throttle.contract.products.moves import Move
from throttle.contract.tally import QueryTally
from throttle.testing.analytics_driver import AnalyticsDriver
from throttle.testing.driver import START_MS, TradesByHand

A, B = "KR7005930003", "KR7000660001"
MINUTE = 60_000


class SparkAnalytics(TradesByHand):
    """The job through real Spark and Redis, driven as an ``AnalyticsDriver`` is."""

    def __init__(self, rig: AnalyticsRig) -> None:
        super().__init__(START_MS)
        self.rig = rig
        rig.set_clock(START_MS)
        rig.start()

    @property
    def partitions(self) -> int:
        return PARTITIONS

    def payload(self, payload: bytes, *, at_ms: int, partition: int = 0) -> int:
        return self.rig.append(START_MS + at_ms, payload, partition)

    def turn_clock(self, to_ms: int) -> None:
        self.rig.turn_clock(START_MS + to_ms)

    def restart_job(self) -> None:
        self.rig.stop()
        self.rig.start()

    def bars(self) -> list[Bar]:
        bars = self.rig.bars().values()
        return sorted(bars, key=lambda bar: (bar.start_ms, bar.isin))

    def movers(self) -> dict[str, Any]:
        stored: Any = self.rig.client.get(self.rig.keys.movers)
        movers: dict[str, Any] = loads(stored, parse_float=Decimal)
        return movers

    def bursts(self) -> list[TradingBurst]:
        stored: Any = self.rig.client.xrange(self.rig.keys.bursts)
        return [TradingBurst.decode(fields[b"burst"]) for _, fields in stored]

    def moves(self) -> list[Move]:
        stored: Any = self.rig.client.xrange(self.rig.keys.moves)
        return [Move.decode(fields[b"move"]) for _, fields in stored]

    def tally(self, product: str) -> QueryTally:
        total = QueryTally()
        for tally in self.rig.books(product).partitions.values():
            total.add(tally)
        return total


MakeAnalytics = Callable[..., AnalyticsDriver | SparkAnalytics]
IN_SPARK = [pytest.mark.redis, pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture(params=["by hand", pytest.param("spark", marks=IN_SPARK)])
def make_analytics(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[MakeAnalytics]:
    """Create drivers in memory, and jobs on Spark and Redis."""
    rigs: list[AnalyticsRig] = []

    def make(**settings: Any) -> AnalyticsDriver | SparkAnalytics:
        if request.param == "by hand":
            return AnalyticsDriver(movers_span_s=60, **settings)
        spark: SparkSession = request.getfixturevalue("spark")
        client: redis.Redis = request.getfixturevalue("client")
        rigs.append(AnalyticsRig(spark, client, tmp_path, **settings))
        return SparkAnalytics(rigs[-1])

    yield make
    for rig in rigs:
        rig.stop()


def test_a_bar_closes_and_is_amended_by_a_late_trade(
    make_analytics: MakeAnalytics,
) -> None:
    """Whether the job was started again meanwhile or not; later it is too late."""
    driver = make_analytics(analytics="bars", lateness_s=60)
    driver.trade(A, "70000", at_ms=100)
    driver.trade(B, "5", at_ms=1_500, size="2.5")
    driver.turn_clock(3_000)
    assert [bar.closed for bar in driver.bars()] == [False, False]
    driver.turn_clock(MINUTE + 1_000)
    driver.restart_job()
    driver.trade(A, "69900.5", at_ms=MINUTE + 2_000, time_ms=200, seq=1)
    driver.turn_clock(MINUTE + 5_000)
    driver.trade(A, "1", at_ms=2 * MINUTE + 1_000, time_ms=300, seq=2)
    driver.turn_clock(2 * MINUTE + 3_000)
    second, first = driver.bars()
    assert (first.isin, first.open, first.low, first.close) == (
        *(A, 70_000, Decimal("69900.5"), Decimal("69900.5")),
    )
    assert (first.closed, first.revision, first.trades) == (True, 1, 2)
    assert (second.isin, second.closed, second.value) == (B, True, Decimal("12.5"))
    tally = driver.tally("bars")
    assert (tally.read, tally.counted, tally.too_late) == (4, 3, 1)


def test_a_series_has_bars_of_its_own(make_analytics: MakeAnalytics) -> None:
    """Without what was taken back of it; other products know instruments alone."""
    driver = make_analytics(analytics="bars,movers", series="NXT", sessions="XKRX")
    driver.trade(A, "100", at_ms=100, seq=1, venue="KRX")
    driver.trade(A, "103", at_ms=200, seq=2, venue="NXT")
    driver.trade(A, "101", at_ms=300, seq=3, venue="NXT")
    driver.turn_clock(3_000)
    driver.cancel(A, 2, at_ms=4_000)
    driver.turn_clock(31_000)
    bars = {
        bar.isin: (bar.open, bar.high, bar.close, bar.trades) for bar in driver.bars()
    }
    assert bars == {A: (100, 101, 101, 2), f"{A}@NXT": (101, 101, 101, 1)}
    assert driver.movers()["instruments"] == 1
    tally = driver.tally("bars")
    assert (tally.read, tally.extra, tally.taken_back) == (4, 2, 1)
    assert driver.tally("movers").extra == 0


def test_movers_are_of_the_span_that_is_over(make_analytics: MakeAnalytics) -> None:
    """Across a restart; what a span no longer holds is not listed."""
    driver = make_analytics(analytics="movers")
    driver.trade(A, "100", at_ms=5_000)
    driver.turn_clock(11_000)
    driver.restart_job()
    driver.trade(A, "110", at_ms=25_000)
    driver.trade(B, "7", at_ms=26_000)
    driver.turn_clock(31_000)
    movers = driver.movers()
    assert (movers["end"], movers["instruments"]) == (START_MS + 30_000, 2)
    [gainer] = movers["gainers"]
    assert (gainer["isin"], gainer["percent"]) == (A, 10)
    driver.turn_clock(81_000)
    movers = driver.movers()
    assert (movers["instruments"], movers["gainers"]) == (2, [])


def test_a_burst_is_told_when_it_has_ended(make_analytics: MakeAnalytics) -> None:
    """Once; of fewer trades it is none, and one that goes on waits."""
    driver = make_analytics(analytics="bursts", burst_gap_ms=3_000, burst_trades=3)
    for number, at_ms in enumerate((100, 2_000, 4_900, 5_000)):
        driver.trade(A, str(10 + number), at_ms=at_ms, seq=number)
    driver.trade(B, "1", at_ms=5_100)
    driver.turn_clock(7_000)
    assert driver.bursts() == []
    driver.turn_clock(11_000)
    driver.turn_clock(15_000)
    [burst] = driver.bursts()
    assert (burst.bar.isin, burst.bar.trades, burst.bar.volume) == (A, 4, 4)
    assert (burst.bar.start_ms, burst.bar.end_ms) == (START_MS + 100, START_MS + 5_000)
    assert (burst.bar.open, burst.bar.close) == (10, 13)


def test_a_move_is_told_once(make_analytics: MakeAnalytics) -> None:
    """A price that stays up is one move; after a restart, too."""
    driver = make_analytics(analytics="moves", move_span_ms=5_000)
    driver.trade(A, "100", at_ms=500)
    driver.trade(A, "103", at_ms=1_500, seq=1)
    driver.turn_clock(3_000)
    driver.restart_job()
    driver.trade(A, "104", at_ms=3_500, seq=2)
    driver.trade(A, "99", at_ms=4_500, seq=3)
    driver.turn_clock(7_000)
    rise, fall = driver.moves()
    assert (rise.before, rise.after, rise.seq) == (100, 103, 1)
    assert (fall.before, fall.after, fall.seq) == (104, 99, 3)


def test_trades_count_for_what_they_say(make_analytics: MakeAnalytics) -> None:
    """All of them in the number of trades; a price that does not count is nowhere."""
    driver = make_analytics(
        analytics=",".join(PRODUCTS),
        burst_gap_ms=3_000,
        burst_trades=3,
        move_span_ms=5_000,
    )
    driver.trade(A, "100", at_ms=500)
    driver.trade(B, "7", at_ms=500, size="3", updates="volume")
    driver.trade(A, "150", at_ms=1_000, seq=1, size="2", updates="range,volume")
    driver.trade(B, "8", at_ms=1_000, seq=1, updates="none")
    driver.trade(A, "90", at_ms=1_500, seq=2, updates="volume")
    driver.trade(A, "200", at_ms=2_000, seq=3, size="5", updates="last")
    driver.trade(B, "9", at_ms=2_500, seq=2, updates="none")
    driver.turn_clock(11_000)
    driver.restart_job()
    driver.turn_clock(13_000)
    bars = {bar.isin: bar for bar in driver.bars()}
    whole, unpriced = bars[A], bars[B]
    assert (whole.open, whole.high, whole.low, whole.close) == (100, 150, 100, 200)
    assert (whole.volume, whole.value, whole.trades) == (4, 490, 4)
    assert (unpriced.open, unpriced.high, unpriced.low, unpriced.close) == (None,) * 4
    assert (unpriced.volume, unpriced.vwap, unpriced.trades) == (3, 7, 3)
    movers = driver.movers()
    assert [(m["isin"], m["percent"]) for m in movers["gainers"]] == [(A, 100)]
    assert [(m["isin"], m["percent"]) for m in movers["value"]] == [(A, 100), (B, None)]
    first, second = sorted((burst.bar for burst in driver.bursts()), key=str)
    assert (first.trades, first.start_ms, first.end_ms) == (
        *(3, START_MS + 500, START_MS + 2_500),
    )
    assert (first.open, second.close, second.end_ms) == (None, 200, START_MS + 2_000)
    [move] = driver.moves()
    assert (move.before, move.after) == (100, 200)
    driver.turn_clock(MINUTE + 1_000)
    driver.trade(B, "5", at_ms=MINUTE + 2_000, time_ms=100, seq=9)
    driver.turn_clock(MINUTE + 11_000)
    [bar] = (bar for bar in driver.bars() if bar.isin == B)
    assert (bar.open, bar.low, bar.trades, bar.revision) == (5, 5, 4, 1)
    for product in PRODUCTS:
        tally = driver.tally(product)
        assert (tally.counted + tally.too_late, tally.unaccounted) == (8, 0)


def test_a_trade_that_is_taken_back_leaves_bar_and_span(
    make_analytics: MakeAnalytics,
) -> None:
    """High and close are those of what stands, also once more was traded, when the job
    was started again, and when the bar had closed.
    """
    driver = make_analytics(analytics="bars,movers", lateness_s=60)
    driver.trade(A, "100", at_ms=500, seq=1)
    driver.trade(A, "999", at_ms=600, seq=2, size="5")
    driver.turn_clock(3_000)
    driver.cancel(A, 2, at_ms=3_500)
    driver.turn_clock(5_000)
    [bar] = driver.bars()
    assert (bar.high, bar.close, bar.volume, bar.trades, bar.revision) == (
        *(100, 100, 1, 1, 1),
    )
    driver.restart_job()
    driver.trade(A, "101", at_ms=6_000, seq=3)
    driver.trade(A, "90", at_ms=6_100, seq=4)
    driver.turn_clock(11_000)
    driver.restart_job()
    driver.trade(A, "98", at_ms=12_000, time_ms=6_100, seq=5, corrects=4)
    driver.turn_clock(21_000)
    movers = driver.movers()
    [row] = movers["value"]
    assert (row["low"], row["high"], row["close"], row["trades"]) == (98, 101, 98, 3)
    driver.turn_clock(MINUTE + 1_000)
    driver.cancel(A, 3, at_ms=MINUTE + 2_000)
    driver.turn_clock(MINUTE + 5_000)
    driver.cancel(A, 1, at_ms=2 * MINUTE + 1_000)
    driver.turn_clock(2 * MINUTE + 3_000)
    [bar] = driver.bars()
    assert (bar.open, bar.high, bar.low, bar.close) == (100, 100, 98, 98)
    assert (bar.closed, bar.trades, bar.volume, bar.revision) == (True, 2, 2, 3)
    tally = driver.tally("bars")
    assert (tally.counted, tally.taken_back, tally.not_taken_back) == (5, 3, 1)
    assert tally.unaccounted == 0


@settings(max_examples=25)
@given(ENTRIES)
def test_bars_and_bursts_by_hand_are_those_of_the_oracle(entries: list[Entry]) -> None:
    """Whatever came in which order, batch by batch."""
    driver = AnalyticsDriver(
        analytics="bars,bursts",
        analytics_batch_ms=60_000,
        burst_gap_ms=600_000,
        burst_trades=2,
        lateness_s=RULES.lateness_ms // 1_000,
    )
    appended = sorted(entries, key=lambda entry: entry.append_ms)
    # A position is a place in the log.
    ordered = [e._replace(position=n) for n, e in enumerate(appended)]
    ahead = max(e.time_us // 1_000 - e.append_ms for e in ordered)
    for entry in ordered:
        at_ms, wire = entry.append_ms - START_MS, trade_of(entry).to_wire()
        driver.payload(wire, at_ms=at_ms, partition=entry.partition)
    for to_ms in range(MINUTE, 30 * MINUTE, 3 * MINUTE):
        driver.turn_clock(to_ms + 1_000)
    expected, too_late = bar_oracle.bars(ordered, RULES)
    bars = {(bar.isin, bar.start_ms): fields_of(bar) for bar in driver.bars()}
    assert bars == expected
    assert driver.tally("bars").too_late == too_late.total()
    if ahead <= 0:
        bursts = bar_oracle.bursts(ordered, 600_000, 2)
        ended = [burst.bar for burst in driver.bursts()]
        assert {(b.isin, b.start_ms, b.end_ms): fields_of(b) for b in ended} == {
            tuple(place): {**sums, "revision": 0} for *place, sums in bursts
        }
