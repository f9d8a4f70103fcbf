"""Dates and times of day in two fields, and what wrong times look like."""

import pytest

from ingest.records.time_text import hint_of, join_time
from ingest.trade import InvalidTrade
from tickthrottle_client.trade_v1 import as_microseconds


@pytest.mark.parametrize(
    ("date", "clock", "joined"),
    [
        ("20261125", "9:30:00.000123456", "2026-11-25T09:30:00.000123456"),
        ("2026-11-25", "09:30", "2026-11-25T09:30:00"),
        ("2026/11/25", "09:30:01", "2026-11-25T09:30:01"),
        ("2026.11.25", "090001", "2026-11-25T09:00:01"),
        ("20261125", "090001.5", "2026-11-25T09:00:01.5"),
        ("20261125", "090001123", "2026-11-25T09:00:01.123"),
        ("20261125", "090001123456", "2026-11-25T09:00:01.123456"),
        ("20261125", "09:30:00Z", "2026-11-25T09:30:00Z"),
        ("20261125", "09:30:00.5-05:00", "2026-11-25T09:30:00.5-05:00"),
    ],
)
def test_a_date_and_a_time_are_one(date: str, clock: str, joined: str) -> None:
    assert join_time(date, clock) == joined


@pytest.mark.parametrize(
    ("date", "clock", "rule"),
    [
        ("25.11.2026", "09:30", "date '25.11.2026': must be like 2026-11-25"),
        ("", "09:30", "date '': must be like"),
        # A zero that is lost, or seconds of the day: nobody knows.
        ("20261125", "93000", "time '93000': beside a date it must be a time of day"),
        ("20261125", "", "time '': beside a date"),
        ("20261125", "09:30.5", "has a fraction of a minute"),
    ],
)
def test_what_is_no_date_or_time_is_refused(date: str, clock: str, rule: str) -> None:
    with pytest.raises(InvalidTrade) as caught:
        join_time(date, clock)
    assert rule in str(caught.value)
    assert caught.value.reason == "bad_time"


@pytest.mark.parametrize(
    ("date", "clock"), [("20261332", "09:30"), ("20261125", "25:00")]
)
def test_a_day_that_does_not_exist_is_refused_later(date: str, clock: str) -> None:
    with pytest.raises(InvalidTrade):
        as_microseconds(join_time(date, clock) + "Z")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("46351.375", "day number of a spreadsheet (2026-11-25 09:00)"),
        ("46351", "spreadsheet (2026-11-25 00:00)"),
        ("9:30:00", "time of day without a date"),
        ("20261125", "a date without a time"),
        ("20261125093000", "date and time in digits"),
        ("20261125093000123", "date and time in digits"),
    ],
)
def test_what_a_wrong_time_looks_like_is_said(text: str, words: str) -> None:
    assert words in hint_of(text)


@pytest.mark.parametrize("text", ["noon", "12345.5", "99999", "20261399", ""])
def test_of_any_other_nothing_is_said(text: str) -> None:
    assert hint_of(text) == ""
