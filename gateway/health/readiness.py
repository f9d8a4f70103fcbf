"""Why the gateway is not ready, and since when. Pure.

Everything else that is wrong with the pipeline is found in ``findings``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated

from pydantic import Field

from gateway.health.jobs import (
    JobStart,
    PipelineState,
    imbalances,
    left_behind,
    starting,
)

REASONS = (
    "redis_down",
    "upstream_down",
    "start_fails",
    "starting",
    "feed_stale",
    "job_behind",
    "quiet",
    "ledger_off",
    "overloaded",
)
"""Every reason there can be, the one to look at first before the others."""


@dataclass(frozen=True, slots=True)
class GatewayState:
    """What the gateway knows without a question to anybody.

    ``silence`` says for how long no window has come, None while windows come;
    ``quiet_s`` is the time without a trade and ``most_quiet_s`` how long that may be,
    0 for ever; ``excess`` says why no more clients are let in. ``open_since_ms`` is
    when the market opened, None while it is closed, 0 where nobody knows its hours.
    ``is_starting``: it has just begun, and no window need have come. ``starts`` are
    the jobs' that last, ``lost_workers_ms`` since when workers have been lost,
    ``calendars_end`` the last days of calendars that end soon, or have ended.
    ``upstream`` is the gateway that is followed in place of Redis.
    """

    started_ms: int
    window_ms: int
    newest_window_ms: int | None = None
    silence: str | None = None
    silence_s: float = 0.0
    quiet_s: float = 0.0
    most_quiet_s: float = 0.0
    is_cut_off: bool = False
    excess: str | None = None
    open_since_ms: int | None = 0
    is_starting: bool = False
    starts: Mapping[str, JobStart] = field(default_factory=dict)
    lost_workers_ms: Mapping[int, int] = field(default_factory=dict)
    calendars_end: Mapping[str, date] = field(default_factory=dict)
    upstream: str | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong now; where it is known, for how long already."""

    message: str
    lasts_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason; ``since_ms`` is the time of day when it began to hold."""

    code: Annotated[str, Field(examples=["job_behind"])]
    message: Annotated[str, Field(examples=["job low: no window for 8.4 s"])]
    since_ms: Annotated[int, Field(examples=[1773964810000])]


def faults_of_gateway(gateway: GatewayState) -> dict[str, Fault]:
    """Return what the gateway itself sees, by the reason's code."""
    faults = {}
    if gateway.silence is not None:
        faults["feed_stale"] = Fault(gateway.silence, gateway.silence_s)
    elif 0 < gateway.most_quiet_s < gateway.quiet_s:
        message = f"no trade for {gateway.quiet_s:.1f} s"
        faults["quiet"] = Fault(message, gateway.quiet_s)
    if gateway.is_cut_off:
        name = gateway.upstream
        code = "redis_down" if name is None else "upstream_down"
        faults[code] = Fault(f"{name or 'Redis'}: not connected")
    if gateway.excess is not None:
        faults["overloaded"] = Fault(gateway.excess)
    return faults


def faults_of_pipeline(
    pipeline: PipelineState, window_ms: int, starts: Mapping[str, JobStart]
) -> dict[str, Fault]:
    """Return what only Redis can tell, by the reason's code.

    ``starts`` are those of jobs that last, by the names of the jobs.
    """
    if pipeline.problem is not None:
        code = "redis_down" if pipeline.is_redis_down else "ledger_off"
        return {code: Fault(pipeline.problem)}
    faults = {}
    if pipeline.upstream is not None and pipeline.upstream.is_job_starting:
        faults["starting"] = Fault("a throttle job is starting")
    imbalance = "; ".join(imbalances(pipeline.jobs))
    if imbalance:
        faults["ledger_off"] = Fault(imbalance)
    clock_ms = pipeline.clock_ms
    about_to = starting(pipeline, window_ms)
    if about_to:
        words = {
            name: start.fault
            for name, _ in about_to
            if (start := starts.get(name)) is not None and start.fault is not None
        }
        names = ", ".join(name for name, _ in about_to)
        cuts = [clock_ms if cut_ms is None else cut_ms for _, cut_ms in about_to]
        lasts_s = max(0, clock_ms - min(cuts)) / 1_000
        if words:
            message = "; ".join(f"job {name}: {text}" for name, text in words.items())
            faults["start_fails"] = Fault(message, lasts_s)
        else:
            faults["starting"] = Fault(f"job {names}: is starting", lasts_s)
    behind = [
        job
        for job in left_behind(pipeline.jobs, clock_ms, window_ms)
        if job.job not in dict(about_to)
    ]
    if behind:
        silences = (
            f"job {job.job}: no window for {(clock_ms - job.cut.end_ms) / 1_000:.1f} s"
            for job in behind
        )
        # The next window of each was due one window after its last one.
        due_ms = min(job.cut.end_ms for job in behind) + window_ms
        lasts_s = max(0, clock_ms - due_ms) / 1_000
        faults["job_behind"] = Fault("; ".join(silences), lasts_s)
    return faults


def all_faults(
    of_gateway: Mapping[str, Fault], of_pipeline: Mapping[str, Fault]
) -> dict[str, Fault]:
    """Join both; while a job starts, that no window comes is no fault of its own."""
    faults = {**of_gateway, **of_pipeline}
    if faults.keys() & {"starting", "start_fails"}:
        faults.pop("feed_stale", None)
    return faults


class Readiness:
    """Remembers since when each reason has held."""

    def __init__(self) -> None:
        self._since_ms: dict[str, int] = {}

    def judge(self, faults: Mapping[str, Fault], now_ms: int) -> tuple[Reason, ...]:
        """Return the faults as reasons, in the order of ``REASONS``."""
        self._since_ms = {
            code: self._since_ms.get(code, now_ms - round(fault.lasts_s * 1_000))
            for code, fault in faults.items()
        }
        return tuple(
            Reason(code, faults[code].message, self._since_ms[code])
            for code in REASONS
            if code in faults
        )
