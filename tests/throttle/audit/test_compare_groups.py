"""Groups of the past, computed again with the table of their time."""

from collections.abc import Iterator

import pytest
import redis

from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.redis_instrument_store import RedisInstrumentStore
from throttle.audit.log_entries import RedisLogEntries, find_log
from throttle.audit.published import InstrumentTables, PublishedHistory
from throttle.audit.recompute import WindowRule
from throttle.audit.verify import Verification, VerificationReport
from throttle.testing.driver import CRASH_POINTS, CrashPoint, ThrottleDriver

pytestmark = pytest.mark.redis
W = 2_000
A, B, C = "KR7005930003", "KR7000660001", "KR7035420009"


def table(sector: str, close: str = "100") -> list[InstrumentEntry]:
    """Make a table of two instruments."""
    return [
        InstrumentEntry(A, market="KOSPI", sector=sector, prev_close=close),
        InstrumentEntry(B, market="KOSDAQ", sector="Chips"),
    ]


@pytest.fixture
def driver(redis_url: str) -> Iterator[ThrottleDriver]:
    """A job whose table changes while it runs."""
    with ThrottleDriver(
        redis_url=redis_url, partitions=2, instruments=table("First")
    ) as made:
        yield made


def trade_in_window(driver: ThrottleDriver, number: int) -> None:
    """Trade three instruments, one of which the table does not have."""
    start_ms = number * W
    for at, price in enumerate(("99", "101.5", "100")):
        driver.trade(A, price, at_ms=start_ms + at, size="0.125")
    driver.trade(B, "7", at_ms=start_ms + 5, size="12345678901234567")
    driver.trade(C, "8.123456789", at_ms=start_ms + 6)


def rebuild(client: redis.Redis) -> VerificationReport:
    """Compare all that is left of the past."""
    history, info = PublishedHistory(client, "tt"), find_log(client, "tt")
    assert info is not None
    verification = Verification(
        history.batches("throttle"),
        RedisLogEntries(client, "tt", info),
        WindowRule(W, 5_000),
        table_at=InstrumentTables(RedisInstrumentStore(client, "tt")).at,
    )
    before = history.versions_before()
    return verification.run(history.windows(), before, history.oldest_offset)


def test_windows_are_rebuilt_with_the_table_of_their_time(
    driver: ThrottleDriver, client: redis.Redis
) -> None:
    """A change counts from the next window on, whatever is in the table now."""
    for number in range(4):
        trade_in_window(driver, number)
        driver.load_instruments(table(f"Sector {number}", f"10{number}"))
        driver.turn_clock((number + 1) * W)
    versions = [window.instruments_version for window in driver.windows()]
    assert len(set(versions)) == 4
    report = rebuild(client)
    assert report.problems == []
    assert (report.compared, report.groups, report.gone_tables) == (4, 24, {})
    assert driver.ledger().total.unknown_instrument == 4


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_a_crash_leaves_groups_that_can_be_rebuilt(
    driver: ThrottleDriver, client: redis.Redis, point: CrashPoint
) -> None:
    """The table changes while the job is down: its cut says which one was joined."""
    for number in range(3):
        trade_in_window(driver, number)
        driver.load_instruments(table(f"Sector {number}"))
        at = point if number == 1 else None
        driver.turn_clock((number + 1) * W, crash_at=at)
    report = rebuild(client)
    assert report.problems == []
    assert (report.compared, report.equal, report.groups) == (3, 3, 18)
    assert driver.ledger().off_by == 0


def test_a_group_that_is_not_what_its_trades_say_is_told(
    driver: ThrottleDriver, client: redis.Redis
) -> None:
    """By its name, with both bodies."""
    trade_in_window(driver, 0)
    driver.turn_clock(W)
    [(entry_id, fields)] = client.xrange("tt:windows")
    message = fields[b"snapshot"].replace(b'"trades":3,', b'"trades":4,')
    client.delete("tt:windows")
    client.xadd("tt:windows", {"snapshot": message}, id=entry_id)
    report = rebuild(client)
    assert not report.is_right
    assert len(report.problems) == 2
    assert "group:market:KOSPI: published is {" in report.problems[0]


def test_late_trades_count_in_groups_and_move_nothing(
    driver: ThrottleDriver, client: redis.Redis
) -> None:
    """A market may have nothing else in a window: it has trades, and no instruments."""
    driver.trade(A, "99", at_ms=10)
    driver.turn_clock(W)
    driver.trade(A, "101", at_ms=W + 1, time_ms=5, size="3")
    driver.trade(B, "7", at_ms=W + 2)
    driver.turn_clock(2 * W)
    kospi = driver.windows()[1].groups["group:market:KOSPI"]
    assert (kospi["instruments"], kospi["advancing"], kospi["trades"]) == (
        "0",
        "0",
        "1",
    )
    assert kospi["volume"] == "3"
    report = rebuild(client)
    assert report.problems == []
    assert (report.equal, report.groups) == (2, 6)


def test_a_table_that_is_gone_is_named_and_not_guessed(
    driver: ThrottleDriver, client: redis.Redis
) -> None:
    """Windows are compared nevertheless; their groups cannot be."""
    trade_in_window(driver, 0)
    driver.turn_clock(W)
    gone = driver.windows()[0].instruments_version
    client.delete("tt:instruments", "tt:instruments:meta")
    driver.turn_clock(2 * W)
    driver.load_instruments(table("Later"))
    trade_in_window(driver, 2)
    driver.turn_clock(3 * W)
    trade_in_window(driver, 3)
    driver.turn_clock(4 * W)
    report = rebuild(client)
    assert report.problems == []
    assert (report.compared, report.equal, report.groups) == (4, 4, 6)
    assert report.gone_tables == {gone: 2}
