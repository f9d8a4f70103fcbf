"""The operations view's rules: what is at fault, since when, and in which words."""

import re
from pathlib import Path
from typing import Any

import pytest

from gateway.health import CODES
from gateway.pulse import KEPT
from tests.gateway.rules import Rules
from tests.gateway.told import (
    NOW_MS,
    STARTED_MS,
    WINDOW_MS,
    make_books,
    make_job,
    make_pipeline,
    make_stream,
    make_windows,
)

SINCE_MS = NOW_MS - 14_000
DOCUMENT = Path(__file__).parents[2] / "docs" / "operations.md"
DEAD = {"is_active": False, "owner": None, "age_ms": 14_000}
STALE = make_stream(is_live=False, window=SINCE_MS, window_age_ms=14_000)
NO_WINDOW = ("feed_stale", NOW_MS - 8_000, "no window for 14.0 s")


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Rules:
    """The rules, in Node."""
    return Rules(tmp_path_factory.mktemp("rules"))


def told(diagnosis: dict[str, Any]) -> list[tuple[str, str, int | None]]:
    """Return code, level and since when of every finding."""
    return [(f["code"], f["level"], f["sinceMs"]) for f in diagnosis["findings"]]


def words(diagnosis: dict[str, Any]) -> dict[str, str]:
    """Return what is said of every stage that is not well."""
    stages = diagnosis["stages"].items()
    return {name: s["word"] for name, s in stages if s["level"] != "ok"}


def test_nothing_is_found_where_all_is_well(rules: Rules) -> None:
    """Every stage is well, and things flow between all of them."""
    pipeline = make_pipeline()
    diagnosis = rules.call("diagnosis", "diagnose", pipeline, make_windows(9))
    assert diagnosis["level"] == "ok"
    assert diagnosis["findings"] == []
    assert words(diagnosis) == {}
    flows = rules.call(
        "diagnosis", "flows", {"stages": diagnosis["stages"], "pipeline": pipeline}
    )
    assert all(flows.values())


FAULTS: dict[str, tuple[dict[str, Any], list[Any], dict[str, str]]] = {
    "Redis is down": (
        make_pipeline(
            ("redis_down", SINCE_MS, "Redis: not connected"),
            NO_WINDOW,
            ("quiet", SINCE_MS, "no trade"),
            jobs=[],
            stream=STALE,
            problem="Redis: Connection refused",
            log={"kind": "redis", "id": None, "partitions": [], "problem": "Redis"},
            feed={"last_append_ms": None, "quiet_ms": None},
        ),
        [("redis_down", "bad", SINCE_MS)],
        {
            "feed": "not known",
            "log": "not known",
            "job": "not known",
            "stream": "does not answer",
            "gateway": "serves old prices",
        },
    ),
    "Redis holds what nobody understands": (
        make_pipeline(
            jobs=[],
            problem="ledger of main: KeyError('upto')",
            log={"kind": "redis", "id": None, "partitions": [], "problem": "ledger"},
            feed={"last_append_ms": None, "quiet_ms": None},
        ),
        [("unreadable", "bad", None)],
        {
            "feed": "not known",
            "log": "not known",
            "job": "not known",
            "stream": "not readable",
        },
    ),
    "the job is dead": (
        make_pipeline(NO_WINDOW, jobs=[make_job(**DEAD)], stream=STALE),
        [("job_dead", "bad", SINCE_MS)],
        {"job": "dead", "stream": "no new window", "gateway": "serves old prices"},
    ),
    "the job has died just now": (
        make_pipeline(jobs=[make_job(**{**DEAD, "age_ms": 2_500})]),
        [("job_dead", "bad", NOW_MS - 2_500)],
        {"job": "dead"},
    ),
    "no job was ever there": (
        make_pipeline(
            ("feed_stale", SINCE_MS, "no window yet"),
            jobs=[],
            stream=make_stream(is_live=False, window=None, epoch=None),
        ),
        [("job_dead", "bad", STARTED_MS)],
        {"job": "none", "stream": "no new window", "gateway": "serves old prices"},
    ),
    "one of two jobs is dead": (
        make_pipeline(jobs=[make_job("low", 0), make_job("high", 1, **DEAD)]),
        [("job_dead", "bad", SINCE_MS)],
        {"job": "dead"},
    ),
    "a job holds its lease and makes no windows": (
        make_pipeline(NO_WINDOW, jobs=[make_job(age_ms=14_000)], stream=STALE),
        [("job_behind", "bad", SINCE_MS)],
        {"job": "behind", "stream": "old windows", "gateway": "serves old prices"},
    ),
    "Kafka is away": (
        make_pipeline(
            NO_WINDOW,
            jobs=[make_job(age_ms=14_000)],
            stream=STALE,
            log={"kind": "kafka", "id": None, "partitions": [], "problem": "no broker"},
        ),
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
        make_pipeline(
            log={"kind": "redis", "id": None, "partitions": [], "problem": "no log"}
        ),
        [("log_unseen", "warn", None)],
        {"log": "not seen"},
    ),
    "windows are published and do not arrive": (
        make_pipeline(NO_WINDOW, stream=STALE),
        [("feed_stale", "bad", SINCE_MS)],
        {"gateway": "hears no window"},
    ),
    "the feed is dead": (
        make_pipeline(
            ("quiet", NOW_MS - 4_000, "no trade for 14.0 s"),
            feed={"last_append_ms": SINCE_MS, "quiet_ms": 14_000},
        ),
        [("quiet", "bad", SINCE_MS)],
        {"feed": "quiet"},
    ),
    "the feed is quiet, which may be": (
        make_pipeline(feed={"last_append_ms": SINCE_MS, "quiet_ms": 14_000}),
        [("quiet", "warn", SINCE_MS)],
        {"feed": "quiet"},
    ),
    "the ledger is off": (
        make_pipeline(
            ("ledger_off", SINCE_MS, "ledger of main: partition 1: 7 of 8"),
            jobs=[make_job(balanced=False, problems=["partition 1: 7 of 8"])],
        ),
        [("ledger_off", "bad", SINCE_MS)],
        {"job": "off balance"},
    ),
    "the gateway is overloaded": (
        make_pipeline(("overloaded", SINCE_MS, "the loop lags by 812 ms")),
        [("overloaded", "bad", SINCE_MS)],
        {"gateway": "overloaded"},
    ),
    "a reason the page does not know": (
        make_pipeline(("moon_full", SINCE_MS, "the moon is full")),
        [("unknown", "bad", SINCE_MS)],
        {"gateway": "not ready"},
    ),
    "two faults that have nothing to do with each other": (
        make_pipeline(
            ("ledger_off", SINCE_MS, "partition 1"), ("overloaded", SINCE_MS, "812 ms")
        ),
        [("ledger_off", "bad", SINCE_MS), ("overloaded", "bad", SINCE_MS)],
        {"job": "off balance", "gateway": "overloaded"},
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_once_and_where_it_is(rules: Rules, name: str) -> None:
    """What merely follows from it is not a finding, but is seen on its stage."""
    pipeline, findings, stages = FAULTS[name]
    diagnosis = rules.call("diagnosis", "diagnose", pipeline)
    assert told(diagnosis) == findings
    assert words(diagnosis) == stages
    assert diagnosis["level"] == findings[0][1]


def test_no_reason_passes_in_silence(rules: Rules) -> None:
    """Never lost: a gateway that is not ready never looks well."""
    calls = [
        ("diagnosis", "diagnose", make_pipeline((code, SINCE_MS, "why")))
        for code in CODES
    ]
    for code, diagnosis in zip(CODES, rules.call_all(*calls), strict=True):
        assert told(diagnosis)[0][:2] == (code, "bad")
        assert diagnosis["findings"][0]["detail"] == "why"


@pytest.mark.parametrize(
    ("lags", "found"),
    [
        ({"publish_lag_ms": 2_400, "fanout_lag_ms": 2_500}, ["publish_late"]),
        ({"fanout_lag_ms": 2_500}, ["fanout_late"]),
        ({"fanout_lag_ms": None}, []),
    ],
)
def test_three_late_windows_in_a_row_are_told(
    rules: Rules, lags: dict[str, Any], found: list[str]
) -> None:
    """One is no trend; a lag not known is none."""
    late = make_windows(3, **lags)
    diagnose = ("diagnosis", "diagnose", make_pipeline())
    all_late, once = rules.call_all(
        (*diagnose, late), (*diagnose, [*make_windows(3)[:2], late[2]])
    )
    assert [f["code"] for f in all_late["findings"]] == found
    assert once["findings"] == []


def test_a_few_stuck_clients_are_nothing_unusual(rules: Rules) -> None:
    """One in twenty may be."""
    few, many = rules.call_all(
        *(
            (
                "diagnosis",
                "diagnose",
                make_pipeline(fanout={"clients": 100, "states": {"stuck": stuck}}),
            )
            for stuck in (5, 6)
        )
    )
    assert few["findings"] == []
    assert told(many) == [("clients_stuck", "warn", None)]
    assert words(many) == {"clients": "many stuck"}


def test_a_job_that_others_replaced_is_no_fault(rules: Rules) -> None:
    """As long as every partition it read is read by one that is active."""
    old = make_job("old", 0, 1, **DEAD)
    replaced, half = rules.call_all(
        ("diagnosis", "diagnose", make_pipeline(jobs=[old, make_job("new", 0, 1)])),
        ("diagnosis", "diagnose", make_pipeline(jobs=[old, make_job("new", 0)])),
    )
    assert replaced["level"] == "ok"
    assert [f["what"] for f in half["findings"]] == [
        "The throttle job old has been dead"
    ]


def test_every_code_is_documented(rules: Rules) -> None:
    """What the page says under a code, the document has a line for, and no other."""
    codes = rules.call("codes", "CODES")
    assert set(CODES) < codes.keys()
    section = DOCUMENT.read_text().partition("\n## The operations view\n")[2]
    rows = re.findall(r"^\| `(\w+)` \|", section.partition("\n## ")[0], re.M)
    assert sorted(rows) == sorted(codes)


def test_well_since_is_no_more_than_what_is_known(rules: Rules) -> None:
    """The gateway's start, its first window, a hole, a late one, what was seen end."""
    well_since = ("diagnosis", "wellSince")
    long_ago = make_pipeline(started_ms=NOW_MS - 3_600_000)
    few, many = make_windows(30), make_windows(KEPT)
    late = [dict(window) for window in many]
    late[7]["publish_lag_ms"] = 9_000
    answers = rules.call_all(
        (*well_since, make_pipeline(), few),
        (*well_since, make_pipeline(), []),
        (*well_since, long_ago, few),
        (*well_since, long_ago, many),
        (*well_since, long_ago, many[:5] + many[12:]),
        (*well_since, long_ago, late),
        (*well_since, make_pipeline(), few, NOW_MS - 7_000),
    )
    assert [(a["sinceMs"], a["isExact"]) for a in answers] == [
        (STARTED_MS, True),
        (STARTED_MS, True),
        (few[0]["window"], True),
        (many[0]["window"], False),
        (many[12]["window"], True),
        (many[7]["window"], True),
        (NOW_MS - 7_000, True),
    ]


def test_the_page_keeps_what_the_gateway_does(rules: Rules) -> None:
    """Otherwise it would take a whole memory for a short one."""
    assert rules.call("history", "KEPT") == KEPT


def make_known(state: str = "ok", **changes: Any) -> dict[str, Any]:
    """Return what the page knows."""
    return {
        "contact": {"state": state, "sinceMs": NOW_MS, "message": None},
        "answeredMs": NOW_MS - 4_000,
        "skewMs": 500,
        "pipeline": make_pipeline(),
        "windows": make_windows(30),
        **changes,
    }


def test_a_gateway_that_does_not_answer_is_the_verdict(rules: Rules) -> None:
    """Since its last answer, by its own clock; what was wrong before is history."""
    lost = rules.call("verdicts", "verdict", make_known("lost"), NOW_MS)
    assert lost["text"] == "The gateway has not answered"
    assert (lost["level"], lost["sinceMs"]) == ("bad", NOW_MS - 3_500)
    back = rules.call("verdicts", "verdict", make_known(), NOW_MS, lost)
    assert (back["text"], back["level"]) == ("All is well", "ok")
    assert back["sinceMs"] == NOW_MS


def test_since_when_stays_as_it_was_seen_first(rules: Rules) -> None:
    """Where the gateway does not say it, and as long as the fault lasts."""
    fanout = {"clients": 4, "states": {"stuck": 4}}
    known = make_known(pipeline=make_pipeline(fanout=fanout))
    first = rules.call("verdicts", "verdict", known, NOW_MS)
    again = rules.call("verdicts", "verdict", known, NOW_MS + 9_000, first)
    assert (first["sinceMs"], again["sinceMs"]) == (NOW_MS, NOW_MS)
    assert again["text"] == "Many clients have taken nothing"


@pytest.mark.parametrize("state", ["starting", "denied"])
def test_without_an_answer_there_is_no_verdict(rules: Rules, state: str) -> None:
    """Neither well nor bad is said."""
    verdict = rules.call("verdicts", "verdict", make_known(state, pipeline=None), 0)
    assert (verdict["level"], verdict["sinceMs"]) == ("unknown", None)


def test_windows_are_appended_and_told_anew(rules: Rules) -> None:
    """No window twice, the newest word counts, the oldest go."""
    windows = make_windows(5)
    newer = {**windows[4], "fanout_lag_ms": 999}
    merged, few, many = rules.call_all(
        ("history", "append", windows, [newer], 4),
        ("history", "missing", windows, NOW_MS + 2 * WINDOW_MS, WINDOW_MS, 450),
        ("history", "missing", [], NOW_MS, WINDOW_MS, 450),
    )
    assert merged == [*windows[1:4], newer]
    assert (few, many) == (5, 450)


def test_no_line_is_drawn_over_a_hole(rules: Rules) -> None:
    """An empty point stands where windows are missing."""
    windows = make_windows(6)
    columns = rules.call(
        "history", "columns", windows[:2] + windows[4:], ["rows"], WINDOW_MS
    )
    assert columns[0][2] == (windows[1]["window"] + WINDOW_MS) / 1_000
    assert columns[1] == [400, 400, None, 400, 400]


def test_rates_are_by_the_clock_and_not_of_old_windows(rules: Rules) -> None:
    """1,500 trades in 2 s are 750/s."""
    windows = make_windows(8)
    now, later, none = rules.call_all(
        ("history", "rates", windows, WINDOW_MS, NOW_MS),
        ("history", "rates", windows, WINDOW_MS, NOW_MS + 7_000),
        ("history", "rates", [], WINDOW_MS, NOW_MS),
    )
    assert now == {"trades": 750, "rows": 200}
    assert later == none == {"trades": None, "rows": None}


def test_a_series_is_summed_up(rules: Rules) -> None:
    """Newest, middle, most and when; nothing of no values."""
    windows = make_windows(3)
    windows[1]["rows"] = 900
    summary, nothing = rules.call_all(
        ("history", "summary", windows, "rows"),
        ("history", "summary", make_windows(3, rows=None), "rows"),
    )
    most_at = windows[1]["window"]
    assert summary == {"newest": 400, "middle": 400, "most": 900, "mostAt": most_at}
    assert nothing is None


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, None),
        ({"log": None}, None),
        ({"log": 90}, None),
        ({"log": 103}, "3 not read"),
        ({"published": 58}, "2 unaccounted"),
        ({"stale": 7}, "1 too many"),
    ],
)
def test_a_line_of_the_ledger_balances_or_says_by_how_much(
    rules: Rules, changes: dict[str, Any], wrong: str | None
) -> None:
    """The log may have been asked at an older window: then it has counted fewer."""
    assert rules.call("books", "imbalance", make_books(**changes)) == wrong


def test_figures_are_as_short_as_they_can_be(rules: Rules) -> None:
    """Seoul is nine hours ahead; what is not known is a dash."""
    answers = rules.call_all(
        *(
            ("words", "duration", ms)
            for ms in (212, 1_400, 34_000, 725_000, 11_100_000)
        ),
        ("words", "duration", 200_000_000),
        ("words", "bytes", 512),
        ("words", "bytes", 236_000_000),
        ("words", "count", 11_655_278),
        ("words", "count", None),
        ("words", "clock", NOW_MS, NOW_MS),
        ("words", "clock", NOW_MS - 86_400_000, NOW_MS),
    )
    assert answers == [
        *("212 ms", "1.4 s", "34 s", "12 min", "3 h 05 min", "2 days"),
        *("512 B", "225 MiB", "11,655,278", "\N{EN DASH}"),
        *("09:01:02", "2026-03-19 09:01:02"),
    ]
