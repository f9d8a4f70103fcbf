"""Calendars in files: those of the product, and a user's own."""

import json
from datetime import date, timedelta
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from ingest.market_hours.calendar_file import (
    CALENDARS,
    MOST_BYTES,
    find_calendar,
    parse_calendar,
)
from tests.doc_pages import blocks
from tests.paths import ROOT

OWN = {
    "market": "MINE",
    "zone": "Europe/Oslo",
    "days": "Mon-Fri",
    "sessions": ["09:00-12:00", "13:00-16:20"],
    "closed": ["2026-12-25"],
    "other": {"2026-12-24": ["09:00-12:00"]},
}


@pytest.mark.parametrize("name", CALENDARS)
def test_each_calendar_is_whole(name: str) -> None:
    """It names itself, trades on most days, and holidays and odd days are weekdays."""
    table = find_calendar(name)
    assert table.market == name
    if table.last is None:
        assert name == "24/7"
        return
    first = date(2026, 1, 1)
    days = [first + timedelta(days=n) for n in range(365)]
    assert 235 <= sum(bool(table.spans_on(day)) for day in days) <= 260
    assert all(day.weekday() < 5 for day in table.other)
    assert table.last == date(2027, 12, 31)


def test_what_is_ours_in_the_calendars_is_as_the_script_says() -> None:
    """Days that the library does not know, and all of Nextrade."""
    script = run_path(str(ROOT / "packaging" / "make_calendars.py"))
    for day in (date(2026, 6, 3), date(2026, 7, 17)):
        assert find_calendar("XKRX").spans_on(day) == ()
    for market, days in script["CLOSED_DAYS"].items():
        assert set(days) <= set(written(market)["closed"])
    for market, days in script["ODD_DAYS"].items():
        assert days.items() <= written(market)["other"].items()
    for market, words in script["SUPPLEMENTS"].items():
        assert written(market)["source"].endswith(words)
    assert script["nextrade"](written("XKRX")) == written("NXT")


def written(market: str) -> dict[str, Any]:
    """Return a calendar as its file has it."""
    file = ROOT / "ingest" / "market_hours" / "calendars" / f"{market}.json"
    whole: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return whole


def test_nextrade_is_closed_when_the_exchange_is() -> None:
    """Korean shares trade at both."""
    korea, nextrade = find_calendar("XKRX"), find_calendar("NXT")
    for number in range(3 * 365):
        day = date(2025, 1, 1) + timedelta(days=number)
        assert bool(korea.spans_on(day)) == bool(nextrade.spans_on(day)), day


def test_a_calendar_of_ones_own_is_a_file(tmp_path: Path) -> None:
    """Its days and odd days are read as those of the product's."""
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(OWN), "utf-8")
    table = find_calendar(str(path))
    assert (table.market, table.zone, table.last) == ("MINE", "Europe/Oslo", None)
    assert table.spans_on(date(2026, 12, 23)) == ((540, 720), (780, 980))
    assert table.spans_on(date(2026, 12, 24)) == ((540, 720),)
    assert table.spans_on(date(2026, 12, 25)) == ()
    assert table.spans_on(date(2026, 12, 26)) == ()
    [shown] = [one for one in blocks("docs/market.md", "json") if '"sessions"' in one]
    path = tmp_path / "xosl.json"
    path.write_text(shown, "utf-8")
    table = find_calendar(str(path))
    assert (table.market, table.last) == ("XOSL", date(2027, 12, 31))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"zone": "Europe/Olso"}, "calendar mine: 'Europe/Olso': must be a time zone"),
        ({"days": "Mo-Fr"}, "calendar mine: 'Mo-Fr': must be days like Mon-Fri"),
        ({"sessions": ["9-12"]}, "calendar mine: '9-12': must be a session like"),
        (
            {"sessions": ["13:00-16:20", "09:00-12:00"]},
            "calendar mine: 13:00-16:20, 09:00-12:00: must be in order",
        ),
        ({"closed": ["2026-13-01"]}, "calendar mine: closed.0: "),
        ({"holidays": []}, "calendar mine: holidays: Extra inputs"),
        ({"market": "a;b"}, "calendar mine: market: "),
        ({"days": None}, "calendar mine: days: "),
    ],
)
def test_what_is_no_calendar_is_named(change: dict[str, object], words: str) -> None:
    """With the file, the field and the rule."""
    with pytest.raises(ValueError, match=words):
        parse_calendar(json.dumps(OWN | change), "mine")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe{}", "must be UTF-8"),
        (b"[", "the file: "),
        (b" " * (MOST_BYTES + 1), "has over 1,048,576 bytes"),
    ],
    ids=["UTF-16", "no JSON", "too large"],
)
def test_a_file_that_cannot_be_read_is_named(
    content: bytes, words: str, tmp_path: Path
) -> None:
    """Also one that is far too large."""
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"odd.json: {words}"):
        find_calendar(str(path))
