"""Each product through real Spark, compared with an oracle over real tapes."""

import itertools
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest
import redis
from pyspark.sql import SparkSession

from ingest.sources.event import Refusals
from ingest.sources.tape import read_tape
from ingest.trade import Trade
from tests.conftest import TAPES, eventually, leave_out
from tests.gateway.bar_listener import check_clients, listening
from tests.gateway.samples import make_isins
from tests.gateway.servers import running_gateway
from tests.throttle.analytics import bar_oracle
from tests.throttle.analytics.analytics_rig import (
    START_MS,
    STORES,
    AnalyticsRig,
    CrashPoint,
    fields_of,
)
from tests.throttle.analytics.bar_oracle import Rules
from tests.throttle.analytics.moves import move_oracle
from tests.throttle.analytics.moves.move_oracle import MoveRules, moves_in
from throttle.analytics.analytics_job import AnalyticsFailed
from throttle.analytics.batch_bars import shown_bars
from throttle.analytics.bursts.burst_product import open_bursts
from throttle.analytics.moves.moves_product import trades_in_state
from throttle.analytics.product_query import BadCheckpoint
from throttle.analytics.tumbling_bars import bars_in_state
from throttle.contract.bars import Bar, BarsUpdate
from throttle.contract.products.bar_log import BarLogEntry
from throttle.contract.products.bursts import TradingBurst

pytestmark = [pytest.mark.redis, pytest.mark.spark, pytest.mark.timeout(300)]

A, B = make_isins(2)
MINUTE = 60_000
SAID = (*[None] * 4, "none", "range,volume", "last,volume", "last,range")
MakeRig = Callable[..., AnalyticsRig]


@pytest.fixture
def make_rig(
    spark: SparkSession, client: redis.Redis, tmp_path: Path
) -> Iterator[MakeRig]:
    """Make rigs, on one server and one folder; what runs is stopped."""
    made: list[AnalyticsRig] = []

    def make(**settings: Any) -> AnalyticsRig:
        made.append(AnalyticsRig(spark, client, tmp_path, **settings))
        return made[-1]

    yield make
    for rig in made:
        rig.stop()


def trade(isin: str, at_ms: int, price: str, seq: int = 1, size: str = "2") -> Trade:
    """Make a trade at so many milliseconds after the start."""
    return Trade(isin, (START_MS + at_ms) * 1_000, seq, price, size)


def add_tape(
    rig: AnalyticsRig,
    name: str,
    trades: int,
    late: bool = True,
    disorder_ms: int = 40,
    takes_back: bool = False,
) -> tuple[int, int]:
    """Append a tape's trades, some late, some disordered; return first and last time.

    One in fifty comes up to ten minutes late, one in a hundred up to three hours; all
    others by less than ``disorder_ms``. Half of them say what they count for. With
    ``takes_back`` one in fifteen is cancelled and one in fifteen corrects the one
    before it, up to three hours later.
    """
    path = TAPES / name
    if not path.exists():
        leave_out(f"the tape {name}")
    chance = random.Random(7)
    taken = list(itertools.islice(read_tape(path, Refusals()), trades))
    first_ms = taken[0].time_us // 1_000
    dated = []
    known: dict[str, Trade] = {}
    for number, one in enumerate(taken):
        delay_ms = chance.randrange(0, disorder_ms)
        if late and number % 50 == 7:
            delay_ms = chance.randrange(1_000, 600_000)
        if late and number % 100 == 9:
            delay_ms = chance.randrange(3_000_000, 9_000_000)
        updates = chance.choice(SAID)
        if updates is not None:
            one = replace(one, extra={**one.extra, "updates": updates})
        dated.append((one.time_us // 1_000 + delay_ms, number, one))
        before, known[one.isin] = known.get(one.isin), one
        if not takes_back or before is None or number % 15 not in (4, 9):
            continue
        fields = {"isin": one.isin, "time": one.time_us, "cancels": before.seq}
        taking = Trade.from_fields(fields)
        if number % 15 == 9:
            again = replace(before, seq=before.seq + 1_000_000_000, size="7")
            taking = replace(again, extra={**again.extra, "corrects": before.seq})
        later_ms = chance.choice([0, 500, 20_000, 500_000, 9_000_000])
        dated.append((one.time_us // 1_000 + 50 + later_ms, number, taking))
    for append_ms, _, one in sorted(dated):
        rig.append(append_ms, one)
    return first_ms, max(dated)[0]


def check_bars(rig: AnalyticsRig, rules: Rules) -> None:
    """Compare every bar and day in Redis, and the books, with the oracle's."""
    expected, too_late = bar_oracle.bars(rig.entries, rules)
    bars = rig.bars()
    assert {place: fields_of(bar) for place, bar in bars.items()} == expected
    books = rig.books("bars").partitions
    assert {p: t.too_late for p, t in books.items() if t.too_late} == dict(too_late)
    assert sum(tally.read for tally in books.values()) == len(rig.entries)
    bounds = {(d.bar.start_ms, d.bar.end_ms) for d in rig.days().values()}
    of_days = dict(bar_oracle.days(expected, sorted(bounds)))
    for isin, day in rig.days().items():
        assert fields_of(day.bar) == of_days[isin, day.bar.start_ms]
    check_bar_log(rig)


def check_bar_log(rig: AnalyticsRig) -> None:
    """Hold the log of closed bars to the bars: every change once, numbered."""
    logged: dict[tuple[str, int], Bar] = {}
    entries = [
        BarLogEntry.decode(fields) for _, fields in rig.client.xrange(rig.keys.bar_log)
    ]
    for number, entry in enumerate(entries, 1):
        assert entry.number == number
        for bar in entry.bars():
            place = bar.isin, bar.start_ms
            assert place not in logged or bar.edition > logged[place].edition
            logged[place] = bar
    assert logged == {place: bar for place, bar in rig.bars().items() if bar.closed}


def check_movers(rig: AnalyticsRig, rules: Rules) -> None:
    """Compare the newest list with the oracle's span."""
    stored: Any = rig.client.get(rig.keys.movers)
    listed = orjson.loads(stored)
    expected = bar_oracle.span(rig.entries, listed["end"], rules)
    assert listed["instruments"] == len(expected)
    by_value = sorted(expected, key=lambda i: (-expected[i]["value"], i))
    assert [r["isin"] for r in listed["value"]] == by_value[:50]
    priced = {i: s for i, s in expected.items() if s["open"] is not None}
    rising = {i: (s["close"] - s["open"]) / s["open"] for i, s in priced.items()}
    gainers = [r["isin"] for r in listed["gainers"]]
    assert len(gainers) == min(50, sum(rate > 0 for rate in rising.values()))
    rates = [round(float(rising[i]) * 100, 4) for i in gainers]
    assert rates == sorted(rates, reverse=True)


def test_bars_and_movers_of_a_tape_are_right(make_rig: MakeRig) -> None:
    """With disorder, lateness, what is too late and what is taken back; after two
    crashes at every point.

    Open, high, low, close, sums and revisions are exact, in Redis, over REST and at a
    client that has followed them; the books balance.
    """
    rig = make_rig(analytics_batch_ms=60_000)
    first_ms, last_ms = add_tape(rig, "crypto_20240808.csv.gz", 3_000, takes_back=True)
    isins = sorted({entry.isin for entry in rig.entries})
    with (
        running_gateway(rig.settings.redis_url) as gateway,
        listening(gateway, isins) as listener,
    ):
        make_all(rig, first_ms, last_ms)
        expected, _ = bar_oracle.bars(rig.entries, Rules())
        check_clients(gateway, listener, expected)
    check_bars(rig, Rules())
    books = rig.books("bars").partitions.values()
    assert sum(tally.taken_back for tally in books) > 200
    check_movers(rig, Rules())


def make_all(rig: AnalyticsRig, first_ms: int, last_ms: int) -> None:
    """Have the job make bars and movers of a tape; it dies four times meanwhile."""
    step_ms = (last_ms - first_ms) // 6
    plan = iter(
        [
            {"bars": "before_publish"},
            {"movers": "after_publish"},
            {"bars": "after_publish"},
            {"movers": "before_publish"},
        ]
    )
    rig.set_clock(first_ms + step_ms)
    rig.start()
    for step in range(1, 7):
        rig.turn_clock(first_ms + step * step_ms)
        if step in (1, 2, 4, 5):
            rig.crash_plan.update(next(plan))  # type: ignore[arg-type]
            rig.set_clock(first_ms + (step + 1) * step_ms)
            rig.wait_for_death()
            rig.start()
    rig.turn_clock(last_ms + 120_000)
    rig.stop()


def test_a_bar_closes_on_a_silent_market_and_is_amended(make_rig: MakeRig) -> None:
    """Open at once, closed when the log's clock has passed its end, then amended.

    The clock may be set back meanwhile.
    """
    rig = make_rig(analytics="bars", lateness_s=60)
    updates = rig.client.pubsub()
    updates.subscribe(rig.keys.updates("bars"))
    rig.append(START_MS + 500, trade(A, 400, "10.50"))
    rig.set_clock(START_MS + 2_000)
    rig.start()
    rig.turn_clock(START_MS + 3_000)
    [bar] = rig.bars().values()
    assert (bar.closed, bar.revision, str(bar.close.normalize())) == (False, 0, "10.5")
    rig.turn_clock(START_MS + MINUTE + 1_000)
    [bar] = rig.bars().values()
    assert (bar.closed, bar.revision) == (True, 0)
    # The clock is set back: what was closed stays closed, and nothing is lost.
    rig.set_clock(START_MS + 30_000)
    rig.append(START_MS + MINUTE + 5_000, trade(A, 500, "9", seq=2))
    rig.turn_clock(START_MS + MINUTE + 7_000)
    [bar] = rig.bars().values()
    assert (bar.closed, bar.revision, bar.low, bar.trades) == (True, 1, 9, 2)
    late_ms = MINUTE + 1_000 + rig.settings.lateness_s * 1_000
    rig.append(START_MS + late_ms, trade(A, 600, "8", seq=3))
    rig.append(START_MS + late_ms, b"rubbish", 0)
    rig.turn_clock(START_MS + late_ms + 2_000)
    [bar] = rig.bars().values()
    assert bar.trades == 2
    books = rig.books("bars").partitions
    assert sum(tally.too_late for tally in books.values()) == 1
    assert books[0].refused == {"not_json": 1}
    rig.stop()
    messages: Any = iter(lambda: updates.get_message(), None)
    sent = [BarsUpdate.decode(m["data"]) for m in messages if m["type"] == "message"]
    assert [m.sequence for m in sent] == list(range(1, len(sent) + 1))
    changes = [(b.closed, b.revision) for message in sent for b in message.bars]
    assert changes == [(False, 0), (True, 0), (True, 1)]
    check_bar_log(rig)


def test_a_day_changes_when_the_exchange_says(make_rig: MakeRig) -> None:
    """When its session begins: 00:00 UTC is 09:00 in Seoul."""
    rig = make_rig(analytics="bars", day_calendars="Asia/Seoul@09:00")
    for seq, at_ms in enumerate((-1_000, 0), 1):
        rig.append(START_MS + at_ms + 10, trade(A, at_ms, str(seq), seq=seq))
    rig.set_clock(START_MS + 3_000)
    rig.start()
    rig.turn_clock(START_MS + 5_000)
    rig.stop()
    day = rig.days()[A].bar
    assert day.start_ms == START_MS
    assert (day.trades, day.open) == (1, 2)
    assert len(rig.bars()) == 2


def test_an_emptied_redis_gets_its_bars_back_from_the_state(make_rig: MakeRig) -> None:
    """All that the state holds is published again, in a new epoch."""
    rig = make_rig(analytics="bars")
    rig.append(START_MS + 500, trade(A, 400, "10"))
    rig.append(START_MS + 600, trade(B, 400, "20"))
    rig.set_clock(START_MS + 2_000)
    rig.start()
    rig.turn_clock(START_MS + MINUTE + 1_000)
    held, progress = rig.bars(), rig.client.hgetall(rig.keys.progress("bars"))
    rig.client.flushall()
    rig.open_log()
    rig.append(START_MS + MINUTE + 2_000, trade(A, MINUTE + 1_500, "11", seq=2))
    rig.turn_clock(START_MS + MINUTE + 5_000)
    bars = rig.bars()
    assert {place: bars[place] for place in held} == held
    assert len(bars) == 3
    check_bar_log(rig)
    later: Any = rig.client.hgetall(rig.keys.progress("bars"))
    assert later[b"epoch"] != progress[b"epoch"]  # type: ignore[index]
    assert rig.days()[A].bar.trades == 2
    address = f"{rig.settings.state_dir.as_uri()}/analytics/bars"

    def held_now() -> set[tuple[str, int]]:
        bars = shown_bars(bars_in_state(rig.spark, address), {})
        return {(bar.isin, bar.start_ms) for bar in bars}

    # What was published is committed a moment later.
    eventually(lambda: held_now() == set(bars))


def test_after_a_lost_checkpoint_older_bars_stay(make_rig: MakeRig) -> None:
    """What the log still has is computed again; a poorer bar replaces none."""
    rig = make_rig(analytics="bars")
    for seq in range(1, 4):
        rig.append(START_MS + seq * 1_000, trade(A, seq * 1_000, str(seq), seq=seq))
    rig.append(START_MS + MINUTE + 1_000, trade(A, MINUTE + 500, "7", seq=4))
    rig.set_clock(START_MS + 2_000)
    rig.start()
    rig.turn_clock(START_MS + MINUTE + 5_000)
    rig.stop()
    held = rig.bars()
    shutil.rmtree(rig.settings.state_dir / "analytics")
    for partition in range(2):
        # The log no longer has the first two seconds.
        rig.client.xtrim(f"tt:log:{partition}", minid=START_MS + 2_500)
    rig.append(START_MS + MINUTE + 6_000, trade(A, MINUTE + 5_500, "8", seq=5))
    rig.start()
    rig.turn_clock(START_MS + MINUTE + 9_000)
    bars = rig.bars()
    assert bars[A, START_MS] == held[A, START_MS]
    assert bars[A, START_MS + MINUTE].trades == 2
    assert rig.days()[A].bar.trades == 5


def crash_on_both_sides(
    rig: AnalyticsRig, product: str, first_ms: int, step_ms: int
) -> None:
    """Run the job for three steps; it dies before a publish, then after one."""
    rig.set_clock(first_ms + step_ms)
    rig.start()
    rig.turn_clock(first_ms + step_ms)
    points: list[CrashPoint] = ["before_publish", "after_publish"]
    for step, point in enumerate(points, 2):
        rig.crash_plan[product] = point
        rig.set_clock(first_ms + step * step_ms)
        rig.wait_for_death()
        rig.start()


def test_bursts_of_a_tape_are_right(make_rig: MakeRig) -> None:
    """Each once, when it has ended, after a crash on either side of a publish."""
    rig = make_rig(
        analytics="bursts",
        burst_gap_ms=1_000,
        burst_trades=3,
        analytics_batch_ms=1_000,
    )
    first_ms, last_ms = add_tape(rig, "crypto_20240808.csv.gz", 1_500, late=False)
    step_ms = (last_ms - first_ms) // 4
    crash_on_both_sides(rig, "bursts", first_ms, step_ms)
    rig.turn_clock(last_ms + 60_000)
    # One that goes on is in the state, from its first to its last trade.
    for seq, price in enumerate("132"):
        at_ms = last_ms + 61_000 + 100 * seq
        rig.append(at_ms, trade(A, at_ms - START_MS, price, seq=seq))
    # A batch is committed when the next one is published.
    rig.turn_clock(last_ms + 62_000)
    rig.turn_clock(last_ms + 63_000)
    rig.stop()
    address = f"{rig.settings.state_dir.as_uri()}/analytics/bursts"
    state = bars_in_state(rig.spark, address)
    [burst] = open_bursts(state, {"burst_gap_ms": 1_000})
    assert (burst.isin, burst.open, burst.high, burst.close) == (A, 1, 3, 2)
    assert (burst.start_ms, burst.end_ms) == (last_ms + 61_000, at_ms)
    assert (burst.trades, burst.volume) == (3, 6)
    del rig.entries[-3:]
    stored: Any = rig.client.xrange(rig.keys.bursts)
    found = [TradingBurst.decode(fields[b"burst"]).bar for _, fields in stored]
    assert len(found) >= 10
    places = [(bar.isin, bar.start_ms, bar.end_ms) for bar in found]
    sums = {
        place: {**fields_of(bar), "revision": 0}
        for place, bar in zip(places, found, strict=True)
    }
    expected = bar_oracle.bursts(rig.entries, 1_000, 3)
    assert sorted(places) == sorted((b[0], b[1], b[2]) for b in expected)
    for isin, start_ms, end_ms, of_one in expected:
        assert sums[isin, start_ms, end_ms] == {**of_one, "revision": 0}
    books = rig.books("bursts").partitions.values()
    assert sum(tally.counted for tally in books) == len(rig.entries) + 3


def test_no_trade_is_counted_that_is_in_no_burst(make_rig: MakeRig) -> None:
    """Live, with trades as late as they may be while their instrument trades on."""
    gap_ms, step_ms, seconds = 3_000, 1_000, 14
    rig = make_rig(
        analytics="bursts",
        burst_gap_ms=gap_ms,
        burst_trades=2,
        analytics_batch_ms=step_ms,
    )
    chance, numbers = random.Random(7), itertools.count(1)
    arrivals = []
    for isin in (A, B):
        for made_ms in range(0, seconds * 1_000, 170):
            # A third is late; the source leaves out nothing that is up to a gap late.
            late_ms = chance.choice([0, 0, chance.randrange(gap_ms + step_ms)])
            arrivals.append((made_ms + late_ms, isin, made_ms))
    # One that trades at the end of each second: its stamps are ahead of the clock.
    last = make_isins(3)[-1]
    arrivals += [(ms, last, ms) for ms in range(990, seconds * 1_000, 1_000)]
    # Each instrument is quiet at the end for longer than a gap: all bursts are over.
    arrivals.sort()
    rig.set_clock(START_MS)
    rig.start()
    for end_ms in range(step_ms, (seconds + 12) * 1_000, step_ms):
        while arrivals and arrivals[0][0] < end_ms:
            came_ms, isin, made_ms = arrivals.pop(0)
            bought = trade(isin, made_ms, "7", seq=next(numbers))
            rig.append(START_MS + came_ms, bought)
        rig.turn_clock(START_MS + end_ms)
    rig.stop()
    stored: Any = rig.client.xrange(rig.keys.bursts)
    bursts = [TradingBurst.decode(fields[b"burst"]).bar for _, fields in stored]
    books = rig.books("bursts").partitions.values()
    counted = sum(tally.counted for tally in books)
    assert counted == len(rig.entries)
    assert sum(bar.trades for bar in bursts) == counted
    # A pause of less than a gap ends no burst: one each.
    assert sorted(bar.isin for bar in bursts) == sorted([A, B, last])


@pytest.mark.parametrize("store", ["rocksdb", "memory"])
def test_moves_of_a_tape_are_right(
    make_rig: MakeRig, store: Literal["rocksdb", "memory"]
) -> None:
    """Each once, though many trades are too late; after crashes at every point."""
    rig = make_rig(
        analytics="moves",
        spark_conf=STORES[store],
        move_percent=Decimal("0.01"),
        move_span_ms=5_000,
        analytics_batch_ms=1_000,
    )
    rules = MoveRules(Fraction("0.01"), span_us=5_000_000, batch_ms=1_000)
    first_ms, last_ms = add_tape(
        rig, "crypto_20240808.csv.gz", 3_000, late=False, disorder_ms=2_500
    )
    step_ms = (last_ms - first_ms) // 4
    crash_on_both_sides(rig, "moves", first_ms, step_ms)
    rig.turn_clock(last_ms + 3_000)
    expected, too_late = move_oracle.moves(rig.entries, rules)
    assert moves_in(rig.client, rig.keys) == expected
    assert len(expected) >= 30
    books = rig.books("moves").partitions
    assert {p: tally.too_late for p, tally in books.items()} == dict(too_late)
    assert sum(tally.read for tally in books.values()) == len(rig.entries)
    # Two spans on, the state lets go of them.
    rig.append(last_ms + 20_000, trade(A, last_ms + 20_000 - START_MS, "1"))
    rig.turn_clock(last_ms + 22_000)
    rig.append(last_ms + 22_500, trade(A, last_ms + 22_500 - START_MS, "1"))
    # A batch is committed when the next one is published.
    rig.turn_clock(last_ms + 24_000)
    rig.turn_clock(last_ms + 25_000)
    rig.stop()
    address = f"{rig.settings.state_dir.as_uri()}/analytics/moves"
    assert len(trades_in_state(rig.spark, address)) == 2


def test_another_length_of_bars_is_refused(make_rig: MakeRig) -> None:
    """The state knows bars of one length only; a sentence says so."""
    rig = make_rig(analytics="bars")
    rig.set_clock(START_MS + 2_000)
    rig.start()
    rig.turn_clock(START_MS + 3_000)
    rig.stop()
    other = make_rig(analytics="bars", bars_ms=30_000)
    other.start()
    eventually(lambda: other.error is not None)
    assert isinstance(other.error, BadCheckpoint)
    assert "bars_ms 30000 (it was 60000)" in str(other.error)


def test_two_jobs_do_not_publish_at_once(make_rig: MakeRig) -> None:
    """The second one finds the lease held, and says by whom."""
    # Its lease does not end by itself, whatever keeps its holder from renewing it.
    first = make_rig(analytics="bars", lease_ms=60_000)
    second = make_rig(analytics="bars")
    first.set_clock(START_MS + 2_000)
    first.start()
    first.turn_clock(START_MS + 3_000)
    second.start()
    eventually(lambda: second.error is not None, 20)
    assert isinstance(second.error, AnalyticsFailed)
    assert "another analytics job is running" in str(second.error)
