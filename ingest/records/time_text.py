"""Times as sources write them: one of two fields, and what a wrong one may be. Pure."""

import re
from datetime import UTC, datetime, timedelta

from ingest.trade import InvalidTrade

_DATE = re.compile(r"([0-9]{4})[-/.]?([0-9]{2})[-/.]?([0-9]{2})", re.ASCII)
_CLOCK = re.compile(
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?"
    r"(?P<fraction>\.[0-9]{1,18})?(?P<offset>Z|[+-][0-9]{2}:?[0-9]{2})?",
    re.ASCII,
)
_CLOCK_DIGITS = re.compile(
    r"(?P<hour>[0-9]{2})(?P<minute>[0-9]{2})(?P<second>[0-9]{2})"
    r"(?P<fraction>\.[0-9]{1,18}|[0-9]{3}|[0-9]{6}|[0-9]{9})?(?P<offset>)",
    re.ASCII,
)
_ALL_DIGITS = re.compile(
    r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?P<clock>[0-9]*)",
    re.ASCII,
)
_SERIAL = re.compile(r"[0-9]{5}(?:\.[0-9]{1,18})?", re.ASCII)

# Days of spreadsheets, for the years that a trade may be of.
_FIRST_SERIAL, _LAST_SERIAL = 32_874, 73_051
_SERIALS_FROM = datetime(1899, 12, 30, tzinfo=UTC)


def join_time(date: str, clock: str) -> str:
    """Return a date and a time of day as one text in ISO 8601. Raises InvalidTrade.

    A date is like 2026-11-25, 2026/11/25 or 20261125, a time of day like 9:30,
    09:30:00.000123 or 093000, with its offset from UTC or without.
    """
    day = _DATE.fullmatch(date)
    if day is None:
        rule = "must be like 2026-11-25 or 20261125"
        raise InvalidTrade("bad_time", "date", date, rule)
    time = _CLOCK.fullmatch(clock) or _CLOCK_DIGITS.fullmatch(clock)
    if time is None:
        rule = "beside a date it must be a time of day, like 09:30:00.5 or 093000"
        raise InvalidTrade("bad_time", "time", clock, rule)
    second = time["second"] or "00"
    if fraction := time["fraction"]:
        if time["second"] is None:
            raise InvalidTrade("bad_time", "time", clock, "has a fraction of a minute")
        second += "." + fraction.removeprefix(".")
    return (
        f"{day[1]}-{day[2]}-{day[3]}T{time['hour']:0>2}:{time['minute']}:{second}"
        f"{time['offset'] or ''}"
    )


def hint_of(text: str) -> str:
    """Return what a time that cannot be read may be, as the end of a sentence."""
    if _CLOCK.fullmatch(text):
        return (
            "is a time of day without a date: --map date=COLUMN, or --form "
            "set=date=2026-11-25"
        )
    if digits := _ALL_DIGITS.fullmatch(text):
        if digits["clock"]:
            return "looks like date and time in digits: write it as in ISO 8601"
        return "looks like a date without a time: --map date=COLUMN,time=COLUMN"
    if _SERIAL.fullmatch(text) and _FIRST_SERIAL <= float(text) < _LAST_SERIAL:
        moment = _SERIALS_FROM + timedelta(days=float(text))
        return (
            f"looks like the day number of a spreadsheet ({moment:%Y-%m-%d %H:%M}): "
            "have it write times as in ISO 8601"
        )
    return ""
