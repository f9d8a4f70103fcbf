"""The pipeline as one object: what is not known is null, not nought."""

from dataclasses import replace

from gateway.health.jobs import JobState
from gateway.health.log_ends import LogEnds, PartitionEnd
from gateway.operators.operators_schemas import FeedAnswer, JobAnswer
from gateway.operators.pipeline import (
    fanout_answer,
    feed_answer,
    imbalance,
    job_answer,
    log_answer,
    query_answer,
    stream_answer,
)
from gateway.stream.board import Board
from gateway.stream.window_timings import WindowTimings
from gateway.workers.worker_report import WorkerReport
from tests.gateway.health.test_analytics_queries import make_query
from tests.gateway.samples import FIRST_WINDOW, LISTED, make_board
from tests.gateway.stream.test_window_timings import make_update
from throttle.contract.cut import Cut
from throttle.contract.ledger import Books, Ledger

LOG = LogEnds("kafka", "kafka:x", {1: PartitionEnd(9, 700), 0: PartitionEnd(-1, None)})


def make_job(ledger: Ledger | None = None, log_id: str = "kafka:x") -> JobState:
    """Make a job of two partitions."""
    cut = Cut(1_000, (4, 5), (None, None))
    return JobState("job", log_id, None, None, cut, ledger, None, {})


def shown_job(job: JobState, log: LogEnds, clock_ms: int) -> JobAnswer:
    """Show the only job there is."""
    return job_answer(job, [job], log, clock_ms)


def test_a_job_without_books_is_shown() -> None:
    """It has a cut, and that is all there is to know."""
    shown = shown_job(make_job(), LOG, 1_700)
    assert (shown.is_active, shown.owner, shown.term) == (False, None, None)
    assert (shown.age_ms, shown.balanced, shown.stages) == (700, True, None)
    assert shown.last_batch is None
    first, second = shown.partitions
    assert (first.position, first.end, first.lag) == ("4", None, 0)
    assert (second.position, second.end, second.lag) == ("5", "9", 4)


def test_a_job_of_another_log_has_no_ends() -> None:
    """Its positions mean nothing in this one."""
    shown = shown_job(make_job(log_id="y"), LOG, 1_700)
    assert [(p.end, p.lag) for p in shown.partitions] == [(None, None)] * 2


def test_a_total_of_the_log_is_known_if_all_of_it_is() -> None:
    """A part of a count is no count."""
    cuts = Cut(0, (0, 0), (0, 0)), Cut(1_000, (4, 5), (None, None))
    books = Books(2, 2), Books(3, 3)
    for counts, total in (((2, None), None), ((2, 3), 5)):
        ledger = Ledger("job", *cuts, 1, 1, books, counts, 1_000)
        shown = shown_job(make_job(ledger), LOG, 1_700)
        assert (shown.total.read, shown.total.log) == (5, total)
        assert [p.log for p in shown.partitions] == list(counts)


def test_a_line_of_the_ledger_balances_or_says_by_how_much() -> None:
    """The log may have been asked at an older window: then it has counted fewer."""
    for changes, counted, wrong in [
        ({}, 100, None),
        ({}, None, None),
        ({}, 90, None),
        ({}, 103, "3 not read"),
        ({"published": 58}, 100, "2 unaccounted"),
        ({"stale": 7}, 100, "1 too many"),
    ]:
        books = Books(100, 60, 30, 6, {"bad_price": 3, "future_time": 1})
        assert imbalance(replace(books, **changes), counted) == wrong


def test_the_ends_of_the_log_come_in_order() -> None:
    """Positions are text; one that has never had an entry has none."""
    shown = log_answer(LOG)
    assert [(p.partition, p.end) for p in shown.partitions] == [(0, None), (1, "9")]
    assert log_answer(LogEnds("redis", problem="away")).partitions == []


def test_a_feed_is_quiet_since_the_last_append() -> None:
    """A clock that is ahead does not make it negative."""
    assert feed_answer(LOG, 1_000) == FeedAnswer(700, 300)
    assert feed_answer(LOG, 600).quiet_ms == 0
    assert feed_answer(LogEnds("redis"), 600) == FeedAnswer(None, None)


def test_a_stream_without_a_window_has_no_age() -> None:
    """And a reason."""
    empty = stream_answer(Board(), LISTED, 1_000, "no window yet")
    assert (empty.window_age_ms, empty.is_live) == (None, False)
    board = make_board()
    now_ms = (board.position.window or 0) + 700
    assert stream_answer(board, LISTED, now_ms, None).window_age_ms == 700
    assert now_ms > FIRST_WINDOW


def test_fan_out_shows_the_newest_window() -> None:
    """Before there is one, no lag is known."""
    reports = [
        WorkerReport(0, 11, {"live": 2, "new": 1}, 7, 13),
        WorkerReport(1, 12, {"live": 4}, 8, 2),
    ]
    assert fanout_answer(reports, []).publish_lag_ms is None
    timings = WindowTimings()
    timings.begin(make_update(2_000), 2)
    timings.finish(2_151)
    timings.begin(make_update(4_000, 2), 2)
    shown = fanout_answer(reports, list(timings.newest(9)))
    assert (shown.clients, shown.loop_lag_ms, shown.rss_bytes) == (7, 13, 15)
    assert shown.states == {"new": 1, "live": 6, "behind": 0, "stuck": 0}
    assert (shown.publish_lag_ms, shown.fanout_lag_ms) == (130, 151)
    assert [(w.pid, w.clients) for w in shown.workers] == [(11, 3), (12, 4)]


def test_a_query_is_shown_with_its_books_and_its_state() -> None:
    """What Spark has not said yet is null; of two queries each has its own line."""
    shown = query_answer(make_query(), 70_500)
    idle = replace(make_query("bars"), owner=None, figures={})
    other = query_answer(idle, 70_500)
    assert (shown.product, shown.age_ms, shown.window) == ("moves", 10_000, 60_000)
    assert (shown.trades, shown.too_late, shown.refused) == (4, 1, 2)
    assert (shown.missed, shown.batches) == (7, 3)
    assert (shown.rows, shown.bytes, shown.commit_ms) == (12, None, 85)
    assert (shown.is_dead, other.is_dead, other.rows) == (False, True, None)
