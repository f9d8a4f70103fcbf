"""The operations view's rules: how the gateway's answers are worded and kept."""

from collections.abc import Iterator
from typing import Any

import pytest

from gateway.health.finding_codes import CODES, HIDDEN_STAGES
from gateway.stream.window_timings import KEPT
from tests.pages.rules import Rules, running_rules

NOW_MS = 1_773_964_862_000
WINDOW_MS = 2_000
WELL_SINCE_MS = NOW_MS - 60_000
STUCK = {
    "code": "clients_stuck",
    "level": "warn",
    "stage": "clients",
    "text": "Many clients have taken nothing",
    "detail": "4 of 4",
    "since_ms": None,
    "todo": "Look at the network.",
    "job": None,
    "word": "many stuck",
}


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rules]:
    """The rules, in Node."""
    with running_rules(tmp_path_factory.mktemp("rules")) as running:
        yield running


def make_windows(count: int, **changes: Any) -> list[dict[str, Any]]:
    """Return so many windows in a row as the gateway tells them, up to now."""
    return [
        {
            "window": NOW_MS - (count - 1 - n) * WINDOW_MS,
            "offset": n + 1,
            "rows": 400,
            "trades": 1_500,
            "publish_lag_ms": 200,
            "fanout_lag_ms": 230,
            "clients": 40,
            "merged": 1,
            **changes,
        }
        for n in range(count)
    ]


def make_pipeline(*findings: dict[str, Any], is_exact: bool = True) -> dict[str, Any]:
    """Return what the page's verdict needs of the gateway's answer."""
    return {
        "diagnosis": {
            "level": findings[0]["level"] if findings else "ok",
            "findings": findings,
            "stages": {},
            "well_since_ms": WELL_SINCE_MS,
            "is_well_since_exact": is_exact,
        }
    }


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
    known = make_known(pipeline=make_pipeline(STUCK))
    first = rules.call("verdicts", "verdict", known, NOW_MS)
    again = rules.call("verdicts", "verdict", known, NOW_MS + 9_000, first)
    assert (first["sinceMs"], again["sinceMs"]) == (NOW_MS, NOW_MS)
    assert again["text"] == "Many clients have taken nothing"


def test_a_finding_is_printed_as_the_gateway_tells_it(rules: Rules) -> None:
    """The first is the verdict; since when the gateway knows is not known better."""
    worse = STUCK | {"code": "quiet", "level": "bad", "text": "No", "since_ms": 7}
    known = make_known(pipeline=make_pipeline(worse, STUCK))
    verdict = rules.call("verdicts", "verdict", known, NOW_MS)
    assert (verdict["text"], verdict["level"], verdict["sinceMs"]) == ("No", "bad", 7)
    assert verdict["findings"] == [worse, STUCK | {"since_ms": NOW_MS}]


def test_well_since_is_what_the_gateway_knows_or_the_page_saw_end(rules: Rules) -> None:
    """What the page has seen itself is exact."""
    known = make_known(pipeline=make_pipeline(is_exact=False))
    seen = {"level": "ok", "wellFromMs": NOW_MS - 7_000, "findings": []}
    unseen = seen | {"wellFromMs": WELL_SINCE_MS - 1}
    answers = rules.call_all(
        *(("verdicts", "verdict", known, NOW_MS, before) for before in (seen, unseen))
    )
    assert [(a["sinceMs"], a["isExact"]) for a in answers] == [
        (NOW_MS - 7_000, True),
        (WELL_SINCE_MS, False),
    ]


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


def test_rates_are_of_windows_that_come(rules: Rules) -> None:
    """1,500 trades in 2 s are 750/s."""
    windows = make_windows(8)
    live = {"window_ms": WINDOW_MS, "is_live": True}
    now, later, none = rules.call_all(
        ("history", "rates", windows, live),
        ("history", "rates", windows, live | {"is_live": False}),
        ("history", "rates", [], live),
    )
    assert now == {"trades": 750, "rows": 200}
    assert later == none == {"trades": None, "rows": None}


def count_log(
    rules: Rules, *counts: tuple[str, list[int | None]]
) -> list[dict[str, Any]]:
    """Return what the page keeps of logs that were told two seconds apart."""
    known: list[dict[str, Any]] = []
    for number, (log_id, added) in enumerate(counts):
        log = {"id": log_id, "partitions": [{"added": count} for count in added]}
        answer = {"log": log, "now_ms": NOW_MS + number * WINDOW_MS}
        known = rules.call("history", "countLog", known, answer)
    return known


def test_the_rate_of_feeds_is_what_the_log_counts(rules: Rules) -> None:
    """3,000 entries in 4 s; not known of one count, nor of another log."""
    a, b, c = ("x", [100, 0]), ("x", [900, 700]), ("x", [2_000, 1_100])
    assert rules.call("history", "feedRate", count_log(rules, a, b, c)) == 750
    for unknown in ([], [a], [a, ("y", [5])], [a, ("x", [5, None])], [c, a]):
        counts = count_log(rules, *unknown)
        assert rules.call("history", "feedRate", counts) is None
    assert len(count_log(rules, *[a] * 9)) == 6


def test_a_series_is_summed_up(rules: Rules) -> None:
    """Newest, median, most and when; nothing of no values."""
    windows = make_windows(3)
    windows[1]["rows"] = 900
    summary, nothing = rules.call_all(
        ("history", "summary", windows, "rows"),
        ("history", "summary", make_windows(3, rows=None), "rows"),
    )
    most_at = windows[1]["window"]
    assert summary == {"newest": 400, "median": 400, "most": 900, "mostAt": most_at}
    assert nothing is None


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


def test_a_report_says_what_matters_as_text(rules: Rules) -> None:
    """The verdict, each part of the pipeline, and the newest incidents."""
    shown = rules.call(
        "report",
        "report",
        {
            "verdict": {
                "text": "Many clients have taken nothing",
                "sinceMs": NOW_MS,
                "findings": [STUCK],
            },
            "pipeline": {
                "version": "1.2.3",
                "now_ms": NOW_MS,
                "log": {"kind": "redis", "partitions": [{}, {}], "problem": None},
                "jobs": [
                    {
                        "job": "throttle",
                        "is_active": True,
                        "cut_ms": NOW_MS,
                        "windows": 12,
                        "balanced": True,
                        "problems": [],
                    }
                ],
                "stream": {
                    "window": NOW_MS,
                    "offset": 12,
                    "epoch": "e1",
                    "instruments": 3,
                },
                "fanout": {
                    "clients": 4,
                    "states": {"stuck": 4},
                    "publish_lag_ms": 4,
                    "fanout_lag_ms": 5,
                    "rss_bytes": 1_048_576,
                },
                "analytics": [{"product": "bars", "window": None, "problems": []}],
            },
            "others": {
                "data": [
                    {"gateway": "a:1", "problem": None, "count": 3},
                    {"gateway": "b:1", "problem": "it has answered 500", "count": None},
                ]
            },
            "incidents": {
                "data": [
                    {
                        "code": "clients_stuck",
                        "since_ms": WELL_SINCE_MS,
                        "until_ms": None,
                        "note": "looked at it",
                    }
                ]
            },
        },
    )
    assert shown.splitlines() == [
        "tickthrottle 1.2.3, 2026-03-20T00:01:02.000Z",
        "Verdict: Many clients have taken nothing since 2026-03-20T00:01:02.000Z",
        "- warn clients_stuck: Many clients have taken nothing (4 of 4). "
        "To do: Look at the network.",
        "Log: redis, 2 partitions",
        "Job throttle: active, cut 2026-03-20T00:01:02.000Z, 12 windows, books balance",
        "Stream: window 2026-03-20T00:01:02.000Z, offset 12, epoch e1, 3 instruments",
        "Clients: 4 (4 stuck), published after 4 ms, with the last after 5 ms, 1.0 MiB",
        "Gateway a:1: 3 clients",
        "Gateway b:1: it has answered 500",
        "Analytics bars: nothing yet",
        "Incident clients_stuck: 2026-03-20T00:00:02.000Z to now: looked at it",
    ]


def in_korean(rules: Rules, texts: list[str]) -> list[str]:
    """Return what the page says for the gateway's sentences in Korean."""
    sentences = rules.call("gateway_words", "SENTENCES")
    _, _, *told, _ = rules.call_all(
        ("../language", "learn", sentences),
        ("../language", "setLanguage", "ko"),
        *(("gateway_words", "told", text) for text in texts),
        # Other tests ask the same Node.
        ("../language", "setLanguage", "en"),
    )
    return told


def test_what_the_gateway_finds_is_said_in_korean(rules: Rules) -> None:
    """Every fault, what to do about it, and how stages are; figures stay in it."""
    texts = {text for kind in CODES.values() for text in (kind.text, kind.todo)}
    words = {kind.word for kind in CODES.values()}
    # What stages are called elsewhere, in one word.
    words -= {"dead", "behind", "off balance"}
    hidden = {word for words in HIDDEN_STAGES.values() for word in words.values()}
    asked = sorted({*texts, *words, *hidden})
    told = in_korean(rules, asked)
    assert [
        text for text, korean in zip(asked, told, strict=True) if text == korean
    ] == []
    named = {
        "The throttle job low has been dead": "집계 작업 low 중단",
        "its newest window ended 8 s ago": "최근 구간이 8초 전에 끝났습니다",
        "3 of 40": "40개 중 3개",
        "3 unaccounted": "3건 누락",
        "Redis: no answer within 1 s": "Redis: 1초 안에 응답 없음",
    }
    assert in_korean(rules, list(named)) == list(named.values())


def test_what_others_have_said_is_shown_as_it_came(rules: Rules) -> None:
    """Also what has the signs by which texts of the page are told apart."""
    strange = [
        "Redis: Error 111 connecting to ::1|x:6379.",
        "the gateway uses 9 MiB of memory",
        "half of it",
    ]
    assert in_korean(rules, strange) == strange
    assert rules.call("gateway_words", "told", "a::b|c") == "a::b|c"
