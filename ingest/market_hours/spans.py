"""Days of the week, sessions and time zones, as people write them. Pure."""

import re
from zoneinfo import available_timezones

from ingest.market_hours.timetable import Span

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_SPAN = re.compile(r"([0-9]{2}:[0-9]{2})-([0-9]{2}:[0-9]{2})", re.ASCII)
_DAY_MINUTES = 24 * 60


def read_zone(text: str) -> str:
    """Return the name of a time zone. Raises ValueError."""
    if text not in available_timezones():
        raise ValueError(f"{text[:40]!r}: must be a time zone like Asia/Seoul")
    return text


def parse_days(text: str) -> frozenset[int]:
    """Read ``Mon-Fri`` or ``Sun,Tue``: 0 is Monday. Raises ValueError."""
    days: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first not in _DAYS or (last or first) not in _DAYS:
            raise ValueError(f"{part[:20]!r}: must be days like Mon-Fri or Sun,Tue")
        begin, end = _DAYS.index(first), _DAYS.index(last or first)
        days.update((begin + n) % 7 for n in range((end - begin) % 7 + 1))
    return frozenset(days)


def parse_span(text: str) -> Span:
    """Read ``09:00-15:20``; an end before the beginning is on the next day.

    Raises ValueError.
    """
    form = _SPAN.fullmatch(text)
    if form is None:
        raise ValueError(f"{text[:20]!r}: must be a session like 09:00-15:20")
    begin, end = map(_minutes, form.groups())
    return begin, end + (_DAY_MINUTES if end <= begin else 0)


def _minutes(text: str) -> int:
    hours, minutes = map(int, text.split(":"))
    if minutes > 59 or hours * 60 + minutes > _DAY_MINUTES:
        raise ValueError(f"{text}: must be a time from 00:00 to 24:00")
    return hours * 60 + minutes
