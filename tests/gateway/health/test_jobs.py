"""What Redis says of the jobs: lag counted exactly or not at all, and who is behind."""

from typing import Any

import orjson
import pytest

from gateway.health.jobs import (
    JobState,
    decode_job,
    imbalances,
    job_names,
    lag,
    left_behind,
)
from gateway.health.log_ends import LogEnds, PartitionEnd
from throttle.contract.cut import Cut
from throttle.contract.ledger import Books, Ledger

W = 2_000
LATE_MS = 3 * W + 1


def make_ledger(read: int = 0, since: int | None = 0, log: int | None = None) -> Ledger:
    """Make the balanced books of one partition."""
    cuts = Cut(0, (0,), (since,)), Cut(W, (100,), (None,))
    books = Books(read, published=read)
    return Ledger("job", *cuts, 1, 1, (books,), (log,), W)


def make_job(job: str = "job", **values: Any) -> JobState:
    """Make a job that reads one partition of the log ``x``."""
    fields: dict[str, Any] = {
        "log_id": "x",
        "owner": "me",
        "term": 1,
        "cut": Cut(W, (100,), (40,)),
        "ledger": None,
        "last_batch": None,
        "stages": {},
    }
    return JobState(job, **{**fields, **values})


def redis_log(**end: Any) -> LogEnds:
    """Make a log in Redis with one partition."""
    values = {"position": 500, "append_ms": 0, "added": 45, "left": 20, "first": 50}
    return LogEnds("redis", "x", {0: PartitionEnd(**{**values, **end})})


def test_lag_in_redis_is_what_was_added_after_the_cut() -> None:
    """Both numbers are the log's own."""
    assert lag(make_job(), 0, redis_log()) == 5


def test_what_is_left_behind_the_cut_is_the_lag_when_older_entries_are_gone() -> None:
    """Entries that were dropped unread are not waiting any more."""
    assert lag(make_job(), 0, redis_log(first=101)) == 20
    assert lag(make_job(), 0, redis_log(first=None, left=0, added=40)) == 0


def test_a_cut_without_a_count_is_counted_by_what_was_read() -> None:
    """A job far behind does not know the log's count; balanced books stand for it."""
    for ledger, expected in [
        (make_ledger(read=30, since=2), 13),
        (make_ledger(read=30, since=None), None),
        (make_ledger(read=30, log=29), None),
        (make_ledger(read=30, log=31), None),
        (None, None),
    ]:
        job = make_job(cut=Cut(W, (100,), (None,)), ledger=ledger)
        assert lag(job, 0, redis_log()) == expected


def test_a_partition_the_books_do_not_have_yet_has_no_lag() -> None:
    """Null rather than wrong."""
    job = make_job(cut=Cut(W, (0, 0), (None, None)), ledger=make_ledger())
    end = PartitionEnd(5, 0, 1, 1, 0)
    assert lag(job, 1, LogEnds("redis", "x", {1: end})) is None


def test_a_lag_that_is_not_known_is_none() -> None:
    """A number on an operator's page has to be true."""
    for log in [
        LogEnds("redis", problem="away"),
        LogEnds("redis", "y", redis_log().partitions),
        redis_log(added=39),
        redis_log(added=70),
        redis_log(added=None),
        LogEnds("kafka", "x", {0: PartitionEnd(None, None)}),
    ]:
        assert lag(make_job(), 0, log) is None


def test_lag_in_kafka_is_a_difference_of_offsets() -> None:
    """A brand-new partition ends at -1, before its first offset."""
    log = LogEnds("kafka", "x", {0: PartitionEnd(107, 0)})
    assert lag(make_job(), 0, log) == 7
    assert lag(make_job(cut=Cut(W, (-1,), (0,))), 0, log) == 108


def behind(*jobs: JobState, clock_ms: int) -> list[str]:
    """Return the names of the jobs that are behind."""
    return [job.job for job in left_behind(jobs, clock_ms, W)]


def test_a_job_is_behind_when_others_went_on_without_it() -> None:
    """Three windows may pass; then its trades are missed."""
    stopped = make_job("low", cut=Cut(10 * W, (0,), (0,), (0,)))
    going = make_job("high", cut=Cut(14 * W, (0,), (0,), (1,)))
    at_ms = 10 * W + LATE_MS
    assert behind(stopped, going, clock_ms=at_ms - 1) == []
    assert behind(stopped, going, clock_ms=at_ms) == ["low"]


def test_jobs_that_all_stand_still_are_another_fault() -> None:
    """Then no windows come, and that is said."""
    stopped = [make_job(n, cut=Cut(W, (0,), (0,), (p,))) for p, n in enumerate("ab")]
    assert behind(*stopped, clock_ms=100 * W) == []
    assert behind(stopped[0], clock_ms=100 * W) == []


def test_a_retired_job_is_left_alone() -> None:
    """Its partitions are read under other names, or its log is not read any more."""
    at_ms = 20 * W
    retired = make_job("both", cut=Cut(W, (0, 0), (0, 0)))
    low = make_job("low", cut=Cut(at_ms, (0,), (0,), (0,)))
    high = make_job("high", cut=Cut(at_ms, (0,), (0,), (1,)))
    assert behind(retired, low, high, clock_ms=at_ms) == []
    assert behind(retired, low, clock_ms=at_ms) == ["both"]
    former = make_job("former", log_id="y", cut=Cut(W, (0,), (0,), (7,)))
    assert behind(former, low, clock_ms=at_ms) == []


META = {
    b"cut:job": orjson.dumps(Cut(W, (1,), (1,)).to_offset()),
    b"log:job": b"x",
    b"term:job": b"7",
    b"offset": b"3",
}


def test_a_job_is_decoded_without_anything_but_its_cut() -> None:
    """It has a lease before it has published, and none once it has ended."""
    assert job_names(META) == ["job"]
    job = decode_job("job", META, None, {}, [], {})
    assert (job.log_id, job.owner, job.term, job.cut.end_ms) == ("x", None, 7, W)
    assert job.problems == []
    bare = decode_job("job", {b"cut:job": META[b"cut:job"]}, b"7 a:1", {}, [], {})
    assert (bare.log_id, bare.owner, bare.term) == (None, "a:1", None)


def test_stages_are_numbers_of_milliseconds() -> None:
    """Whatever else stands beside them is not shown."""
    stages = {b"batch": b"4", b"read_ms": b"12", b"x_ms": b"-1", b"y_ms": b"\xff"}
    assert decode_job("job", META, None, {}, [], stages).stages == {"read_ms": 12}


def test_books_that_cannot_be_read_are_a_problem_of_their_job() -> None:
    """The others are shown all the same."""
    job = decode_job("job", META, None, {b"since": b"{}"}, [], {})
    assert imbalances([job]) == [job.fault]
    assert str(job.fault).startswith("ledger of job: ")
    batch = [(b"1-0", {b"batch": b"x"})]
    fault = decode_job("job", META, None, {}, batch, {}).fault
    assert str(fault).startswith("ledger of job: ")


def test_a_cut_that_cannot_be_read_is_an_error() -> None:
    """Nothing is known of a job that does not say where it is."""
    with pytest.raises(ValueError, match="cut of job: "):
        decode_job("job", {b"cut:job": b"{}"}, None, {}, [], {})


def test_what_does_not_balance_names_its_job() -> None:
    """Books that balance have no problem."""
    off = make_job(ledger=make_ledger(read=1, log=2))
    assert imbalances([make_job(ledger=make_ledger()), off]) == [
        "ledger of job: partition 0: the log counted 2 trades up to the window 2000, "
        "1 were read up to 2000"
    ]
