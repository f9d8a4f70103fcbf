"""What Redis still holds of the past, read from a real server."""

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
import redis

from ingest.tradelog.redis_log_reader import find_log
from tests.gateway.samples import make_isins
from throttle.audit.compare import PublishedVersions
from throttle.audit.log_entries import LogEntries, RedisLogEntries, open_log_entries
from throttle.audit.published import PublishedHistory
from throttle.audit.recompute import WindowRule
from throttle.audit.verify import (
    TRIMMED_BATCHES,
    TRIMMED_LOG,
    TRIMMED_WINDOWS,
    Verification,
    VerificationReport,
)
from throttle.contract.cut import between
from throttle.contract.snapshot import Row
from throttle.contract.trade_order import encode_version
from throttle.testing.driver import START_MS, ThrottleDriver

pytestmark = pytest.mark.redis
W = 2_000
A, B = "KR7005930003", "KR7000660001"
RULE = WindowRule(W, 5_000)


@pytest.fixture
def driver(redis_url: str) -> Iterator[ThrottleDriver]:
    """A job over a log of two partitions; 0 holds B, 1 holds A."""
    with ThrottleDriver(redis_url=redis_url, partitions=2) as started:
        yield started


@pytest.fixture
def history(client: redis.Redis) -> PublishedHistory:
    """The past of the driver's stream."""
    return PublishedHistory(client, "tt")


def trade_in_windows(driver: ThrottleDriver, windows: int) -> None:
    """Trade A in every window and B in every second one, and publish each."""
    for n in range(windows):
        driver.trade(A, f"{n + 1}.50", at_ms=n * W + 10, partition=1)
        if n % 2:
            driver.trade(B, "7", at_ms=n * W + 20, partition=0)
        driver.turn_clock((n + 1) * W)


@pytest.fixture
def log(client: redis.Redis, driver: ThrottleDriver) -> RedisLogEntries:
    """The past of the driver's log."""
    found = find_log(client, "tt")
    assert found is not None
    return RedisLogEntries(client, "tt", found)


def check(
    history: PublishedHistory,
    log: LogEntries,
    rule: WindowRule = RULE,
    job: str = "throttle",
) -> VerificationReport:
    """Compare all that is left."""
    verification = Verification(history.batches(job), log, rule)
    before = history.versions_before()
    return verification.run(history.windows(), before, history.oldest_offset)


def test_a_server_without_a_stream_has_no_past(
    client: redis.Redis, history: PublishedHistory
) -> None:
    """Nothing is made up and nothing created."""
    assert open_log_entries(client, "tt") is None
    assert history.window_ms() is None
    assert history.jobs() == {}
    assert history.ledger("throttle") is None
    assert history.batches("throttle") == []
    assert list(history.windows()) == []
    assert list(history.dead_letters("throttle", [0, 1], {})) == []
    assert client.dbsize() == 0


def test_reading_the_past_writes_nothing(
    client: redis.Redis,
    driver: ThrottleDriver,
    history: PublishedHistory,
    log: RedisLogEntries,
) -> None:
    """Inspection is safe at any moment."""
    trade_in_windows(driver, 3)
    before = {key: client.dump(key) for key in client.scan_iter()}
    assert check(history, log).is_right
    list(log.trades([0, 1], {}))
    list(history.dead_letters("throttle", [0, 1], {}))
    assert {key: client.dump(key) for key in client.scan_iter()} == before


def test_the_stream_says_who_published_and_how_long_a_window_is(
    driver: ThrottleDriver, history: PublishedHistory, log: RedisLogEntries
) -> None:
    """The log's identity, the jobs, the length of a window."""
    trade_in_windows(driver, 1)
    assert log.info.partitions == 2
    assert history.jobs() == {"throttle": log.info.log_id}
    assert history.window_ms() == W


def test_books_and_batches_are_what_the_job_wrote(
    driver: ThrottleDriver, history: PublishedHistory
) -> None:
    """Oldest first, or the newest few."""
    trade_in_windows(driver, 4)
    assert history.ledger("throttle") == driver.ledger()
    batches = history.batches("throttle")
    assert [batch.offset for batch in batches] == [1, 2, 3, 4]
    assert history.batches("throttle", limit=2) == batches[2:]
    assert all(one.end == other.start for one, other in pairwise(batches))


def test_windows_come_in_pieces_in_either_order(
    driver: ThrottleDriver, history: PublishedHistory
) -> None:
    """More than one piece, none twice, none left out."""
    trade_in_windows(driver, 22)
    oldest_first = [w.offset for w in history.windows()]
    assert oldest_first == list(range(1, 23))
    assert [w.offset for w in history.windows(newest_first=True)] == oldest_first[::-1]


def test_windows_of_a_range_and_of_an_instrument(
    driver: ThrottleDriver, history: PublishedHistory
) -> None:
    """Both ends are included; of an instrument only the windows in which it changed."""
    trade_in_windows(driver, 6)
    first, last = START_MS + 2 * W, START_MS + 5 * W
    assert [w.offset for w in history.windows(first, last)] == [2, 3, 4, 5]
    found = list(history.windows(first, last, isin=B))
    assert [w.offset for w in found] == [2, 4]
    assert all([row.isin for row in w.rows] == [B] for w in found)


def test_trades_of_all_partitions_come_in_order_of_time(
    driver: ThrottleDriver, history: PublishedHistory, log: RedisLogEntries
) -> None:
    """Oldest or newest first, from the beginning or from a place on."""
    trade_in_windows(driver, 4)
    found = list(log.trades([0, 1], {}))
    assert [e.partition for e in found] == [1, 1, 0, 1, 1, 0]
    assert [e.append_ms for e in found] == sorted(e.append_ms for e in found)
    assert list(log.trades([0, 1], {}, newest_first=True)) == found[::-1]
    after = {1: found[1].position}
    assert [e.position for e in log.trades([1], after)] == [
        e.position for e in found if e.partition == 1
    ][2:]


def test_dead_letters_carry_the_place_in_the_log(
    driver: ThrottleDriver, history: PublishedHistory, log: RedisLogEntries
) -> None:
    """Reason, words and bytes of a refused trade."""
    position = driver.payload(b"\xff?", at_ms=50, partition=1)
    driver.turn_clock(W)
    [letter] = history.dead_letters("throttle", [0, 1], {})
    assert (letter.partition, letter.position) == (1, position)
    assert letter.append_ms == START_MS + 50
    assert (letter.reason, letter.payload) == ("not_json", b"\xff?")
    [entry] = log.trades([1], {})
    assert (entry.position, entry.payload) == (position, b"\xff?")
    assert log.append_ms(1, position) == START_MS + 50


def test_what_is_left_of_the_log_is_what_was_read(
    driver: ThrottleDriver, history: PublishedHistory, log: RedisLogEntries
) -> None:
    """Entries between two cuts, and the oldest entry of each partition."""
    trade_in_windows(driver, 4)
    batch = history.batches("throttle")[1]
    ranges = between(batch.start, batch.end, batch.end.partitions)
    entries = list(log.between(ranges))
    assert [(e.partition, e.append_ms - START_MS) for e in entries] == [
        (0, W + 20),
        (1, W + 10),
    ]
    fronts = log.fronts([0, 1])
    assert {p: front and front.append_ms - START_MS for p, front in fronts.items()} == {
        0: W + 20,
        1: 10,
    }
    assert log.fronts([1]) == {1: fronts[1]}
    assert history.oldest_offset() == 1


def test_an_empty_log_has_no_front(
    driver: ThrottleDriver, history: PublishedHistory, log: RedisLogEntries
) -> None:
    """A partition that never had an entry, or lost all of them."""
    assert log.fronts([0, 1]) == {0: None, 1: None}
    assert history.oldest_offset() is None


def make_market(driver: ThrottleDriver, seed: int) -> None:
    """Trade in disorder, with repeats, ties and refusals, over some batches."""
    chance = random.Random(seed)
    isins = make_isins(6)
    at_ms, sent = 0, []
    for _ in range(400):
        at_ms += chance.choice([0, 1, 30, 200])
        if chance.random() < 0.05:
            driver.payload(chance.choice([b"{}", b"?", b"[1]"]), at_ms=at_ms)
        elif chance.random() < 0.1 and sent:
            driver.trade(at_ms=at_ms, **chance.choice(sent))
        else:
            trade = {
                "isin": chance.choice(isins),
                "price": f"{chance.randint(1, 99)}.{chance.randint(0, 99):02d}",
                "time_ms": at_ms - chance.choice([0, 0, 0, 700, 9_000, -9_000]),
                "seq": chance.randint(0, 3),
            }
            sent.append(trade)
            driver.trade(at_ms=at_ms, **trade)
        if chance.random() < 0.05:
            driver.turn_clock(at_ms)
    driver.turn_clock(at_ms + W)


@pytest.mark.parametrize("seed", range(3))
def test_a_disorderly_market_computed_again_is_the_same(
    driver: ThrottleDriver, history: PublishedHistory, seed: int, log: RedisLogEntries
) -> None:
    """Two statements of one rule agree, window by window, byte by byte."""
    make_market(driver, seed)
    report = check(history, log)
    assert report.problems == []
    assert report.differences == []
    assert report.compared == report.equal == len(driver.windows())
    assert report.rows > 50
    assert report.is_right


def test_a_published_window_that_was_tampered_with_is_found(
    client: redis.Redis,
    driver: ThrottleDriver,
    history: PublishedHistory,
    log: RedisLogEntries,
) -> None:
    """An equal price in other digits; ``test_compare.py`` has the kinds."""
    for n in range(3):
        driver.trade(A, f"{n + 1}.50", at_ms=n * W + 10)
        driver.turn_clock((n + 1) * W)
    entries = client.xrange("tt:windows")
    client.delete("tt:windows")
    for stream_id, fields in entries:
        snapshot = fields[b"snapshot"].replace(b'"price":2.50', b'"price":2.5')
        client.xadd("tt:windows", {"snapshot": snapshot}, id=stream_id)
    report = check(history, log)
    assert not report.is_right
    assert [(d.kind, d.offset, d.isin) for d in report.differences] == [("wrong", 2, A)]


def test_a_trimmed_log_is_told_from_a_wrong_one(
    client: redis.Redis,
    driver: ThrottleDriver,
    history: PublishedHistory,
    log: RedisLogEntries,
) -> None:
    """Windows whose trades are gone are counted, the rest is compared."""
    trade_in_windows(driver, 6)
    client.xtrim("tt:log:1", minid=f"{START_MS + 3 * W}-0", approximate=False)
    report = check(history, log)
    assert report.not_comparable == {TRIMMED_LOG: 3}
    assert (report.compared, report.equal, report.problems) == (3, 3, [])


def test_trimmed_windows_and_batches_are_counted(
    client: redis.Redis,
    driver: ThrottleDriver,
    history: PublishedHistory,
    log: RedisLogEntries,
) -> None:
    """What is no longer recorded is neither right nor wrong."""
    trade_in_windows(driver, 6)
    client.xtrim("tt:batches:throttle", minid="3-0", approximate=False)
    assert check(history, log).not_comparable == {TRIMMED_BATCHES: 2}
    client.xtrim("tt:windows", minid="5-0", approximate=False)
    report = check(history, log)
    assert report.not_comparable == {TRIMMED_WINDOWS: 2}
    assert (report.compared, report.equal) == (2, 2)


def row(isin: str, time_us: int) -> Row:
    """Make a row to ask about."""
    return Row(isin, encode_version(time_us, 0, 0), b"1", b"{}")


def test_what_was_published_before_is_known_from_the_last_values(
    client: redis.Redis, driver: ThrottleDriver, history: PublishedHistory
) -> None:
    """Of an instrument that changed since the oldest window left, nobody knows."""
    driver.trade(A, "1", at_ms=10, partition=1)
    driver.trade(B, "1", at_ms=20, partition=0)
    driver.turn_clock(W)
    driver.trade(A, "2", at_ms=W + 10, partition=1)
    driver.turn_clock(2 * W)
    whole = history.versions_before()
    assert whole.is_news(row(A, 1)) is True
    client.xtrim("tt:windows", minid="2-0", approximate=False)
    before: PublishedVersions = history.versions_before()
    assert before.is_news(row(A, 1)) is None
    assert before.is_news(row(B, (START_MS + 20) * 1_000 - 1)) is False
    assert before.is_news(row(B, (START_MS + 21) * 1_000)) is True
    assert before.is_news(row("KR7035420009", 1)) is True


def test_two_jobs_on_one_stream_are_told_apart(
    redis_url: str,
    driver: ThrottleDriver,
    history: PublishedHistory,
    log: RedisLogEntries,
) -> None:
    """Each is compared by its own batches; what one published the other knows."""
    with ThrottleDriver(redis_url=redis_url, partitions=2, job="other") as other:
        for n in range(3):
            driver.trade(A, str(n + 1), at_ms=n * W + 10)
            driver.turn_clock((n + 1) * W)
            other.turn_clock((n + 1) * W)
    for job, others in (("throttle", 2), ("other", 2)):
        report = check(history, log, job=job)
        assert (report.compared, report.equal, report.others) == (3, 3, others)
        assert report.is_right
