"""When a market trades: by its own clock, through nights, holidays, summer time."""

from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest

from ingest.market_hours.hours import EXAMPLE, MarketHours

SEOUL = MarketHours.parse(EXAMPLE)


def are_open(hours: MarketHours, now_ms: int) -> dict[str, bool]:
    """Say of each market whether it is open."""
    return {state.market: state.is_open for state in hours.states(now_ms)}


def at_ms(zone: str, text: str, fold: int = 0) -> int:
    """Return a moment that is written by a zone's clock."""
    local = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)
    return round(local.timestamp() * 1_000)


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("2026-11-26 08:59:59", False),
        ("2026-11-26 09:00:00", True),
        ("2026-11-26 15:19:59", True),
        ("2026-11-26 15:20:00", False),
        ("2026-11-28 10:00:00", False),
        ("2026-11-29 10:00:00", False),
        ("2026-12-25 10:00:00", False),
    ],
)
def test_a_market_is_open_in_its_hours(text: str, is_open: bool) -> None:
    """Not at night, not on a weekend, not on a holiday."""
    now_ms = at_ms("Asia/Seoul", text)
    assert are_open(SEOUL, now_ms) == {"Asia/Seoul": is_open}
    began_ms = at_ms("Asia/Seoul", f"{text[:10]} 09:00") if is_open else None
    assert SEOUL.open_since_ms(now_ms) == began_ms


def test_hours_may_pass_midnight_and_a_weekend() -> None:
    """Of a market that opens on Sunday evening and closes for an hour a day."""
    hours = MarketHours.parse("America/Chicago Sun-Thu 17:00-16:00")
    chicago = "America/Chicago"
    for text, began in [
        ("2026-11-22 16:59", None),
        ("2026-11-22 17:00", "2026-11-22 17:00"),
        ("2026-11-23 15:59", "2026-11-22 17:00"),
        ("2026-11-23 16:30", None),
        ("2026-11-27 15:59", "2026-11-26 17:00"),
        ("2026-11-27 17:30", None),
    ]:
        expected = None if began is None else at_ms(chicago, began)
        assert hours.open_since_ms(at_ms(chicago, text)) == expected, text


def test_hours_keep_to_the_clock_through_summer_time() -> None:
    """09:30 is 09:30 before and after, in the night of the change as well."""
    hours = MarketHours.parse("America/New_York Mon-Fri 09:30-16:00")
    new_york = "America/New_York"
    for day in ("2026-03-06", "2026-03-09", "2026-10-30", "2026-11-02"):
        assert hours.open_since_ms(at_ms(new_york, f"{day} 09:29")) is None
        opened_ms = at_ms(new_york, f"{day} 09:30")
        assert hours.open_since_ms(opened_ms) == opened_ms
    night = MarketHours.parse("America/New_York Sun 00:00-24:00")
    for fold in (0, 1):
        assert night.open_since_ms(at_ms(new_york, "2026-11-01 01:30", fold)) == (
            at_ms(new_york, "2026-11-01 00:00")
        )


def test_several_sessions_are_open_while_one_of_them_is() -> None:
    """A lunch break is a break; markets are told apart by their zones."""
    hours = MarketHours.parse(
        "Asia/Tokyo Mon-Fri 09:00-11:30; Asia/Tokyo Mon-Fri 12:30-15:25;"
        "Asia/Seoul Mon-Fri 09:00-15:20;"
    )
    assert hours.markets == ("Asia/Tokyo", "Asia/Seoul")
    noon_ms = at_ms("Asia/Tokyo", "2026-11-26 12:00")
    assert are_open(hours, noon_ms) == {"Asia/Tokyo": False, "Asia/Seoul": True}
    evening_ms = at_ms("Asia/Tokyo", "2026-11-26 15:22")
    assert hours.open_since_ms(evening_ms) == at_ms("Asia/Tokyo", "2026-11-26 12:30")


@pytest.mark.parametrize(
    ("now", "opened", "closes", "opens"),
    [
        # A Friday afternoon, the night after it, and an ordinary morning.
        (
            "2026-11-27 15:29",
            "2026-11-27 09:00",
            "2026-11-27 15:30",
            "2026-11-30 09:00",
        ),
        ("2026-11-27 15:30", None, None, "2026-11-30 09:00"),
        ("2026-11-30 08:59", None, None, "2026-11-30 09:00"),
        # The day of the entrance examination is an hour late, the year's first, too.
        ("2026-11-19 09:30", None, None, "2026-11-19 10:00"),
        (
            "2026-11-19 16:29",
            "2026-11-19 10:00",
            "2026-11-19 16:30",
            "2026-11-20 09:00",
        ),
        ("2025-12-30 16:00", None, None, "2026-01-02 10:00"),
        # Three days of the lunar new year, and the days around them.
        ("2026-02-13 16:00", None, None, "2026-02-19 09:00"),
    ],
)
def test_a_calendar_knows_its_odd_days(
    now: str, opened: str | None, closes: str | None, opens: str
) -> None:
    """Of the Korean exchange."""
    (state,) = MarketHours.parse("XKRX").states(at_ms("Asia/Seoul", now))
    expected = [at and at_ms("Asia/Seoul", at) for at in (opened, closes, opens)]
    assert (state.market, state.zone) == ("XKRX", "Asia/Seoul")
    assert [state.opened_ms, state.closes_ms, state.opens_ms] == expected


@pytest.mark.parametrize(
    ("calendar", "zone", "day", "opens"),
    [
        ("XNYS", "America/New_York", "2026-11-26 12:00", "2026-11-27 09:30"),
        ("XNAS", "America/New_York", "2026-11-27 13:00", "2026-11-30 09:30"),
        ("BVMF", "America/Sao_Paulo", "2026-02-16 12:00", "2026-02-18 13:00"),
        ("NXT", "Asia/Seoul", "2026-11-27 15:20", "2026-11-27 15:40"),
        ("NXT", "Asia/Seoul", "2026-11-27 08:55", "2026-11-27 09:00"),
        ("NXT", "Asia/Seoul", "2026-11-27 20:00", "2026-11-30 08:00"),
    ],
)
def test_calendars_of_other_exchanges(
    calendar: str, zone: str, day: str, opens: str
) -> None:
    """Thanksgiving and the short day after it, carnival, breaks between sessions."""
    (state,) = MarketHours.parse(calendar).states(at_ms(zone, day))
    assert (state.is_open, state.opens_ms) == (False, at_ms(zone, opens))


def test_a_market_that_never_closes_has_been_open_for_long() -> None:
    """Its midnight is no opening: what was quiet before it is quiet still."""
    hours = MarketHours.parse("24/7")
    now_ms = at_ms("UTC", "2026-11-27 00:01")
    opened_ms = hours.open_since_ms(now_ms)
    assert opened_ms is not None
    assert opened_ms <= now_ms - 7 * 86_400_000
    assert are_open(hours, now_ms) == {"24/7": True}
    assert hours.states(now_ms)[0].closes_ms is None


def test_a_calendar_says_when_it_ends() -> None:
    """One of sessions alone, and of what never closes, does not."""
    hours = MarketHours.parse(f"XKRX; 24/7; {EXAMPLE}")
    assert hours.ended(date(2027, 12, 31)) == {}
    assert hours.ended(date(2028, 1, 1)) == {"XKRX": date(2027, 12, 31)}


def test_who_knows_no_next_session_says_so() -> None:
    """All days are left out for longer than anybody looks ahead."""
    days = ",".join(f"2026-{m:02}-{d:02}" for m in (11, 12) for d in range(1, 31))
    hours = MarketHours.parse(f"UTC Mon-Sun 09:00-10:00 except {days},2026-12-31")
    (state,) = hours.states(at_ms("UTC", "2026-11-05 12:00"))
    assert (state.is_open, state.opens_ms) == (False, None)


def test_without_hours_nobody_knows() -> None:
    """A market that may trade at any time is not said to be closed."""
    assert MarketHours.parse("") == MarketHours()
    assert MarketHours().open_since_ms(1) == 0
    assert MarketHours().states(1) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Asia/Seoul 09:00-15:30", "must be like Asia/Seoul Mon-Fri 09:00-15:20"),
        ("Mon-Fri 09:00-15:30", "must be like Asia/Seoul Mon-Fri"),
        ("Asia/Seul Mon-Fri 09:00-15:30", "'Asia/Seul': must be a time zone"),
        ("Asia/Seoul Mo-Fr 09:00-15:30", "'Mo-Fr': must be days like Mon-Fri"),
        ("Asia/Seoul Mon-Fri 09:60-15:30", "09:60: must be a time from 00:00 to"),
        ("Asia/Seoul Mon-Fri 09:00-24:01", "24:01: must be a time from 00:00 to"),
        ("Asia/Seoul Mon 09:00-10:00 except 2026-13-01", "must be dates like 2026-"),
        ("XKRS", "a calendar .XKRX, NXT, XNYS, XNAS, BVMF, 24/7., or the path"),
        ("missing.json", "calendar missing.json: No such file"),
        ("UTC Mon 09:00-10:00;" * 65, "must be at most 64 sessions"),
    ],
)
def test_hours_of_another_form_are_refused(text: str, words: str) -> None:
    """With the piece and the rule."""
    with pytest.raises(ValueError, match=words):
        MarketHours.parse(text)
