"""Which session a trade is of, by the calendar."""

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from ingest.market_hours.trading_sessions import TradingSessions, minute_of

SAMSUNG, APPLE, BITCOIN = "KR7005930003", "US0378331005", "QU1BTCUSDT04"


def at(text: str, zone: str = "Asia/Seoul") -> int:
    """Return the minute of a local time."""
    moment = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
    return minute_of(round(moment.timestamp() * 1e6))


@pytest.mark.parametrize(
    ("text", "session"),
    [
        ("2026-11-27 08:30", "pre"),
        ("2026-11-27 09:00", "regular"),
        ("2026-11-27 15:29", "regular"),
        # The closing auction's trades come after the end.
        ("2026-11-27 15:30", "regular"),
        ("2026-11-27 15:39", "regular"),
        ("2026-11-27 15:40", "after"),
        ("2026-11-27 19:59", "after"),
        # A day of the entrance examination is an hour later.
        ("2026-11-19 09:30", "pre"),
        ("2026-11-19 16:30", "regular"),
        ("2026-11-19 16:45", "after"),
        ("2026-12-25 10:00", "closed"),
        ("2026-11-28 10:00", "closed"),
    ],
)
def test_a_korean_day(text: str, session: str) -> None:
    """Before, within and after the regular session; late openings and holidays."""
    assert TradingSessions.parse("XKRX").session_of(SAMSUNG, at(text)) == session


def test_markets_go_by_the_letters_of_the_isin() -> None:
    """A short day ends early; of a market that is not named nobody knows."""
    sessions = TradingSessions.parse("KR=XKRX, US=XNYS")
    new_york = "America/New_York"
    # The day after Thanksgiving.
    times = {"2026-11-27 12:59": "regular", "2026-11-27 13:00": "after"}
    for text, session in times.items():
        assert sessions.session_of(APPLE, at(text, new_york)) == session
    assert sessions.session_of(SAMSUNG, at("2026-11-27 10:00")) == "regular"
    assert sessions.session_of(BITCOIN, at("2026-11-27 10:00")) is None
    both = TradingSessions.parse("24/7,KR=XKRX")
    assert both.session_of(BITCOIN, at("2026-11-28 03:00")) == "regular"
    assert both.session_of(SAMSUNG, at("2026-11-28 03:00")) == "closed"


def test_a_break_is_of_the_regular_session(tmp_path: Path) -> None:
    """As in Tokyo; a calendar of one's own is a file."""
    path = tmp_path / "tokyo.json"
    path.write_text(
        '{"market": "XTKS", "zone": "Asia/Tokyo", "days": "Mon-Fri", '
        '"sessions": ["09:00-11:30", "12:30-15:30"]}'
    )
    sessions = TradingSessions.parse(str(path))
    times = {"08:59": "pre", "12:00": "regular", "15:29": "regular", "15:30": "after"}
    for clock, session in times.items():
        minute = at(f"2026-11-27 {clock}", "Asia/Tokyo")
        assert sessions.session_of("JP3633400001", minute) == session


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("XKRX,XNYS", "names all twice"),
        ("KR=XKRX,KR=NXT", "names KR twice"),
        ("KOR=XKRX", "two capitals before the ="),
        ("nowhere.json", "calendar nowhere.json: No such file"),
    ],
)
def test_what_is_no_calendar_is_named(text: str, words: str) -> None:
    """With the part and the rule."""
    with pytest.raises(ValueError, match=words):
        TradingSessions.parse(text)
