"""Reasons are told in order, each with the time it was seen first."""

from dataclasses import replace

from gateway.health.jobs import LONGEST_START_MS, JobStart, JobState, PipelineState
from gateway.health.log_ends import LogEnds
from gateway.health.readiness import (
    REASONS,
    Fault,
    GatewayState,
    Readiness,
    Reason,
    all_faults,
    faults_of_gateway,
    faults_of_pipeline,
)
from throttle.contract.cut import Cut


def test_a_reason_keeps_its_beginning_while_it_lasts() -> None:
    """Its words may change."""
    readiness = Readiness()
    assert readiness.judge({"quiet": Fault("no trade for 6 s", 0.5)}, 1_000) == (
        Reason("quiet", "no trade for 6 s", 500),
    )
    assert readiness.judge({"quiet": Fault("no trade for 8 s", 2.5)}, 3_000) == (
        Reason("quiet", "no trade for 8 s", 500),
    )


def test_a_reason_that_comes_back_begins_anew() -> None:
    """The time before is over."""
    readiness = Readiness()
    readiness.judge({"quiet": Fault("a")}, 1_000)
    assert readiness.judge({}, 2_000) == ()
    assert readiness.judge({"quiet": Fault("b")}, 3_000)[0].since_ms == 3_000


def test_the_cause_comes_before_the_consequence() -> None:
    """Whoever reads only the first reads the right one."""
    faults = dict.fromkeys(reversed(REASONS), Fault("x"))
    assert [reason.code for reason in Readiness().judge(faults, 1)] == list(REASONS)


GATEWAY = GatewayState(started_ms=0, window_ms=2_000, quiet_s=8.0)


def test_what_the_gateway_sees_is_a_reason_of_its_own() -> None:
    """Without windows nothing can be said of trades."""
    assert faults_of_gateway(GATEWAY) == {}
    wary = replace(GATEWAY, most_quiet_s=5.0)
    assert faults_of_gateway(wary) == {"quiet": Fault("no trade for 8.0 s", 8.0)}
    assert faults_of_gateway(replace(wary, most_quiet_s=8.0)) == {}
    silent = replace(wary, silence="no window for 7.0 s", silence_s=7.0)
    assert faults_of_gateway(silent) == {
        "feed_stale": Fault("no window for 7.0 s", 7.0)
    }
    alone = replace(GATEWAY, is_cut_off=True, excess="the gateway is late")
    assert faults_of_gateway(alone) == {
        "redis_down": Fault("Redis: not connected"),
        "overloaded": Fault("the gateway is late"),
    }


def test_a_pipeline_that_cannot_be_read_is_a_reason() -> None:
    """Books that cannot be read do not balance as far as anybody knows."""
    away = PipelineState(0, (), LogEnds("redis"), "Redis: no answer", True)
    assert faults_of_pipeline(away, 2_000, {}) == {
        "redis_down": Fault("Redis: no answer")
    }
    garbled = PipelineState(0, (), LogEnds("redis"), "cut of main: ?")
    assert faults_of_pipeline(garbled, 2_000, {}) == {
        "ledger_off": Fault("cut of main: ?")
    }
    empty = PipelineState(0, (), LogEnds("redis"))
    assert faults_of_pipeline(empty, 2_000, {}) == {}


def test_a_job_left_behind_is_named_since_its_next_window_was_due() -> None:
    """That was one window after its last."""
    low, high = (
        JobState(name, "x", "me", 1, Cut(end_ms, (0,), (0,), (p,)), None, None, {})
        for p, (name, end_ms) in enumerate((("low", 20_000), ("high", 26_000)))
    )
    pipeline = PipelineState(26_500, (low, high), LogEnds("redis"))
    assert faults_of_pipeline(pipeline, 2_000, {}) == {
        "job_behind": Fault("job low: no window for 6.5 s", 4.5)
    }


def test_a_job_that_starts_is_the_only_reason_for_missing_windows() -> None:
    """Since its last one, if there was one; others that are behind are named."""
    log = LogEnds("redis")
    fresh = PipelineState(9_000, (), log, candidates={"main": "me"})
    starts = {"starting": Fault("job main: is starting", 0.0)}
    assert faults_of_pipeline(fresh, 2_000, {}) == starts
    silent = faults_of_gateway(replace(GATEWAY, silence="no window yet"))
    assert all_faults(silent, starts) == starts
    assert all_faults(silent, {}) == silent
    cut = Cut(20_000, (0,), (0,), (0,))
    dead = JobState("main", "x", None, 1, cut, None, None, {})
    killed = PipelineState(26_500, (dead,), log, candidates={"main": "me"})
    assert faults_of_pipeline(killed, 2_000, {}) == {
        "starting": Fault("job main: is starting", 6.5)
    }
    standby = replace(dead, owner="other")
    assert not faults_of_pipeline(replace(killed, jobs=(standby,)), 2_000, {})


def test_a_start_that_fails_is_a_reason_of_its_own() -> None:
    """Then clients are not told that the job is starting; others may well be."""
    both = {"high": "me", "low": "you"}
    pipeline = PipelineState(90_000, (), LogEnds("redis"), candidates=both)
    usual = JobStart("you", None, 80_000, 90_000, LONGEST_START_MS)
    starts = {"high": replace(usual, number=2), "low": usual}
    faults = faults_of_pipeline(pipeline, 2_000, starts)
    message = "job high: it has been started 2 times in a row"
    assert faults == {"start_fails": Fault(message, 0.0)}
    silent = faults_of_gateway(replace(GATEWAY, silence="no window yet"))
    assert all_faults(silent, faults) == faults
