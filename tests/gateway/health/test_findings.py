"""What is wrong with the pipeline: told once, where it is, since when."""

import re
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from archive.contract.archive_state import ArchiveState
from gateway.health.client_states import State
from gateway.health.finding_codes import CODES, CONSEQUENCES, HIDDEN_STAGES, STAGES
from gateway.health.findings import Diagnosis, diagnose
from gateway.health.jobs import (
    LONGEST_START_MS,
    JobStart,
    JobState,
    PipelineState,
    QueryState,
)
from gateway.health.log_ends import LogEnds, PartitionEnd
from gateway.health.readiness import REASONS, GatewayState, Reason
from gateway.stream.window_timings import KEPT, WindowTiming
from tests.documents import OPERATIONS
from throttle.contract.cut import Cut
from throttle.contract.ledger import Books, Ledger
from tickthrottle_client.server_memory import ServerMemory

NOW_MS = 1_773_964_862_000
WINDOW_MS = 2_000
STARTED_MS = NOW_MS - 60_000
SINCE_MS = NOW_MS - 14_000
NO_WINDOW = Reason("feed_stale", "no window for 14.0 s", NOW_MS - 8_000)

WELL = GatewayState(STARTED_MS, WINDOW_MS, NOW_MS - 800)
STALE = replace(
    WELL, newest_window_ms=SINCE_MS, silence=NO_WINDOW.message, silence_s=14.0
)
LONG_START = JobStart(
    "host:2", SINCE_MS, NOW_MS - 64_000, NOW_MS, LONGEST_START_MS + 4_000
)
PAGE_KNOWS = {"gateway_silent"}
"""What only the page can find, because the gateway does not answer."""


def make_log(quiet_ms: int = 100, **values: Any) -> LogEnds:
    """Return a log to which a trade was appended so long ago."""
    ends = {p: PartitionEnd(9, NOW_MS - quiet_ms) for p in (0, 1)}
    return replace(LogEnds("redis", "x", ends), **values)


def make_partition(append_ms: int, **values: Any) -> LogEnds:
    """Return a topic of one partition."""
    return LogEnds("kafka", "kafka:x", {3: PartitionEnd(9, append_ms, **values)})


def make_job(
    name: str = "main", *partitions: int, age_ms: int = 800, **values: Any
) -> JobState:
    """Return an active job whose newest window ended so long ago."""
    numbers = partitions or (0, 1)
    positions = (7,) * len(numbers)
    cut = Cut(NOW_MS - age_ms, positions, positions, numbers)
    return replace(JobState(name, "x", "host:1", 1, cut, None, None, {}), **values)


def make_dead_job(name: str = "main", *partitions: int, age_ms: int = 14_000) -> Any:
    """Return a job whose lease nobody holds."""
    return make_job(name, *partitions, age_ms=age_ms, owner=None)


def make_pipeline(*jobs: JobState, **values: Any) -> PipelineState:
    """Return what Redis says; all is well with it, unless said otherwise."""
    return replace(PipelineState(NOW_MS, jobs or (make_job(),), make_log()), **values)


def make_problem(problem: str, *, is_redis_down: bool = False) -> PipelineState:
    """Return what is known while Redis tells nothing of use."""
    log = LogEnds("redis", problem=problem)
    return PipelineState(NOW_MS, (), log, problem, is_redis_down)


def make_timings(count: int, **values: Any) -> list[WindowTiming]:
    """Return so many windows in a row, the newest ends now."""
    return [
        replace(
            WindowTiming(
                NOW_MS - (count - 1 - n) * WINDOW_MS, n + 1, 400, 1_500, 200, 230, 40, 1
            ),
            **values,
        )
        for n in range(count)
    ]


def make_unbalanced_job() -> JobState:
    """Return a job of which one trade is not accounted for."""
    cuts = Cut(0, (0,), (0,)), Cut(NOW_MS - 800, (7,), (8,))
    books = Books(8, published=7)
    ledger = Ledger("main", *cuts, 1, 1, (books,), (8,), NOW_MS - 800)
    return make_job("main", 0, ledger=ledger)


def found(diagnosis: Diagnosis) -> list[tuple[str, str, int | None]]:
    """Return code, level and since when of every finding."""
    return [(f.code, f.level, f.since_ms) for f in diagnosis.findings]


def words(diagnosis: Diagnosis) -> dict[str, str]:
    """Return what is said of every stage that is not well."""
    stages = diagnosis.stages.items()
    return {name: stage.word for name, stage in stages if stage.level != "ok"}


def test_nothing_is_found_where_all_is_well() -> None:
    """Every stage is well, and things flow between all of them."""
    diagnosis = diagnose(WELL, make_pipeline(), (), make_timings(9), {"live": 38})
    assert (diagnosis.level, diagnosis.findings) == ("ok", [])
    assert words(diagnosis) == {}
    assert tuple(diagnosis.stages) == STAGES
    flows = [stage.is_flowing for stage in diagnosis.stages.values()]
    assert flows == [True] * 5 + [False]


UNKNOWN = dict.fromkeys(("feed", "log", "job"), "not known")
OLD = {"stream": "no new window", "gateway": "serves old prices"}
"""What is said of stages of which nothing is known, and where no window comes."""

Scenario = tuple[
    GatewayState,
    PipelineState,
    list[Reason],
    list[tuple[str, str, int | None]],
    dict[str, str],
]

FAULTS: dict[str, Scenario] = {
    "Redis is down": (
        STALE,
        make_problem("Redis: Connection refused", is_redis_down=True),
        [
            Reason("redis_down", "Redis: not connected", SINCE_MS),
            NO_WINDOW,
            Reason("quiet", "no trade", SINCE_MS),
        ],
        [("redis_down", "bad", SINCE_MS)],
        {**UNKNOWN, **OLD, "stream": "does not answer"},
    ),
    "Redis holds what nobody understands": (
        WELL,
        make_problem("ledger of main: KeyError('upto')"),
        [],
        [("unreadable", "bad", None)],
        {**UNKNOWN, "stream": "not readable"},
    ),
    "the job is dead": (
        STALE,
        make_pipeline(make_dead_job()),
        [NO_WINDOW],
        [("job_dead", "bad", SINCE_MS)],
        {"job": "dead", "stream": "no new window", "gateway": "serves old prices"},
    ),
    "the first job starts": (
        replace(WELL, newest_window_ms=None, silence="no window yet"),
        make_pipeline(jobs=(), candidates={"main": "host:1"}),
        [Reason("starting", "job main: is starting", SINCE_MS)],
        [("starting", "unknown", SINCE_MS)],
        {"job": "starting", **OLD, "gateway": "waits for windows"},
    ),
    "the job was killed and started again": (
        STALE,
        make_pipeline(make_dead_job(), candidates={"main": "host:2"}),
        [Reason("starting", "job main: is starting", NOW_MS - 8_000)],
        [("starting", "unknown", SINCE_MS)],
        {"job": "starting", **OLD},
    ),
    "a job has its lease and makes its first window": (
        STALE,
        make_pipeline(make_job(age_ms=14_000), candidates={"main": "host:1"}),
        [Reason("starting", "job main: is starting", NOW_MS - 8_000)],
        [("starting", "unknown", SINCE_MS)],
        {"job": "starting", **OLD},
    ),
    "a job is behind, and another one stands by": (
        STALE,
        make_pipeline(make_job(age_ms=14_000), candidates={"main": "host:2"}),
        [NO_WINDOW],
        [("job_behind", "bad", SINCE_MS)],
        {"job": "behind", "stream": "old windows", "gateway": "serves old prices"},
    ),
    "a job takes too long to start": (
        replace(STALE, starts={"main": LONG_START}),
        make_pipeline(make_dead_job(), candidates={"main": "host:2"}),
        [Reason("start_fails", "job main: it has been starting", NOW_MS - 8_000)],
        [("start_fails", "bad", SINCE_MS)],
        {"job": "does not start", **OLD},
    ),
    "the first job starts again and again": (
        replace(
            WELL,
            newest_window_ms=None,
            silence="no window yet",
            starts={"main": replace(LONG_START, lasted_ms=0, number=2)},
        ),
        make_pipeline(jobs=(), candidates={"main": "host:2"}),
        [Reason("start_fails", "job main: it has been started", NOW_MS)],
        [("start_fails", "bad", LONG_START.begun_ms)],
        {"job": "does not start", **OLD, "gateway": "waits for windows"},
    ),
    "a worker of the gateway stood still": (
        replace(WELL, lost_workers_ms={1: SINCE_MS, 0: NOW_MS}),
        make_pipeline(),
        [],
        [("worker_lost", "warn", SINCE_MS)],
        {"gateway": "lost a worker"},
    ),
    "one of two jobs starts": (
        WELL,
        make_pipeline(
            make_job("low", 0), make_dead_job("high", 1), candidates={"high": "host:2"}
        ),
        [],
        [("starting", "unknown", SINCE_MS)],
        {"job": "starting"},
    ),
    "the job has died just now": (
        WELL,
        make_pipeline(make_dead_job(age_ms=2_500)),
        [],
        [("job_dead", "bad", NOW_MS - 2_500)],
        {"job": "dead"},
    ),
    "no job was ever there": (
        replace(WELL, newest_window_ms=None, silence="no window yet"),
        make_pipeline(jobs=()),
        [Reason("feed_stale", "no window yet", SINCE_MS)],
        [("job_dead", "bad", STARTED_MS)],
        {"job": "none", "stream": "no new window", "gateway": "waits for windows"},
    ),
    "one of two jobs is dead": (
        WELL,
        make_pipeline(make_job("low", 0), make_dead_job("high", 1)),
        [],
        [("job_dead", "bad", SINCE_MS)],
        {"job": "dead"},
    ),
    "a job holds its lease and makes no windows": (
        STALE,
        make_pipeline(make_job(age_ms=14_000)),
        [NO_WINDOW],
        [("job_behind", "bad", SINCE_MS)],
        {"job": "behind", "stream": "old windows", "gateway": "serves old prices"},
    ),
    "Kafka is away": (
        STALE,
        make_pipeline(
            make_job(age_ms=14_000), log=LogEnds("kafka", problem="no broker")
        ),
        [NO_WINDOW],
        [("log_away", "bad", None)],
        {
            "feed": "not known",
            "log": "does not answer",
            "job": "waits for the log",
            "stream": "no new window",
            "gateway": "serves old prices",
        },
    ),
    "only the gateway cannot see the log": (
        WELL,
        make_pipeline(log=LogEnds("redis", problem="no log")),
        [],
        [("log_unseen", "warn", None)],
        {"log": "not seen"},
    ),
    "windows are published and do not arrive": (
        STALE,
        make_pipeline(),
        [NO_WINDOW],
        [("feed_stale", "bad", SINCE_MS)],
        {"gateway": "hears no window"},
    ),
    "the feed is dead": (
        WELL,
        make_pipeline(log=make_log(14_000)),
        [Reason("quiet", "no trade for 14.0 s", NOW_MS - 4_000)],
        [("quiet", "bad", SINCE_MS)],
        {"feed": "quiet"},
    ),
    "the feed is quiet, which may be": (
        WELL,
        make_pipeline(log=make_log(14_000)),
        [],
        [("quiet", "warn", SINCE_MS)],
        {"feed": "quiet"},
    ),
    "Redis may evict keys": (
        WELL,
        make_pipeline(memory=ServerMemory(1, 9, "allkeys-lru", evicted=3)),
        [],
        [("may_evict", "bad", None)],
        {"stream": "may evict keys"},
    ),
    "Redis has evicted keys": (
        WELL,
        make_pipeline(memory=ServerMemory(1, 9, evicted=3)),
        [],
        [("evicted", "warn", None)],
        {"stream": "has evicted keys"},
    ),
    "Redis' memory is nearly full": (
        WELL,
        make_pipeline(memory=ServerMemory(9, 10)),
        [],
        [("memory_short", "warn", None)],
        {"stream": "memory nearly full"},
    ),
    "entries of Kafka wait behind a transaction": (
        WELL,
        make_pipeline(
            log=make_partition(append_ms=SINCE_MS, waiting=4, waits_since_ms=SINCE_MS)
        ),
        [],
        [("transaction_open", "bad", SINCE_MS)],
        {"log": "waits for a transaction"},
    ),
    "a producer of Kafka stamps wrongly": (
        WELL,
        make_pipeline(log=make_partition(append_ms=SINCE_MS, stamp_off_ms=-14_000)),
        [],
        [("wrong_stamps", "warn", None)],
        {"log": "wrong stamps"},
    ),
    "the ledger is off": (
        WELL,
        make_pipeline(make_unbalanced_job()),
        [Reason("ledger_off", "ledger of main: partition 0: 7 of 8", SINCE_MS)],
        [("ledger_off", "bad", SINCE_MS)],
        {"job": "off balance"},
    ),
    "the books cannot be read": (
        WELL,
        make_problem("ledger of main: KeyError('upto')"),
        [Reason("ledger_off", "ledger of main: KeyError('upto')", SINCE_MS)],
        [("unreadable", "bad", SINCE_MS)],
        {**UNKNOWN, "stream": "not readable"},
    ),
    "the gateway is overloaded": (
        WELL,
        make_pipeline(),
        [Reason("overloaded", "the loop lags by 812 ms", SINCE_MS)],
        [("overloaded", "bad", SINCE_MS)],
        {"gateway": "overloaded"},
    ),
    "two faults that have nothing to do with each other": (
        WELL,
        make_pipeline(),
        [
            Reason("ledger_off", "partition 1", SINCE_MS),
            Reason("overloaded", "812 ms", SINCE_MS),
        ],
        [("ledger_off", "bad", SINCE_MS), ("overloaded", "bad", SINCE_MS)],
        {"job": "off balance", "gateway": "overloaded"},
    ),
}


def test_a_fault_is_told_once_and_where_it_is() -> None:
    """What merely follows from it is not a finding, but is seen on its stage."""
    for name in FAULTS:
        gateway, pipeline, reasons, findings, stages = FAULTS[name]
        diagnosis = diagnose(gateway, pipeline, reasons)
        assert found(diagnosis) == findings
        assert words(diagnosis) == stages
        assert diagnosis.level == findings[0][1]


def test_a_fault_stops_what_flows_behind_it() -> None:
    """A drawing shows nothing on its way where nothing passes."""
    for name, flows in [
        ("the job is dead", {"feed"}),
        ("windows are published and do not arrive", {"feed", "log"}),
        ("the feed is dead", {"log", "job", "stream", "gateway"}),
        ("Redis is down", set()),
        ("Kafka is away", set()),
    ]:
        diagnosis = diagnose(*FAULTS[name][:3])
        stages = diagnosis.stages.items()
        assert {stage for stage, state in stages if state.is_flowing} == flows


def test_no_reason_passes_in_silence() -> None:
    """Never lost: a gateway that is not ready never looks well."""
    for code in REASONS:
        diagnosis = diagnose(WELL, make_pipeline(), [Reason(code, "why", SINCE_MS)])
        [finding] = diagnosis.findings
        level = "unknown" if code == "starting" else "bad"
        assert (finding.code, finding.level, finding.detail) == (code, level, "why")
        assert finding.text
        assert finding.todo


@pytest.mark.parametrize(
    ("lags", "codes"),
    [
        ({"publish_lag_ms": 2_400, "fanout_lag_ms": 2_500}, ["publish_late"]),
        ({"fanout_lag_ms": 2_500}, ["fanout_late"]),
        ({"fanout_lag_ms": None}, []),
    ],
)
def test_three_late_windows_in_a_row_are_told(
    lags: dict[str, Any], codes: list[str]
) -> None:
    """One is no trend; a lag not known is none."""
    late = make_timings(3, **lags)
    all_late = diagnose(WELL, make_pipeline(), (), late)
    assert [finding.code for finding in all_late.findings] == codes
    once = diagnose(WELL, make_pipeline(), (), [*make_timings(3)[:2], late[2]])
    assert once.findings == []
    assert [f.since_ms for f in all_late.findings] == [late[0].window] * len(codes)
    # Where no window comes, those that came before are nobody's fault any more.
    away = make_problem("Redis: Connection refused", is_redis_down=True)
    found = diagnose(WELL, away, (Reason("redis_down", "why", SINCE_MS),), late)
    assert [finding.code for finding in found.findings] == ["redis_down"]


def test_a_few_stuck_clients_are_nothing_unusual() -> None:
    """One in twenty may be."""

    def diagnose_states(**states: int) -> Diagnosis:
        counts: dict[State, int] = {"stuck": states["stuck"], "live": states["live"]}
        return diagnose(WELL, make_pipeline(), states=counts)

    assert diagnose_states(stuck=5, live=95).findings == []
    many = diagnose_states(stuck=6, live=94)
    assert found(many) == [("clients_stuck", "warn", None)]
    assert many.findings[0].detail == "6 of 100"
    assert words(many) == {"clients": "many stuck"}


def test_a_job_that_others_replaced_is_no_fault() -> None:
    """As long as every partition it read is read by others that are further."""
    old = make_dead_job("old", 0, 1)
    replaced = diagnose(WELL, make_pipeline(old, make_job("new", 0, 1)))
    assert replaced.level == "ok"
    half = diagnose(WELL, make_pipeline(old, make_job("new", 0)))
    [finding] = half.findings
    assert (finding.text, finding.job) == ("The throttle job old has been dead", "old")


def test_a_job_whose_place_was_taken_is_not_missed_again() -> None:
    """When the one that took over dies, only that one is started again."""
    old, newer = make_dead_job("old", 0, 1), make_dead_job("new", 0, 1, age_ms=7_000)
    diagnosis = diagnose(STALE, make_pipeline(old, newer), [NO_WINDOW])
    assert [finding.job for finding in diagnosis.findings] == ["new"]


def test_the_worst_comes_first() -> None:
    """A warning never hides a fault."""
    pipeline = make_pipeline(make_unbalanced_job(), log=make_log(14_000))
    diagnosis = diagnose(WELL, pipeline, states={"stuck": 1})
    codes = [finding.code for finding in diagnosis.findings]
    assert codes == ["ledger_off", "quiet", "clients_stuck"]
    assert diagnosis.level == "bad"


def test_every_code_is_documented() -> None:
    """What is found under a code, the document has a line for, and no other."""
    assert set(REASONS) < CODES.keys()
    consequences = set().union(*CONSEQUENCES.values())
    assert {*CONSEQUENCES, *HIDDEN_STAGES, *consequences} <= CODES.keys()
    section = OPERATIONS.partition("\n### What can be wrong\n")[2]
    rows = re.findall(r"^\| `(\w+)` \|", section.partition("\n## ")[0], re.M)
    assert sorted(rows) == sorted(CODES.keys() | PAGE_KNOWS)


def test_well_since_is_no_more_than_what_is_known() -> None:
    """The gateway's start, its first window, a hole and a late one end it."""
    long_ago = replace(WELL, started_ms=NOW_MS - 3_600_000)
    few, many = make_timings(30), make_timings(KEPT)
    late = [*many[:7], replace(many[7], publish_lag_ms=9_000), *many[8:]]
    for gateway, timings, since_ms, is_exact in (
        (WELL, few, STARTED_MS, True),
        (WELL, [], STARTED_MS, True),
        (long_ago, few, few[0].window, True),
        (long_ago, many, many[0].window, False),
        (long_ago, many[:5] + many[12:], many[12].window, True),
        (long_ago, late, many[7].window, True),
    ):
        diagnosis = diagnose(gateway, make_pipeline(), (), timings)
        since = diagnosis.well_since_ms, diagnosis.is_well_since_exact
        assert since == (since_ms, is_exact)


def test_an_archive_that_falls_behind_is_named() -> None:
    """As a warning: prices go on, and the gateway stays ready."""
    state = ArchiveState("parquet", "host:1", "k3x9", 7, NOW_MS - 1_000)
    behind = replace(state, window=NOW_MS - 300_000, updated_ms=NOW_MS - 290_000)
    # It is told at once, long before the archive is behind.
    stuck = replace(state, problem="archive_dir /x: No space left on device")
    archives = {
        "a": state,
        "b": behind,
        "c": stuck,
        "d": replace(behind, is_stopped=True),
    }
    diagnosis = diagnose(WELL, make_pipeline(archives=archives))
    assert diagnosis.level == "warn"
    assert [(f.code, f.text, f.detail) for f in diagnosis.findings] == [
        ("archive_away", "The archive c has stored nothing", stuck.problem),
        (
            "archive_behind",
            "The archive b has been behind",
            "it has said nothing for 290 s",
        ),
    ]
    assert [f.since_ms for f in diagnosis.findings] == [state.window, behind.window]


def test_analytics_that_fall_behind_or_die_are_named() -> None:
    """As warnings; a query that was told to stop is none, nor one without Redis."""
    cut = Cut(NOW_MS - 90_000, (1,), (1,))
    behind = QueryState("bars", "host:1", cut, NOW_MS, None)
    behind = replace(behind, figures={"every_ms": 2_000})
    well = replace(behind, product="movers", cut=Cut(NOW_MS - 9_000, (1,), (1,)))
    off = replace(well, fault="analytics of movers: KeyError('cut')")
    stopped = replace(behind, product="bursts", figures={"stopped": 1}, owner=None)
    assert diagnose(WELL, make_pipeline(queries=(well, stopped))).level == "ok"
    diagnosis = diagnose(WELL, make_pipeline(queries=(behind, off, stopped)))
    assert diagnosis.level == "warn"
    assert [(f.code, f.text, f.detail, f.since_ms) for f in diagnosis.findings] == [
        ("analytics_off", "The books of movers have been off balance", off.fault, None),
        (
            "analytics_behind",
            "The analytics query bars has been behind",
            "it has read the log up to 90 s ago",
            cut.end_ms,
        ),
    ]
    dead = [replace(query, owner=None) for query in (behind, well, stopped)]
    [finding] = diagnose(WELL, make_pipeline(queries=dead)).findings
    assert (finding.code, finding.detail) == (
        *("analytics_dead", "nobody makes bars, movers"),
    )
    assert finding.since_ms == well.cut.end_ms


def test_a_closed_market_is_not_quiet() -> None:
    """And an open one only since it has opened."""
    pipeline = make_pipeline(log=make_log(50_000_000))
    assert diagnose(replace(WELL, open_since_ms=None), pipeline).level == "ok"
    just_open = replace(WELL, open_since_ms=NOW_MS - 6_000)
    assert diagnose(just_open, pipeline).level == "ok"
    since_ms = NOW_MS - 6_001
    is_open = replace(WELL, open_since_ms=since_ms)
    assert found(diagnose(is_open, pipeline)) == [("quiet", "warn", since_ms)]


def test_a_calendar_that_ends_is_told_in_time() -> None:
    """It takes holidays for days of trading then."""
    state = replace(WELL, calendars_end={"XKRX": date(2027, 12, 31)})
    [finding] = diagnose(state, make_pipeline()).findings
    assert (finding.code, finding.level) == ("calendar_ends", "warn")
    assert finding.detail == "XKRX on 2027-12-31"


def test_a_start_is_no_fault() -> None:
    """No window can have come yet; what else is wrong is told as ever."""
    starting = replace(STALE, silence="no window yet", is_starting=True)
    waits = Reason("feed_stale", "no window yet", NOW_MS)
    none = make_pipeline(jobs=(), log=LogEnds("redis", problem="no log"))
    dead = make_pipeline(make_dead_job())
    for pipeline in (make_pipeline(), make_pipeline(jobs=()), none, dead):
        assert diagnose(starting, pipeline, [waits]).level == "unknown"
    off = make_pipeline(make_unbalanced_job())
    assert diagnose(starting, off, [waits]).level == "bad"


def test_a_transaction_that_has_just_begun_is_no_fault() -> None:
    """Producers commit several times a second, and what waits is named after that."""
    fresh = make_partition(NOW_MS, waiting=4, waits_since_ms=NOW_MS - 6_000)
    assert diagnose(WELL, make_pipeline(log=fresh)).level == "ok"
    late = make_partition(NOW_MS, waiting=4, waits_since_ms=NOW_MS - 6_001)
    [finding] = diagnose(WELL, make_pipeline(log=late)).findings
    assert finding.detail == "partition 3: 4 offsets wait"


def test_partitions_are_named_up_to_a_bound() -> None:
    """A topic may have thousands of them."""
    ends = {p: PartitionEnd(9, NOW_MS, stamp_off_ms=p * 1_000) for p in range(99)}
    log = LogEnds("kafka", "kafka:x", ends)
    [finding] = diagnose(WELL, make_pipeline(log=log)).findings
    assert finding.detail == (
        "partitions 1, 2, 3, 4, 5, 6, 7, 8, …: the newest is 98 s ahead of the clock"
    )


def test_a_start_that_fails_says_why_and_of_which_job() -> None:
    """The name where there are several; in a row, or for how long."""
    jobs = make_job("low", 0), make_dead_job("high", 1)
    pipeline = make_pipeline(*jobs, candidates={"high": "host:2"})
    for start, detail in (
        (LONG_START, "it has been starting for 64 s"),
        (replace(LONG_START, number=3), "it has been started 3 times in a row"),
    ):
        gateway = replace(WELL, starts={"high": start})
        [finding] = diagnose(gateway, pipeline).findings
        assert finding.text == "The throttle job high has failed to start"
        assert (finding.detail, finding.job) == (detail, "high")
