"""Which starts of a job are faults."""

from dataclasses import replace

import pytest

from gateway.health.jobs import (
    AGAIN_WITHIN_MS,
    LONGEST_GAP_MS,
    LONGEST_START_MS,
    USUAL_START_S,
    JobStart,
    JobStarts,
    JobState,
    PipelineState,
)
from gateway.health.log_ends import LogEnds
from throttle.contract.cut import Cut

WINDOW_MS = 2_000
CUT_MS = 100_000
LOOK_MS = 500


class Watched:
    """Looks at one job, twice a second."""

    def __init__(self) -> None:
        self.starts = JobStarts()
        self.clock_ms = CUT_MS + 2_000
        self.cut_ms: int | None = CUT_MS

    def look(self, candidate: str | None, for_ms: int) -> str | None:
        """Look for so long while somebody is about to publish; return the fault."""
        until_ms = self.clock_ms + for_ms
        while self.clock_ms < until_ms:
            self.clock_ms += LOOK_MS
            self.starts.observe(self._pipeline(candidate), WINDOW_MS)
        start = self.starts.lasting().get("main")
        return None if start is None else start.fault

    def publish(self) -> None:
        """Have the job publish a window."""
        self.cut_ms = self.clock_ms

    def _pipeline(self, candidate: str | None) -> PipelineState:
        jobs: tuple[JobState, ...] = ()
        if self.cut_ms is not None:
            cut = Cut(self.cut_ms, (0,), (0,))
            jobs = (JobState("main", "x", None, 1, cut, None, None, {}),)
        candidates = {} if candidate is None else {"main": candidate}
        log = LogEnds("redis")
        return PipelineState(self.clock_ms, jobs, log, candidates=candidates)


@pytest.mark.parametrize("cut_ms", [CUT_MS, None])
def test_a_usual_start_is_no_fault_and_a_long_one_is(cut_ms: int | None) -> None:
    """Also the very first, of a job that has never published."""
    watched = Watched()
    watched.cut_ms = cut_ms
    assert watched.look("a", USUAL_START_S * 1_000) is None
    assert watched.look("a", LONGEST_START_MS - USUAL_START_S * 1_000) is None
    assert watched.look("a", 2 * LOOK_MS) == "it has been starting for 60 s"
    # It is there until a window comes.
    assert watched.look("a", 30_000) == "it has been starting for 90 s"
    assert watched.look(None, LOOK_MS) is None


def test_a_job_that_ends_while_it_warms_up_is_a_fault_at_its_next_start() -> None:
    """However long it warmed up before: the minute counts from its end."""
    watched = Watched()
    assert watched.look("a", LONGEST_START_MS - 5_000) is None
    assert watched.look(None, 10_000) is None
    assert watched.look("b", LOOK_MS) == "it has been started 2 times in a row"
    watched.look(None, 10_000)
    assert watched.look("c", LOOK_MS) == "it has been started 3 times in a row"
    watched.look(None, AGAIN_WITHIN_MS + LOOK_MS)
    assert watched.look("d", LOOK_MS) is None


def test_a_job_that_publishes_and_starts_again_within_a_minute_is_a_fault() -> None:
    """From start to start; who ran for longer starts as usual."""
    watched = Watched()
    watched.look("a", 20_000)
    watched.publish()
    watched.look(None, 20_000)
    assert watched.look("b", LOOK_MS) == "it has been started 2 times in a row"
    watched.look("b", 20_000)
    watched.publish()
    watched.look(None, 50_000)
    assert watched.look("c", LOOK_MS) is None


def test_processes_that_start_together_are_one_start() -> None:
    """A job and its standby overwrite each other's word."""
    watched = Watched()
    for owner in 15 * ("a", "b"):
        assert watched.look(owner, 1_000) is None


def test_a_word_that_was_missed_is_no_second_start() -> None:
    """The same process is there again: its time goes on."""
    watched = Watched()
    watched.look("a", 20_000)
    watched.look(None, 3_000)
    assert watched.look("a", 10_000) is None
    assert watched.look("a", LONGEST_START_MS) is not None


def test_time_without_a_look_is_no_time_of_the_start() -> None:
    """A machine slept, or Redis was away, for an hour: the job could not go on."""
    watched = Watched()
    watched.look("a", 20_000)
    away = replace(watched._pipeline(None), problem="Redis: no answer within 1 s")
    watched.starts.observe(away, WINDOW_MS)
    watched.clock_ms += 3_600_000
    assert watched.look("a", LOOK_MS) is None
    start: JobStart = watched.starts.lasting()["main"]
    assert start.lasted_ms == 20_000 - LOOK_MS + LONGEST_GAP_MS
