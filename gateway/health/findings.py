"""What is wrong with the pipeline: where, how bad, since when, and what to do. Pure.

A fault is told once, at the stage it is in: what merely follows from it is no finding
of its own. Every reason for which the gateway is not ready (``readiness``) is a
finding, or follows from one.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Annotated

from pydantic import Field

from gateway.health.client_states import State
from gateway.health.finding_codes import (
    CODES,
    CONSEQUENCES,
    HIDDEN_STAGES,
    STAGES,
    Level,
    Stage,
)
from gateway.health.jobs import (
    JobStart,
    JobState,
    PipelineState,
    is_behind,
    is_retired,
    starting,
)
from gateway.health.readiness import GatewayState, Reason
from gateway.stream.window_timings import KEPT, WindowTiming
from throttle.contract.lateness import is_late
from tickthrottle_client.server_memory import ServerMemory

LATE_IN_A_ROW = 3
"""This many windows in a row are a trend."""

STUCK_SHARE = 1 / 20
"""A share of the clients that may be stuck at any time."""

_PARTITIONS_NAMED = 8

_BADNESS: dict[Level, int] = {"unknown": 0, "ok": 1, "warn": 2, "bad": 3}

_SEVERITY = list(CODES)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong; ``since_ms`` is null where nobody knows since when."""

    code: Annotated[str, Field(examples=["job_behind"])]
    level: Annotated[Level, Field(examples=["bad"])]
    stage: Annotated[Stage, Field(examples=["job"])]
    text: Annotated[str, Field(examples=["The throttle job low has been behind"])]
    detail: Annotated[str | None, Field(examples=["its newest window ended 8 s ago"])]
    since_ms: Annotated[int | None, Field(examples=[1773964802000])]
    todo: Annotated[str, Field(examples=["Look at the job's log lines."])]
    job: Annotated[str | None, Field(examples=["low"])]
    word: Annotated[str, Field(examples=["behind"])]


@dataclass(frozen=True, slots=True)
class StageState:
    """How a stage is, and whether anything passes from it to the next one."""

    level: Level
    word: str
    is_flowing: bool


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The worst level, what is wrong, the root of all first, and every stage.

    Nothing is known to have been wrong since ``well_since_ms``; before that it was, if
    ``is_well_since_exact``, or may have been.
    """

    level: Annotated[Level, Field(examples=["bad"])]
    findings: Sequence[Finding]
    stages: Annotated[
        Mapping[Stage, StageState],
        Field(
            examples=[{"job": {"level": "bad", "word": "behind", "is_flowing": True}}]
        ),
    ]
    well_since_ms: Annotated[int, Field(examples=[1773961200000])]
    is_well_since_exact: bool


def diagnose(
    gateway: GatewayState,
    pipeline: PipelineState,
    reasons: Sequence[Reason] = (),
    timings: Sequence[WindowTiming] = (),
    states: Mapping[State, int] | None = None,
) -> Diagnosis:
    """Judge all that is known at one moment.

    ``timings`` are of the newest windows that went out, oldest first, ``states`` count
    the clients.
    """
    observed = [
        *_of_redis(pipeline),
        *_of_memory(pipeline.memory),
        *_of_feed(pipeline, gateway),
        *_of_log(pipeline, gateway.window_ms),
        *_of_partitions(pipeline, gateway.window_ms),
        *_of_jobs(pipeline, gateway),
        *_of_archives(pipeline, gateway.window_ms),
        *_of_analytics(pipeline),
        *_of_workers(gateway.lost_workers_ms),
        *_of_calendars(gateway.calendars_end),
        *_of_timings(timings, gateway.window_ms),
        *_of_clients(states or {}),
    ]
    findings = _roots(_with_reasons(observed, reasons, gateway))
    if gateway.is_starting:
        findings = [_not_yet(finding) for finding in findings]
    findings.sort(key=lambda f: (-_BADNESS[f.level], _SEVERITY.index(f.code)))
    level = findings[0].level if findings else "ok"
    stages = _stages(findings, pipeline, gateway)
    return Diagnosis(level, findings, stages, *_well_since(gateway, timings))


def _finding(
    code: str,
    detail: str | None = None,
    since_ms: int | None = None,
    job: str | None = None,
) -> Finding:
    kind = CODES[code]
    return Finding(
        code,
        kind.level,
        kind.stage,
        kind.text,
        detail,
        since_ms,
        kind.todo,
        job,
        kind.word,
    )


def _of_redis(pipeline: PipelineState) -> Iterator[Finding]:
    if pipeline.problem is not None:
        code = "redis_down" if pipeline.is_redis_down else "unreadable"
        yield _finding(code, pipeline.problem)


def _of_memory(memory: ServerMemory | None) -> Iterator[Finding]:
    if memory is None:
        return
    if (reason := memory.why_forgetful()) is not None:
        yield _finding("may_evict", reason)
    elif memory.evicted:
        yield _finding("evicted", f"{memory.evicted:,} keys since it was started")
    if memory.is_nearly_full:
        used, most = (n / 2**20 for n in (memory.used_bytes, memory.max_bytes))
        yield _finding("memory_short", f"{used:,.0f} of {most:,.0f} MiB are used")


def _of_feed(pipeline: PipelineState, gateway: GatewayState) -> Iterator[Finding]:
    # Where nobody knows the market's hours, whether that is a fault is for
    # TICKTHROTTLE_QUIET_S to say: a closed market is quiet, too.
    last_ms, opened_ms = pipeline.log.last_append_ms, gateway.open_since_ms
    if last_ms is None or opened_ms is None:
        return
    since_ms = max(last_ms, opened_ms)
    if is_late(pipeline.clock_ms - since_ms, gateway.window_ms):
        yield replace(_finding("quiet", since_ms=since_ms), level="warn")


def _of_calendars(calendars_end: Mapping[str, date]) -> Iterator[Finding]:
    if calendars_end:
        ends = (f"{market} on {last}" for market, last in calendars_end.items())
        yield _finding("calendar_ends", ", ".join(ends))


def _of_log(pipeline: PipelineState, window_ms: int) -> Iterator[Finding]:
    log = pipeline.log
    if log.problem is None or pipeline.problem is not None:
        return
    goes_on = any(
        job.owner is not None
        and not is_late(pipeline.clock_ms - job.cut.end_ms, window_ms)
        for job in pipeline.jobs
    )
    if goes_on:
        # It is only the gateway that cannot ask the log.
        yield _finding("log_unseen", log.problem)
    elif log.kind == "kafka":
        yield _finding("log_away", log.problem)
    else:
        # Redis answers, or this would not be known.
        yield replace(
            _finding("log_away", log.problem),
            text="There has been no trade log",
            word="none",
            todo="Start a feed: it makes the log.",
        )


def _of_partitions(pipeline: PipelineState, window_ms: int) -> Iterator[Finding]:
    """Find what holds partitions of Kafka up: transactions, stamps of producers."""
    ends = pipeline.log.partitions or {}
    waiting = {
        p: end.waits_since_ms
        for p, end in ends.items()
        if end.waits_since_ms is not None
        and is_late(pipeline.clock_ms - end.waits_since_ms, window_ms)
    }
    if waiting:
        offsets = sum(ends[p].waiting for p in waiting)
        detail = f"{_named(waiting)}: {offsets:,} offsets wait"
        yield _finding("transaction_open", detail, min(waiting.values()))
    off = {p: end.stamp_off_ms for p, end in ends.items() if end.stamp_off_ms}
    if off:
        worst_ms = max(off.values(), key=abs)
        where = "ahead of" if worst_ms > 0 else "behind"
        detail = f"{_named(off)}: the newest is {abs(worst_ms) // 1_000:,} s {where}"
        yield _finding("wrong_stamps", f"{detail} the clock")


def _named(partitions: Collection[int]) -> str:
    shown = sorted(partitions)[:_PARTITIONS_NAMED]
    names = ", ".join(map(str, shown)) + (", …" if len(partitions) > len(shown) else "")
    return f"partition {names}" if len(partitions) == 1 else f"partitions {names}"


def _of_jobs(pipeline: PipelineState, gateway: GatewayState) -> Iterator[Finding]:
    jobs = pipeline.jobs
    about_to = dict(starting(pipeline, gateway.window_ms))
    for name, cut_ms in about_to.items():
        observed = _of_start(name, cut_ms, pipeline.clock_ms, gateway.starts.get(name))
        if len(jobs) > 1:
            named = observed.text.replace("throttle job", f"throttle job {name}")
            observed = replace(observed, text=named)
        yield observed
    is_known = pipeline.problem is None and pipeline.upstream is None
    if not jobs and not about_to and is_known:
        yield replace(
            _finding("job_dead", since_ms=gateway.started_ms),
            text="No throttle job has published",
            word="none",
        )
    for job in jobs:
        name = f"The throttle job {job.job}" if len(jobs) > 1 else "The throttle job"
        if job.job not in about_to:
            yield from _of_job(job, name, pipeline, gateway.window_ms)
        elif job.problems:
            yield _finding("ledger_off", "; ".join(job.problems), job=job.job)


def _of_start(
    name: str, cut_ms: int | None, clock_ms: int, start: JobStart | None
) -> Finding:
    if start is not None and start.fault is not None:
        since_ms = start.begun_ms if cut_ms is None else cut_ms
        return _finding("start_fails", start.fault, since_ms, name)
    detail = "it has published nothing yet"
    if cut_ms is not None:
        age_s = round((clock_ms - cut_ms) / 1_000)
        detail = f"its newest window ended {age_s} s ago"
    return _finding("starting", detail, cut_ms, name)


def _of_workers(lost_ms: Mapping[int, int]) -> Iterator[Finding]:
    if lost_ms:
        workers = ", ".join(f"worker {worker}" for worker in sorted(lost_ms))
        yield _finding("worker_lost", workers, min(lost_ms.values()))


def _of_job(
    job: JobState, name: str, pipeline: PipelineState, window_ms: int
) -> Iterator[Finding]:
    jobs, clock_ms, cut_ms = pipeline.jobs, pipeline.clock_ms, job.cut.end_ms
    if job.owner is None and not is_retired(job, jobs):
        dead = _finding("job_dead", since_ms=cut_ms, job=job.job)
        yield replace(dead, text=f"{name} has been dead")
    elif job.owner is not None and is_behind(job, jobs, clock_ms, window_ms):
        age_s = round((clock_ms - cut_ms) / 1_000)
        detail = f"its newest window ended {age_s} s ago"
        behind = _finding("job_behind", detail, cut_ms, job.job)
        yield replace(behind, text=f"{name} has been behind")
    if job.problems:
        yield _finding("ledger_off", "; ".join(job.problems), job=job.job)


def _of_archives(pipeline: PipelineState, window_ms: int) -> Iterator[Finding]:
    newest_ms = max((job.cut.end_ms for job in pipeline.jobs), default=0)
    for name, archive in pipeline.archives.items():
        if archive.problem is not None and not archive.is_stopped:
            away = _finding("archive_away", archive.problem, archive.window or None)
            yield replace(away, text=f"The archive {name} has stored nothing")
        elif archive.is_behind(newest_ms, window_ms):
            silent_s = round((pipeline.clock_ms - archive.updated_ms) / 1_000)
            detail = f"it has said nothing for {silent_s} s"
            behind = _finding("archive_behind", detail, archive.window or None)
            text = f"The archive {name} has been behind"
            yield replace(behind, text=text)


def _of_analytics(pipeline: PipelineState) -> Iterator[Finding]:
    queries = pipeline.queries
    dead = [query for query in queries if query.is_dead()]
    if dead:
        products = ", ".join(query.product for query in dead)
        since_ms = max(query.cut.end_ms for query in dead)
        yield _finding("analytics_dead", f"nobody makes {products}", since_ms or None)
    for query in queries:
        cut_ms, name = query.cut.end_ms, query.product
        if query.is_behind(pipeline.clock_ms):
            age_s = round((pipeline.clock_ms - cut_ms) / 1_000)
            detail = f"it has read the log up to {age_s} s ago"
            behind = _finding("analytics_behind", detail, cut_ms or None)
            yield replace(behind, text=f"The analytics query {name} has been behind")
        if query.problems:
            off = _finding("analytics_off", "; ".join(query.problems))
            yield replace(off, text=f"The books of {name} have been off balance")


def _of_timings(timings: Sequence[WindowTiming], window_ms: int) -> Iterator[Finding]:
    newest = timings[-LATE_IN_A_ROW:]
    if len(newest) < LATE_IN_A_ROW:
        return
    for code, lags_ms in (
        ("publish_late", [timing.publish_lag_ms for timing in newest]),
        ("fanout_late", [timing.fanout_lag_ms for timing in newest]),
    ):
        if all(lag_ms is not None and lag_ms > window_ms for lag_ms in lags_ms):
            detail = f"the newest one {(lags_ms[-1] or 0) / 1_000:.1f} s after its end"
            yield _finding(code, detail, newest[0].window)


def _of_clients(states: Mapping[State, int]) -> Iterator[Finding]:
    stuck, count = states.get("stuck", 0), sum(states.values())
    if stuck > count * STUCK_SHARE:
        yield _finding("clients_stuck", f"{stuck} of {count}")


def _with_reasons(
    observed: Sequence[Finding], reasons: Sequence[Reason], gateway: GatewayState
) -> list[Finding]:
    """Add the reasons: to the findings of their code, or as findings of their own."""
    by_code = {reason.code: reason for reason in reasons}
    if "ledger_off" in by_code:
        # Of what cannot be read no books are known.
        by_code.setdefault("unreadable", by_code["ledger_off"])
    findings = []
    for finding in observed:
        reason = by_code.get(finding.code)
        if reason is not None:
            since_ms, detail = finding.since_ms, finding.detail
            finding = replace(
                finding,
                level=CODES[finding.code].level,
                detail=reason.message if detail is None else detail,
                since_ms=reason.since_ms if since_ms is None else since_ms,
            )
        findings.append(finding)
    codes = {finding.code for finding in observed}
    for reason in reasons:
        if reason.code not in codes:
            since_ms = reason.since_ms
            if reason.code == "feed_stale" and gateway.newest_window_ms is not None:
                # When the last window ended says more than when it was missed.
                since_ms = gateway.newest_window_ms
            findings.append(_finding(reason.code, reason.message, since_ms))
    return findings


def _roots(findings: Sequence[Finding]) -> list[Finding]:
    """Return what follows from nothing else."""
    following = {
        code
        for finding in findings
        for code in CONSEQUENCES.get(finding.code, frozenset())
    }
    return [finding for finding in findings if finding.code not in following]


def _not_yet(finding: Finding) -> Finding:
    """Return a finding of a gateway that has just begun: it need not be a fault."""
    # Job and feed may be starting with it, and be a moment behind.
    is_early = finding.code in ("feed_stale", "job_dead", "log_away")
    return replace(finding, level="unknown") if is_early else finding


def _stages(
    findings: Sequence[Finding], pipeline: PipelineState, gateway: GatewayState
) -> dict[Stage, StageState]:
    is_live, silent = gateway.silence is None, _silent(gateway)
    stages: dict[Stage, tuple[Level, str]] = dict.fromkeys(STAGES, ("ok", "well"))
    for finding in findings:
        for stage, word in HIDDEN_STAGES.get(finding.code, {}).items():
            # One of several jobs may be dead while the others publish.
            if stage not in ("stream", "gateway") or not is_live:
                stages[stage] = "unknown", word
    if pipeline.upstream is not None:
        stages |= dict.fromkeys(("feed", "log", "job"), ("unknown", "see upstream"))
    if pipeline.log.kind == "kafka" and pipeline.log.problem is None:
        # It is not in Redis, and says itself whether it is well.
        stages["log"] = "ok", "well"
    if not is_live and stages["gateway"][0] == "ok":
        stages["gateway"] = silent
    for finding in findings:
        level, word = stages[finding.stage]
        is_worse = _BADNESS[finding.level] > _BADNESS[level] or level == "ok"
        if is_worse or (finding.stage, (level, word)) == ("gateway", silent):
            stages[finding.stage] = finding.level, finding.word
    levels = {stage: level for stage, (level, _) in stages.items()}
    is_active = any(job.owner is not None for job in pipeline.jobs)
    flows: dict[Stage, bool] = {
        "feed": levels["feed"] in ("ok", "warn") and levels["log"] != "bad",
        "log": levels["log"] in ("ok", "warn") and is_active,
        "job": is_active and is_live,
        "stream": is_live and levels["stream"] != "bad",
        "gateway": is_live,
        "clients": False,
    }
    return {stage: StageState(*stages[stage], flows[stage]) for stage in STAGES}


def _silent(gateway: GatewayState) -> tuple[Level, str]:
    """Say how a gateway is that gets no windows: clients may have older prices."""
    if gateway.newest_window_ms is None:
        return "unknown", "waits for windows"
    return "warn", "serves old prices"


def _well_since(
    gateway: GatewayState, timings: Sequence[WindowTiming]
) -> tuple[int, bool]:
    """Return since when all has been well as far as is known, and if that is exact.

    What is known is the gateway's start, and its newest windows without a hole or a
    late one. Where there were more windows than are kept, it may have been well before.
    """
    started_ms, window_ms = gateway.started_ms, gateway.window_ms
    first_ms = timings[0].window if timings else started_ms
    is_exact = len(timings) < KEPT
    if is_exact and first_ms - started_ms <= 2 * window_ms:
        first_ms = started_ms
    since_ms, before_ms = first_ms, None
    for timing in timings:
        end_ms = timing.window
        is_hole = before_ms is not None and is_late(end_ms - before_ms, window_ms)
        if is_hole or is_late(timing.publish_lag_ms, window_ms):
            since_ms, is_exact = end_ms, True
        before_ms = end_ms
    return since_ms, is_exact
