"""Several workers as one gateway."""

from dataclasses import replace

import orjson
from pydantic import TypeAdapter

from gateway.health.client_states import ClientRow, State
from gateway.health.readiness import Reason
from gateway.stream.window_timings import KEPT, WindowTiming
from gateway.workers.worker_report import (
    WorkerReport,
    add_states,
    join_reasons,
    join_slowest,
    join_timings,
)

TIMING = WindowTiming(2_000, 7, 3, 9, 31, 50, 10, 1)


def make_row(name: str, state: State, unsent_bytes: int = 0) -> ClientRow:
    """Describe a client."""
    return ClientRow(
        name, state, "a", "websocket", 1, False, 0, unsent_bytes, 1_000, 2_000
    )


def make_report(worker: int, **parts: object) -> WorkerReport:
    """Describe a worker with one live client."""
    report = WorkerReport(worker, 100 + worker, {"live": 1}, 5, 2)
    return replace(report, **parts)  # type: ignore[arg-type]


def test_states_are_added_up() -> None:
    """And those that nobody is in are 0."""
    reports = [make_report(0), make_report(1, states={"live": 2, "stuck": 1})]
    assert add_states(reports) == {"new": 0, "live": 3, "behind": 0, "stuck": 1}
    assert [report.clients for report in reports] == [1, 3]


def test_the_slowest_of_all_come_first() -> None:
    """Whoever's client it is; of equal ones the order stays."""
    one = [make_row("a", "behind", 5), make_row("b", "live")]
    other = [
        make_row("c", "stuck", 1),
        make_row("d", "behind", 9),
        make_row("e", "new"),
    ]
    reports = [make_report(0, slowest=one), make_report(1, slowest=other)]
    names = [row.id for row in join_slowest(reports, 4)]
    assert names == ["c", "d", "a", "b"]


def test_a_reason_is_given_once() -> None:
    """As the worker that answers sees it, before what others add."""
    mine, theirs = Reason("starting", "mine", 5), Reason("starting", "theirs", 3)
    late = Reason("overloaded", "is late", 9)
    reports = [make_report(0, reasons=[mine]), make_report(1, reasons=[theirs, late])]
    assert join_reasons(reports) == [mine, late]


def test_a_window_has_gone_out_when_the_last_worker_has_sent_it() -> None:
    """Clients are added up; who was not there yet is not waited for."""
    newer = replace(TIMING, offset=8, window=4_000)
    mine = [TIMING, newer]
    theirs = [replace(TIMING, fanout_lag_ms=80, clients=4)]
    theirs.append(replace(newer, fanout_lag_ms=None))
    third = [newer]
    reports = [make_report(n, timings=t) for n, t in enumerate((mine, theirs, third))]
    older, newest = join_timings(reports)
    assert (older.fanout_lag_ms, older.clients) == (80, 14)
    assert (newest.fanout_lag_ms, newest.clients) == (None, 30)
    assert (TIMING.clients, TIMING.fanout_lag_ms) == (10, 50)


def test_as_many_windows_are_joined_as_are_kept() -> None:
    """The newest."""
    one = [replace(TIMING, offset=n) for n in range(KEPT)]
    other = [replace(TIMING, offset=n + 5) for n in range(KEPT)]
    joined = join_timings([make_report(0, timings=one), make_report(1, timings=other)])
    assert [t.offset for t in joined] == list(range(5, KEPT + 5))


def test_a_report_is_the_same_after_its_way() -> None:
    """Through JSON, as another worker reads it."""
    report = make_report(
        1,
        reasons=[Reason("quiet", "no trade", 4)],
        timings=[TIMING],
        slowest=[make_row("a", "new")],
    )
    sent = orjson.loads(orjson.dumps(report))
    assert TypeAdapter(WorkerReport).validate_python(sent) == report
