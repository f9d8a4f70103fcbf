"""What a feed tells its operator, live: within seconds, once, and at its end."""

import time

import pytest
import redis
from structlog.testing import capture_logs

from ingest.adapters.adapter import ExchangeTrade, Limit, Notice, Numbering
from ingest.adapters.feed_log import NOTHING_FOR_S, QUIET_AFTER_S, FeedLog, Uptake
from ingest.adapters.intake import Intake
from ingest.exchanges.binance import Binance
from ingest.exchanges.kis import Kis
from ingest.sources.event import Refusals
from tests.conftest import PATIENCE, eventually
from tests.ingest.adapters.exchange import Session, answering, exchanging
from tests.ingest.adapters.feeding import feeding, wait_for
from tests.ingest.adapters.frames import Deal, binance, deals, kis, kis_fields
from tests.ingest.adapters.test_intake import ISIN, NOW_US, Played, traded


class Quick(Binance):
    """Takes symbols as they are typed."""

    connects = Limit(100, 1.0)

    @classmethod
    def canonical(cls, symbol: str) -> str:
        return symbol


class QuickKis(Kis):
    """Without its limit of connections."""

    connects = Limit(100, 1.0)


@pytest.mark.redis
@pytest.mark.timeout(40)
def test_a_feed_that_takes_nothing_says_so_within_ten_seconds(redis_url: str) -> None:
    """By name: which symbols come, which were asked for; and again at its end."""

    def script(session: Session) -> None:
        number = 0
        while not session.exchange.ended.wait(0.1):
            number += 1
            session.send(binance(Deal("BTCUSDT", number)))

    with capture_logs() as logs, exchanging(script) as exchange:
        began_s = time.monotonic()
        with feeding(redis_url, Quick, url=exchange.url, symbols="btcusdt"):
            eventually(lambda: [e for e in logs if "nothing is taken" in e["event"]])
            assert time.monotonic() - began_s < 10 * PATIENCE
    told = next(e for e in logs if "nothing is taken" in e["event"])
    assert told["event"] == "binance: nothing is taken of what comes"
    assert told["not_asked_symbols"] == ["BTCUSDT"]
    assert told["followed"] == ["btcusdt"]
    assert logs[-1]["event"] == "binance: of what came"
    assert logs[-1]["skipped"]["not_asked"] == logs[-1]["frames"]


@pytest.mark.redis
def test_records_that_have_grown_are_told_at_once(
    redis_url: str, client: redis.Redis
) -> None:
    """Once, though the connection is opened again; trades go on."""
    grown = [*kis_fields(Deal("005930", 0, "71900", "1"), 10), "2", "new"]

    def first(session: Session) -> None:
        session.hear()
        session.send(kis(grown), kis(grown))

    def second(session: Session) -> None:
        session.hear()
        later = [*grown]
        later[13] = "11"
        session.send(kis(later))
        session.wait()

    with (
        capture_logs() as logs,
        exchanging(first, second) as exchange,
        answering({"/oauth2/Approval": (200, {"approval_key": "A"})}) as (rest_url, _),
        feeding(
            *(redis_url, QuickKis, {"appkey": "A", "secretkey": "B"}),
            url=exchange.url,
            rest_url=rest_url,
            symbols="005930",
        ),
    ):
        wait_for(client, 2)
        eventually(lambda: [e for e in logs if "have 48 fields" in e["event"]])
    assert len([e for e in logs if "have 48 fields" in e["event"]]) == 1


def test_each_thing_is_told_when_it_is_new() -> None:
    intake = Intake("MYX", Numbering.BY_ONE, {"A": ISIN}, Refusals())
    feed_log = FeedLog("own", intake)

    def told(*pieces: ExchangeTrade | Notice) -> list[str]:
        intake.read(Played(*pieces), "", NOW_US)
        with capture_logs() as logs:
            feed_log.say_news(0.0)
            feed_log.say_news(0.5)
        return [e["event"].removeprefix("own: ") for e in logs]

    assert told(traded(number=1)) == []
    assert told(traded(number=5)) == ["trades are missing"]
    assert told(traded(number=10**15)) == ["numbers jump, and their trades are taken"]
    assert told(Notice("one"), Notice("one"), Notice("two")) == ["one", "two"]
    assert told(Notice("two"), Notice("three")) == ["three"]
    [clock] = told(traded(number=6, sent_us=NOW_US + 10**9))
    assert clock == "the exchange's clock differs from this machine's"


def test_that_memory_is_full_is_told_once() -> None:
    intake = Intake(
        "MYX", Numbering.UNIQUE, {str(n): "" for n in range(20_000)}, Refusals()
    )
    feed_log = FeedLog("own", intake)
    for _ in range(2):
        for n in range(100):
            intake.numbers.is_new("0", n, time_us=n)
    with capture_logs() as logs:
        feed_log.say_news(0.0)
        feed_log.say_news(1.0)
    [told] = logs
    assert "older than those it remembers" in told["event"]
    assert told["trades"] == 84


def test_taking_nothing_is_told_and_taken_back() -> None:
    intake = Intake("MYX", Numbering.NONE, {"A": ISIN}, Refusals())
    feed_log = FeedLog("own", intake, ["A"])
    with capture_logs() as logs:
        for second in range(int(NOTHING_FOR_S) + 2):
            intake.read(Played(traded(symbol="B")), "", NOW_US)
            feed_log.say_news(float(second))
    assert feed_log.takes_nothing
    assert [e["event"] for e in logs] == ["own: nothing is taken of what comes"]
    intake.read(Played(traded()), "", NOW_US)
    feed_log.say_news(20.0)
    assert not feed_log.takes_nothing


def test_gaps_are_told_at_the_end_too() -> None:
    intake = Intake("MYX", Numbering.BY_ONE, {"BTCUSDT": ISIN}, Refusals())
    feed_log = FeedLog("own", intake)
    for deal in deals("BTCUSDT", [1, 3]):
        intake.read(Binance((), {}), binance(deal), NOW_US)
    with capture_logs() as logs:
        feed_log.say_end()
    assert [e["event"] for e in logs] == [
        "own: trades are missing",
        "own: of what came",
    ]


def looks(uptake: Uptake, *states: tuple[int, int, float]) -> list[bool]:
    """Return what it tells at each look: taken, left, time."""
    return [uptake.takes_nothing(*state) for state in states]


def test_what_is_left_for_a_while_and_nothing_taken_is_told() -> None:
    """Within ten seconds, though it is looked at once a second."""
    after_s = NOTHING_FOR_S
    assert after_s + 1 < 10
    states = [(0, 0, 0.0), (0, 1, 1.0), (0, 5, after_s), (0, 6, after_s + 1)]
    assert looks(Uptake(), *states) == [False, False, False, True]


def test_one_trade_that_is_taken_ends_it() -> None:
    uptake = Uptake()
    assert looks(uptake, (0, 1, 0.0), (0, 2, 20.0), (1, 3, 21.0)) == [
        False,
        True,
        False,
    ]
    assert looks(uptake, (1, 4, 22.0), (1, 5, 25.0), (1, 6, 31.0)) == [
        *(False, False, True)
    ]


def test_a_quiet_night_after_one_odd_frame_is_no_fault() -> None:
    uptake = Uptake()
    later_s = 10.0 + QUIET_AFTER_S
    assert looks(uptake, (0, 1, 0.0), (0, 1, 10.0), (0, 1, later_s)) == [
        *(False, True, False)
    ]
    # Then it begins anew.
    assert looks(uptake, (0, 2, later_s + 1)) == [False]


def test_a_market_where_nothing_comes_takes_what_comes() -> None:
    assert not any(looks(Uptake(), *((0, 0, float(s)) for s in range(100))))
