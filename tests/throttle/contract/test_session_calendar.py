"""When an exchange's day begins."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from throttle.contract.session_calendar import (
    EVERYDAY,
    SessionCalendar,
    SessionCalendars,
)

HOUR_MS = 3_600_000


@given(
    st.integers(1_000_000_000_000, 2_000_000_000_000),
    st.sampled_from(["Asia/Seoul", "America/New_York", "Asia/Kolkata", "UTC"]),
    st.sampled_from(["00:00", "09:00", "18:30"]),
)
def test_days_follow_one_another_without_a_gap(
    time_ms: int, zone: str, begins: str
) -> None:
    """Every moment is in one day, and the next one begins at its end."""
    calendar = SessionCalendar(zone, begins)
    start_ms, end_ms = calendar.day_of(time_ms)
    assert start_ms <= time_ms < end_ms
    assert calendar.day_of(start_ms) == (start_ms, end_ms)
    assert calendar.day_of(end_ms - 1) == (start_ms, end_ms)
    assert calendar.day_of(end_ms)[0] == end_ms


def test_a_day_on_which_clocks_change_is_shorter() -> None:
    """In New York, 2026-03-08 has 23 hours."""
    noon = datetime(2026, 3, 8, 16, tzinfo=UTC)
    calendar = SessionCalendar("America/New_York")
    start_ms, end_ms = calendar.day_of(round(noon.timestamp() * 1000))
    assert end_ms - start_ms == 23 * HOUR_MS


@pytest.mark.parametrize(
    ("zone", "begins", "words"),
    [
        ("Korea/Seoul", "09:00", "zone 'Korea/Seoul': must be"),
        ("Asia/Seoul", "25:00", "begins '25:00': must be"),
        ("Asia/Seoul", "09:00:00", "begins '09:00:00': must be"),
    ],
)
def test_what_there_is_not_is_refused(zone: str, begins: str, words: str) -> None:
    """The error names field, value and rule."""
    with pytest.raises(ValueError, match=words):
        SessionCalendar(zone, begins)


def test_an_instrument_has_the_calendar_of_its_letters() -> None:
    """Of its country or venue; who is not named has the everyday one."""
    named = "US=America/New_York@09:30,QM=UTC@00:00"
    calendars = SessionCalendars.create("Asia/Seoul", "00:00", named)
    assert calendars.of("US0378331005") == SessionCalendar("America/New_York", "09:30")
    assert calendars.of("QM1BTCUSDT09") == SessionCalendar("UTC", "00:00")
    assert calendars.of("KR7005930003") == EVERYDAY
    assert (
        SessionCalendars.create("Asia/Seoul", "00:00", "").of("US0378331005")
        == EVERYDAY
    )


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("US=America/Gotham@09:30", "US: zone 'America/Gotham': must be"),
        ("US=UTC@9:30", "US: begins '9:30': must be"),
        ("US=UTC@09:30,US=UTC@00:00", "US: is named twice"),
    ],
)
def test_a_calendar_that_there_is_not_is_refused(named: str, words: str) -> None:
    """With the letters that it was for."""
    with pytest.raises(ValueError, match=words):
        SessionCalendars.create("Asia/Seoul", "00:00", named)
