"""What `status` says of a pipeline."""

import re
from datetime import UTC
from typing import Any

from cli.terminal.status_lines import status_lines
from tests.doc_pages import blocks_in, section_of

WELL_MS = 1_773_964_800_000


def make_answer(**changes: Any) -> dict[str, Any]:
    """Make an answer of ``/v1/pipeline``; ``changes`` are of its diagnosis."""
    stage = {"level": "ok", "word": "well", "is_flowing": True}
    names = ("feed", "log", "job", "stream", "gateway", "clients")
    diagnosis = {
        "level": "ok",
        "findings": [],
        "stages": {name: stage for name in names},
        "well_since_ms": WELL_MS,
        "is_well_since_exact": True,
    }
    job = {
        "job": "throttle",
        "cut_ms": WELL_MS + 4_000,
        "balanced": True,
        "total": {"read": 1_498},
        "partitions": [{"lag": 30}, {"lag": 7}],
    }
    return {
        "now_ms": WELL_MS + 4_200,
        "problem": None,
        "feed": {"quiet_ms": 240},
        "markets": [],
        "log": {"kind": "redis", "partitions": [{}, {}], "problem": None},
        "jobs": [job],
        "stream": {"window": WELL_MS + 4_000, "offset": 1_235, "instruments": 2_879},
        "fanout": {
            "rss_bytes": 100 * 2**20,
            "publish_lag_ms": 41,
            "fanout_lag_ms": 47,
            "states": {"new": 0, "live": 12, "behind": 0, "stuck": 1},
        },
        "diagnosis": {**diagnosis, **changes},
    }


def test_a_pipeline_that_is_well_has_seven_lines() -> None:
    """Since when, and a line for each stage."""
    lines = status_lines(make_answer(), UTC)
    assert lines == [
        "All is well since 00:00:00.",
        "feed     ok       last trade 0.2 s ago",
        "log      ok       redis, 2 partitions",
        "job      ok       throttle: window 00:00:04, 37 trades behind it, "
        "books balance (1,498 read)",
        "stream   ok       window 00:00:04, offset 1,235, 2,879 instruments",
        "gateway  ok       100 MiB, published 41 ms after a window's end, "
        "last client 47 ms",
        "clients  ok       12 live, 1 stuck",
    ]
    page = section_of("docs/clients.md", "In the terminal")
    [shown] = [b for b in blocks_in(page, "") if b.startswith("$ tickthrottle status")]
    form = re.compile(r"[\d:,.]+|, \d+ stuck")
    assert form.sub("0", shown).splitlines()[1:] == [
        form.sub("0", line.replace(", 1 stuck", "")) for line in lines
    ]


def test_what_is_not_known_exactly_is_said_so() -> None:
    """A gateway knows nothing from before its start."""
    lines = status_lines(make_answer(is_well_since_exact=False), UTC)
    assert lines[0] == "All is well since 00:00:00 or earlier."


def test_a_time_of_another_day_has_its_date() -> None:
    lines = status_lines(make_answer(well_since_ms=WELL_MS - 1_000), UTC)
    assert lines[0] == "All is well since 2026-03-19 23:59:59."


def test_a_fault_comes_first_with_what_to_do() -> None:
    finding = {
        "level": "bad",
        "text": "The throttle job has been dead",
        "detail": None,
        "since_ms": WELL_MS + 1_000,
        "todo": "Start it again.",
    }
    lines = status_lines(make_answer(level="bad", findings=[finding]), UTC)
    assert lines[:2] == [
        "FAULT: The throttle job has been dead since 00:00:01.",
        "  Start it again.",
    ]


def test_a_market_says_until_when_it_is_as_it_is() -> None:
    """Beside the last trade: whether it should be quiet."""
    times: dict[str, Any] = {"opened_ms": None, "closes_ms": None, "opens_ms": None}
    on = {"opened_ms": WELL_MS, "closes_ms": WELL_MS + 3_600_000}
    markets = [
        {"market": "XKRX", **times, **on},
        {"market": "XNYS", **times, "opens_ms": WELL_MS + 86_400_000},
        {"market": "UTC", **times},
        {"market": "24/7", **times, "opened_ms": WELL_MS},
    ]
    lines = status_lines(make_answer() | {"markets": markets}, UTC)
    opens = "2026-03-21 00:00:00"
    assert lines[1].endswith(
        f"; XKRX open until 01:00:00; XNYS closed, opens {opens}; UTC closed; 24/7 open"
    )


def test_before_the_first_window_little_is_known() -> None:
    """No job, no trade, no window, no lag."""
    answer = make_answer()
    answer["feed"]["quiet_ms"] = None
    answer["jobs"] = []
    answer["stream"]["window"] = None
    answer["fanout"] |= {"publish_lag_ms": None, "fanout_lag_ms": None, "states": {}}
    assert status_lines(answer, UTC)[1:] == [
        "feed     ok       no trade yet",
        "log      ok       redis, 2 partitions",
        "job      ok",
        "stream   ok       no window yet",
        "gateway  ok       100 MiB",
        "clients  ok       none",
    ]


def test_what_nobody_could_ask_is_not_known() -> None:
    """While Redis hangs there may have been many trades, and a job."""
    problem = "Redis: no answer within 1 s"
    answer = make_answer() | {"problem": problem, "jobs": []}
    answer["feed"]["quiet_ms"] = None
    answer["log"] |= {"partitions": [], "problem": problem}
    lines = status_lines(answer, UTC)
    assert lines[1:4] == [
        "feed     ok       not known",
        f"log      ok       {problem}",
        "job      ok       not known",
    ]
    assert lines[4].endswith("offset 1,235, 2,879 instruments")
    answer["stream"]["window"] = None
    assert status_lines(answer, UTC)[4] == "stream   ok       not known"
    answer |= {"problem": None}
    answer["log"] |= {"kind": "kafka"}
    assert status_lines(answer, UTC)[1] == "feed     ok       not known"
