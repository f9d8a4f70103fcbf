"""The audit: a run that is right, and every way in which one can be wrong."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import isnan
from random import Random

import pytest
import redis

from ingest.redis_keys import Keys
from ingest.settings import IngestSettings
from ingest.sources.simulator import Simulator
from ingest.tradelog.contract import partition_of
from loadtest.judge.audit import Audited, audit, compare
from loadtest.judge.following import Follower, following
from loadtest.judge.published_run import PublishedRun
from loadtest.results import Audit
from loadtest.system.deployment import Deployment
from tests.kafka_broker.broker import Broker
from tests.ports import free_port
from tests.throttle.topic_job import TopicJob, W, append, make_log
from throttle.audit.log_entries import open_log_entries
from throttle.audit.recompute import WindowRule
from throttle.audit.verify import SHOWN
from throttle.contract.ledger import Ledger
from throttle.contract.snapshot import Row, WindowSnapshot
from throttle.contract.trade_order import NO_VERSION
from throttle.testing.driver import START_MS, ThrottleDriver

pytestmark = pytest.mark.redis
A, B, C = "KR7005930003", "KR7000660001", "KR7035420009"
RULE = WindowRule(window_ms=2_000, max_ahead_ms=5_000)
Doctor = Callable[[list[WindowSnapshot]], list[WindowSnapshot]]


@dataclass
class Scene:
    """A stream on a real server that has published a little before the run."""

    url: str
    driver: ThrottleDriver
    follower: Follower
    client: redis.Redis

    def run(self, doctor: Doctor | None = None) -> PublishedRun:
        """Return what was published, changed by whoever wants to see it found."""
        start = self.follower.start
        entries = self.client.xrange(Keys("tt").windows, f"({start.offset}-0")
        snapshots = [WindowSnapshot.decode(f[b"snapshot"]) for _, f in entries]
        run = PublishedRun(start.epoch, start.offset, 2_000)
        for snapshot in doctor(snapshots) if doctor is not None else snapshots:
            run.add(snapshot.encode())
        return run

    def audit(
        self, doctor: Doctor | None = None, until: Ledger | None = None
    ) -> Audited:
        """Audit the run up to the books as they are."""
        until = until or self.driver.ledger()
        return check(self.client, self.follower, until, self.run(doctor))


def check(
    client: redis.Redis, follower: Follower, until: Ledger, run: PublishedRun
) -> Audited:
    """Audit what was followed of a log in Redis."""
    assert follower.wait_for_batch(until.upto.end_ms, within_s=10)
    log = open_log_entries(client, "tt")
    assert log is not None
    return compare(log, follower.start, until, run, follower.batches, RULE)


@pytest.fixture
def scene(redis_url: str, client: redis.Redis) -> Iterator[Scene]:
    """A was published before; in the run A, B and C trade, and one is refused.

    Windows end at 4, 6 and 8 s: A twice (the second one newer), B and a late A; C.
    """
    with ThrottleDriver(redis_url=redis_url) as driver:
        driver.trade(A, "100", at_ms=1_000)
        driver.turn_clock(2_000)
        with following(redis_url, "tt", "throttle", 2_000) as follower:
            driver.trade(A, "101", at_ms=2_100, time_ms=900)
            driver.trade(A, "102.50", at_ms=2_300, time_ms=2_200, side="B")
            driver.trade(B, "50", at_ms=2_400)
            driver.payload(b"rubbish", at_ms=2_500)
            driver.trade(A, "99", at_ms=4_100, time_ms=1_500)
            driver.trade(C, "7", at_ms=6_100)
            driver.turn_clock(8_000)
            yield Scene(redis_url, driver, follower, client)


def changed(
    at: int, isin: str, change: Callable[[Row], Row | tuple[Row, ...]]
) -> Doctor:
    """Change one row of one window, or put several in its place."""

    def doctor(snapshots: list[WindowSnapshot]) -> list[WindowSnapshot]:
        rows: list[Row] = []
        for row in snapshots[at].rows:
            found = change(row) if row.isin == isin else row
            rows += [found] if isinstance(found, Row) else found
        snapshots[at] = replace(snapshots[at], rows=tuple(rows))
        return snapshots

    return doctor


def body(old: bytes, new: bytes) -> Callable[[Row], Row]:
    """Change a row's content."""

    def change(row: Row) -> Row:
        assert old in row.body, row.body
        return row._replace(body=row.body.replace(old, new))

    return change


def moved(snapshots: list[WindowSnapshot]) -> list[WindowSnapshot]:
    """Put the row of the last window into the one before: an extra and a missing."""
    last, before = snapshots[-1], snapshots[-2]
    return [
        *snapshots[:-2],
        replace(before, rows=last.rows),
        replace(last, rows=()),
    ]


def stale(snapshots: list[WindowSnapshot]) -> list[WindowSnapshot]:
    """Publish the first window's A once more in the second."""
    [again] = [row for row in snapshots[0].rows if row.isin == A]
    snapshots[1] = replace(snapshots[1], rows=(again,))
    return snapshots


def test_a_run_that_is_right_has_no_differences(scene: Scene) -> None:
    """All is compared; it is known when the news of each row entered the log.

    A's late trade, in the second window, was none.
    """
    found = scene.audit()
    assert found.audit == Audit(6, 3, 3, [], 0, [])
    truth = scene.run().reference(found.first_news_ms)
    firsts = {isin: list(truth.changes(isin).firsts_ms) for isin in (A, B, C)}
    assert isnan(firsts[A].pop())
    assert firsts == {
        A: [START_MS + 2_300],
        B: [START_MS + 2_400],
        C: [START_MS + 6_100],
    }
    assert list(truth.changes(A).trades) == [2, 1]


DOCTORS: list[tuple[Doctor, list[str]]] = [
    (changed(0, B, lambda _: ()), [f"{B}: missing: published is nothing"]),
    (changed(0, B, lambda row: (row, row)), [f"{B}: extra"]),
    (changed(0, A, body(b"102.50", b"102.5")), [f"{A}: wrong", ":102.5,", "2.50"]),
    (changed(0, A, body(b'"size":1', b'"size":2')), [f"{A}: wrong", '"size":2']),
    (changed(0, A, body(b'"side":"B"', b'"side":"S"')), ['"side":"S"']),
    (changed(0, A, body(b',"side":"B"', b"")), [f"{A}: wrong"]),
    (changed(0, A, body(b'"seq":0', b'"seq":1')), [f"{A}: wrong", '"seq":1']),
    (
        changed(0, A, lambda row: row._replace(sums=b"1")),
        [f"{A}: wrong: published is 1 trades", "by the log it is 2 trades"],
    ),
    (changed(0, A, lambda row: row._replace(version=NO_VERSION)), [f"{A}: wrong"]),
    (changed(0, A, lambda row: row._replace(isin=C)), [f"{A}: missing"]),
    (moved, [f"{C}: extra", "books: 1 trades stale, by the log 2"]),
    (stale, [f"{A}: wrong"]),
    (
        lambda snapshots: snapshots[:-1],
        [f"the window {START_MS + 8_000} is missing from the window log"],
    ),
    (
        lambda snapshots: [snapshots[0], snapshots[2]],
        [f"the window {START_MS + 6_000} is missing from the window log"],
    ),
    (
        lambda snapshots: [*snapshots, replace(snapshots[-1], offset=5, rows=())],
        [f"window {START_MS + 8_000}: was published, but is in no batch"],
    ),
    (
        lambda snapshots: [
            replace(snapshots[0], window=START_MS + 1),
            *snapshots[1:],
        ],
        [f"published is the window {START_MS + 1}, its batch was cut for"],
    ),
]


def test_every_kind_of_difference_is_found(scene: Scene) -> None:
    """And told in words."""
    for doctor, words in DOCTORS:
        audited = scene.audit(doctor).audit
        assert audited.difference_count == len(audited.differences) > 0
        told = "\n".join(audited.differences)
        assert [word for word in words if word not in told] == [], told


def test_books_that_say_otherwise_are_found(scene: Scene) -> None:
    """Each of their counts, though windows are right."""
    books = scene.driver.ledger()
    first, *others = books.partitions
    wrong = {"windows, by the log": replace(books, windows=books.windows + 1)}
    for field in ("read", "published", "superseded", "stale"):
        more = replace(first, **{field: getattr(first, field) + 1})
        what = "entries" if field == "read" else "trades"
        words = f"{what} {field}, by the log"
        wrong[words] = replace(books, partitions=(more, *others))
    for words, until in wrong.items():
        [difference] = scene.audit(until=until).audit.differences
        assert difference.startswith("books: ")
        assert words in difference


def test_a_refusal_under_another_reason_is_found(scene: Scene) -> None:
    """What was refused is judged anew, too."""
    until = scene.driver.ledger()
    books = [
        replace(one, refused={"bad_isin": one.refused["not_json"]})
        if one.refused
        else one
        for one in until.partitions
    ]
    until = replace(until, partitions=tuple(books))
    assert scene.audit(until=until).audit.differences == [
        "books: 1 trades refused as bad_isin, by the log 0",
        "books: 0 trades refused as not_json, by the log 1",
    ]


def test_a_log_that_holds_less_than_was_read_is_found(scene: Scene) -> None:
    """An entry was deleted: what is older is still there, so it was not trimmed."""
    key = f"tt:log:{partition_of(A, 4)}"
    last, _ = scene.client.xrevrange(key, count=1)[0]
    scene.client.xdel(key, last)
    differences = scene.audit().audit.differences
    assert any("entries between its cuts" in each for each in differences), differences


def test_only_the_first_differences_are_told(scene: Scene) -> None:
    """All are counted."""
    rows = [C.replace("KR7035420009", f"KR{n:010d}") for n in range(SHOWN + 9)]

    def crowd(snapshots: list[WindowSnapshot]) -> list[WindowSnapshot]:
        [row] = snapshots[-1].rows
        more = tuple(row._replace(isin=isin) for isin in rows)
        return [*snapshots[:-1], replace(snapshots[-1], rows=(row, *more))]

    found = scene.audit(crowd).audit
    assert len(found.differences) == SHOWN
    assert found.difference_count >= SHOWN + 9


def test_windows_whose_trades_were_trimmed_are_left_out(scene: Scene) -> None:
    """They are noted, never called right or wrong; later ones are still compared."""
    key = f"tt:log:{partition_of(A, 4)}"
    scene.client.xtrim(key, minid=START_MS + 4_000, approximate=False)
    found = scene.audit().audit
    assert found.differences == []
    assert found.notes == [
        "windows that were not compared: 2, their trades are no longer in the log"
    ]
    assert found.windows == 1
    wrong = scene.audit(changed(2, C, body(b'"price":7', b'"price":8'))).audit
    assert wrong.difference_count == 1


def test_a_stream_of_several_jobs_is_not_compared(scene: Scene) -> None:
    """A note says so."""
    scene.follower.start = replace(scene.follower.start, others=("other",))
    found = scene.audit().audit
    assert (found.windows, found.difference_count) == (0, 0)
    assert found.notes == ("nothing was compared: other publish into the stream, too",)


def test_a_log_that_cannot_be_read_is_a_difference(scene: Scene) -> None:
    """Never a pass."""
    url = f"redis://127.0.0.1:{free_port()}/0"
    settings = IngestSettings(redis_url=url)
    deployment = Deployment((), settings, "throttle", 2_000, 5_000, list, list)
    found = audit(deployment, scene.follower, scene.driver.ledger()).audit
    assert found.difference_count == 1
    assert "the log could not be read again: redis_url redis://" in found.differences[0]


def test_a_whole_market_is_right(redis_url: str, client: redis.Redis) -> None:
    """Late trades, repeats and broken ones, by the product's own rules."""
    with (
        ThrottleDriver(redis_url=redis_url) as driver,
        following(redis_url, "tt", "throttle", 2_000) as follower,
    ):
        market = Simulator(rate=500, seconds=9, malformed=0.05, disorder=0.1)
        with client.pipeline(transaction=False) as pipe:
            for event in market.events(START_MS * 1_000):
                key = f"tt:log:{partition_of(event.key, 4)}"
                moment = f"{START_MS + event.due_us // 1_000}-*"
                pipe.xadd(key, {"trade": event.payload}, id=moment)
            pipe.execute()
        driver.turn_clock(10_000)
        assert follower.wait_for(START_MS + 10_000, within_s=10)
        until = driver.ledger()
        found = check(client, follower, until, follower.run)
        assert found.audit.differences == []
        assert found.audit.notes == []
        assert found.audit.trades == until.total.read > 4_000
        assert found.audit.windows == 5
        truth = follower.run.reference(found.first_news_ms)
        firsts_ms = [ms for of in truth.instruments.values() for ms in of.firsts_ms]
        late = sum(map(isnan, firsts_ms))
        assert (len(firsts_ms) - late, late) == (
            until.total.published,
            until.total.stale,
        )


@pytest.mark.kafka
def test_a_topic_is_audited_by_its_batches(
    redis_url: str, client: redis.Redis, kafka: Broker
) -> None:
    """Right as it is; a row that is not as it should be is found."""
    topic = make_log(kafka, 3)
    job = TopicJob(redis_url, client, topic)
    random, rule = Random(5), WindowRule(W, 5_000)
    job.publish()
    with following(redis_url, "tt", "throttle", W) as follower:
        for seconds in (0.2, 0.3, 0.1):
            market = Simulator(
                seed=random.randrange(99), rate=2_000, seconds=seconds, malformed=0.05
            )
            start_us = int(client.time()[0]) * 1_000_000
            events = market.events(start_us - 1_000_000)
            append(topic, [(event.key, event.payload) for event in events])
            job.publish()
        job.publish()
        assert follower.wait_for(job.cut.end_ms, within_s=10)
        until = Ledger.decode("throttle", client.hgetall(Keys("tt").ledger("throttle")))
        assert until is not None
        assert follower.wait_for_batch(until.upto.end_ms, within_s=10)
        run, batches = follower.run, follower.batches
        log = open_log_entries(client, "tt", topic)
        assert log is not None
        found = compare(log, follower.start, until, run, batches, rule)
        assert found.audit.differences == []
        assert found.audit.trades == until.total.read > 900
        assert found.audit.windows == until.windows - follower.start.ledger.windows
        full = max(range(len(run.windows)), key=lambda n: len(run.windows[n].message))
        held = run.windows[full]
        run.windows[full] = held._replace(
            message=held.message.replace(b'"size":', b'"size":1', 1)
        )
        wrong = compare(log, follower.start, until, run, batches, rule).audit
        assert wrong.difference_count == 1
        assert ": wrong: published is" in wrong.differences[0]
        lost = compare(log, follower.start, until, run, batches[1:], rule).audit
        assert lost.difference_count > 1
