"""What was measured, put together: `loadtest/report/outcome.py`."""

from array import array
from collections import Counter

from loadtest.feed.fed import Fed
from loadtest.judge.judging import Judgement
from loadtest.judge.published_run import PublishedRun
from loadtest.judge.tallies import CrowdTick
from loadtest.report.outcome import make_outcome
from loadtest.report.recorder import Moment, Recorder
from loadtest.results import BookMovement, ClientTally, Feeding, Outcome, Summary
from loadtest.system.usage import Usage
from tests.gateway.samples import make_isins, make_row
from throttle.contract.snapshot import WindowSnapshot

ISINS = make_isins(3)


def published(*ends_ms: int) -> PublishedRun:
    """Return a run in which each window had three rows, 100 ms after its end."""
    run = PublishedRun("e1", 0, 2_000)
    for offset, end_ms in enumerate(ends_ms, 1):
        rows = tuple(make_row(isin, seq=offset) for isin in ISINS)
        published_us = (end_ms + 100) * 1_000
        run.add(WindowSnapshot("e1", offset, end_ms, 1, published_us, rows).encode())
    return run


def outcome_of(judgement: Judgement, **changes: object) -> Outcome:
    """Return the outcome of the windows that end at 4,000 and 6,000."""
    recorder = Recorder(2_000)
    for at_ms in (2_000, 4_000, 6_000, 8_000):
        tick = CrowdTick(Counter(watch=4), ClientTally(frames=6, items=18, bytes=400))
        recorder.moments.append(Moment(at_ms, 2.0, Fed(2.0, 10, 1.0), tick))
    values = {
        "name": "a stretch",
        "from_ms": 2_000,
        "to_ms": 6_000,
        "feeding": Feeding("a market", 20, 4.0, Summary(0)),
        "books": BookMovement(20, 6, 14, 0, {}, 2, ()),
        "audit": None,
        "judgement": judgement,
        "incidents": (),
        "run": published(2_000, 4_000, 6_000, 8_000),
        "recorder": recorder,
        "usage": Usage(list, list),
        **changes,
    }
    return make_outcome(**values)  # type: ignore[arg-type]


def judged() -> Judgement:
    judgement = Judgement()
    watch = judgement.kind("watch")
    watch.clients = 4
    watch.tally = ClientTally(frames=8, items=20, trades=60, bytes=800, connections=4)
    watch.lags_ms = {4_000: array("f", [120, 140]), 6_000: array("f", [160])}
    watch.fanouts_ms = {4_000: array("f", [20, 40]), 6_000: array("f", [60])}
    watch.staleness_ms = {4_000: array("f", [0, 500])}
    polling = judgement.kind("polling")
    polling.clients = 1
    polling.lags_ms = {4_000: array("f", [9_000])}
    judgement.merged_at[3] = 2
    return judgement


def test_only_prompt_clients_make_the_lag() -> None:
    """A poller is late by nature; its lag is told with its kind."""
    outcome = outcome_of(judged())
    assert (outcome.lag_ms.count, outcome.lag_ms.max) == (3, 160)
    assert outcome.fanout_ms.p50 == 40
    kinds = {kind.kind: kind for kind in outcome.kinds}
    assert kinds["polling"].lag_ms.max == 9_000
    assert kinds["watch"].items == 20


def test_only_windows_of_the_stretch_count() -> None:
    """The one that ends as it begins is not one of them."""
    outcome = outcome_of(judged())
    windows = outcome.windows
    assert list(windows.end_ms) == [4_000, 6_000]
    assert list(windows.rows) == [3, 3]
    assert list(windows.publish_ms) == [100, 100]
    assert list(windows.lag_max_ms) == [140, 160]
    assert list(windows.merged) == [0, 2]
    assert list(windows.staleness_mean_ms) == [250, None]
    assert list(outcome.seconds.at_ms) == [4_000, 6_000]


def test_what_broke_beside_the_clients_is_a_fault() -> None:
    judgement = judged()
    judgement.fault("watch", "watch client 3: went back")
    outcome = outcome_of(judgement, incidents=["the gateway ended"])
    assert outcome.faults == ["the gateway ended", "watch client 3: went back"]
