"""What a worker of a gateway says of itself, and several together. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.health.client_states import STATES, ClientRow, State, slowness
from gateway.health.readiness import Reason
from gateway.stream.window_timings import KEPT, WindowTiming


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """One worker; ``slowest`` are some of its clients, the slowest first."""

    worker: int
    pid: int
    states: Mapping[State, int]
    rss_bytes: int
    loop_lag_ms: int
    reasons: Sequence[Reason] = ()
    timings: Sequence[WindowTiming] = ()
    slowest: Sequence[ClientRow] = ()

    @property
    def clients(self) -> int:
        """How many clients it has."""
        return sum(self.states.values())


def add_states(reports: Iterable[WorkerReport]) -> dict[State, int]:
    """Count the clients of all workers by state."""
    counts: Counter[State] = Counter()
    for report in reports:
        counts.update(report.states)
    return {state: counts[state] for state in STATES}


def join_slowest(reports: Iterable[WorkerReport], most: int) -> list[ClientRow]:
    """Return the slowest clients of all workers, the very slowest first."""
    rows = [row for report in reports for row in report.slowest]
    rows.sort(
        key=lambda row: slowness(row.state, row.unsent_bytes, row.pending), reverse=True
    )
    return rows[:most]


def join_reasons(reports: Iterable[WorkerReport]) -> list[Reason]:
    """Return each reason once, as the first worker gives it."""
    joined: dict[str, Reason] = {}
    for report in reports:
        for reason in report.reasons:
            joined.setdefault(reason.code, reason)
    return list(joined.values())


def join_timings(reports: Iterable[WorkerReport]) -> list[WindowTiming]:
    """Return the newest updates as they went out, oldest first.

    One has gone out when the last worker has sent it.
    """
    joined: dict[int, WindowTiming] = {}
    for report in reports:
        for timing in report.timings:
            known = joined.get(timing.offset)
            joined[timing.offset] = timing if known is None else _join(known, timing)
    return [joined[offset] for offset in sorted(joined)[-KEPT:]]


def _join(one: WindowTiming, other: WindowTiming) -> WindowTiming:
    lag_ms, other_ms = one.fanout_lag_ms, other.fanout_lag_ms
    return replace(
        one,
        fanout_lag_ms=(
            None if lag_ms is None or other_ms is None else max(lag_ms, other_ms)
        ),
        clients=one.clients + other.clients,
    )
