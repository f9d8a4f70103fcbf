"""The audit: a run that is right, and every way in which one can be wrong."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import isnan

import pytest
import redis

from ingest.redis_keys import Keys
from ingest.settings import IngestSettings
from ingest.tradelog.contract import partition_of
from loadtest.judge.audit import Audited, audit, compare
from loadtest.judge.following import Follower, following
from loadtest.judge.published_run import PublishedRun
from loadtest.results import Audit
from loadtest.system.deployment import Deployment
from tests.ports import free_port
from throttle.audit.log_entries import open_log_entries
from throttle.audit.recompute import WindowRule
from throttle.audit.verify import SHOWN
from throttle.contract.ledger import Ledger
from throttle.contract.snapshot import Row, WindowSnapshot
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


def moved(snapshots: list[WindowSnapshot]) -> list[WindowSnapshot]:
    """Put the row of the last window into the one before: an extra and a missing."""
    last, before = snapshots[-1], snapshots[-2]
    return [
        *snapshots[:-2],
        replace(before, rows=last.rows),
        replace(last, rows=()),
    ]


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


# What else may be wrong with a row is tried with what compares it (test_compare.py).
DOCTORS: list[tuple[Doctor, list[str]]] = [
    (changed(0, B, lambda _: ()), [f"{B}: missing: published is nothing"]),
    (changed(0, B, lambda row: (row, row)), [f"{B}: extra"]),
    (moved, [f"{C}: extra", "books: 1 trades stale, by the log 2"]),
    (
        lambda snapshots: [snapshots[0], snapshots[2]],
        [f"the window {START_MS + 6_000} is missing from the window log"],
    ),
    (
        lambda snapshots: [*snapshots, replace(snapshots[-1], offset=5, rows=())],
        [f"window {START_MS + 8_000}: was published, but is in no batch"],
    ),
]


def test_every_kind_of_difference_is_found(scene: Scene) -> None:
    for doctor, words in DOCTORS:
        audited = scene.audit(doctor).audit
        assert audited.difference_count == len(audited.differences) > 0
        told = "\n".join(audited.differences)
        assert [word for word in words if word not in told] == [], told


def test_only_the_first_differences_are_told(scene: Scene) -> None:
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
    wrong = scene.audit(changed(2, C, lambda _: ())).audit
    assert wrong.difference_count == 1


def test_a_stream_of_several_jobs_is_not_compared(scene: Scene) -> None:
    scene.follower.start = replace(scene.follower.start, others=("other",))
    found = scene.audit().audit
    assert (found.windows, found.difference_count) == (0, 0)
    assert found.notes == ("nothing was compared: other publish into the stream, too",)


def test_a_log_that_cannot_be_read_is_a_difference(scene: Scene) -> None:
    url = f"redis://127.0.0.1:{free_port()}/0"
    settings = IngestSettings(redis_url=url)
    deployment = Deployment((), settings, "throttle", 2_000, 5_000, list, list)
    found = audit(deployment, scene.follower, scene.driver.ledger()).audit
    assert found.difference_count == 1
    assert "the log could not be read again: redis_url redis://" in found.differences[0]
