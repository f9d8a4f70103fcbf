"""When one market trades, by its own clock, and how people write that. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

Span = tuple[int, int]
"""Beginning and end of a session, in minutes since the midnight before its beginning.

The end is not in it, and may be on the next day.
"""

MOST_CLOSED_DAYS = 31
"""A market that opens in none of so many days opens at a time that nobody knows."""

_MOST_CHAINED = 8
_MINUTE = timedelta(minutes=1)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_SPAN = re.compile(r"([0-9]{2}:[0-9]{2})-([0-9]{2}:[0-9]{2})", re.ASCII)
_DAY_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class Timetable:
    """The sessions of a market: on some ``days`` of the week, but for ``other`` days.

    ``days`` are 0 for Monday to 6. ``spans`` are in order and do not touch. ``other``
    has the spans of days that are not as their day of the week: none of a holiday.
    ``last`` is the last day of which that is known, None if it never ends. Trades of
    the closing auction come up to ``closing_minutes`` after the end of a session.
    """

    market: str
    zone: str
    days: frozenset[int]
    spans: Sequence[Span]
    other: Mapping[date, Sequence[Span]] = field(default_factory=dict)
    last: date | None = None
    closing_minutes: int = 0

    def minutes_of_day(self, moment: datetime) -> tuple[date, int]:
        """Return the market's day that a moment is in, and the minute of its clock."""
        local, _ = self._local(moment)
        return local.date(), local.hour * 60 + local.minute

    def spans_on(self, day: date) -> Sequence[Span]:
        """Return the sessions that begin on a day."""
        usual = self.spans if day.weekday() in self.days else ()
        return self.other.get(day, usual)

    def session(self, moment: datetime) -> tuple[datetime, datetime | None] | None:
        """Return beginning and end of the session that is on, None if none is.

        Sessions that touch are one. After a week one has no end, and began a week ago.
        """
        span = self._span_at(moment)
        if span is None:
            return None
        begin, end = span
        for _ in range(_MOST_CHAINED):
            before = self._span_at(begin - _MINUTE)
            if before is None or before[1] != begin:
                break
            begin = before[0]
        for _ in range(_MOST_CHAINED):
            after = self._span_at(end)
            if after is None or after[0] != end:
                return begin, end
            end = after[1]
        return begin, None

    def opens(self, moment: datetime) -> datetime | None:
        """Return when the next session begins, None if nobody knows."""
        local, midnight = self._local(moment)
        for number in range(MOST_CLOSED_DAYS + 1):
            day = midnight + timedelta(days=number)
            for begin, _ in self.spans_on(day.date()):
                opens = day + timedelta(minutes=begin)
                if opens > local:
                    return opens
        return None

    def _span_at(self, moment: datetime) -> tuple[datetime, datetime] | None:
        local, midnight = self._local(moment)
        for day in (midnight, midnight - timedelta(days=1)):
            for span in self.spans_on(day.date()):
                begin, end = (day + timedelta(minutes=minutes) for minutes in span)
                if begin <= local < end:
                    return begin, end
        return None

    def _local(self, moment: datetime) -> tuple[datetime, datetime]:
        local = moment.astimezone(ZoneInfo(self.zone))
        return local, local.replace(hour=0, minute=0, second=0, microsecond=0)


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
    """Read ``09:00-15:20``; an end may be on the next day. Raises ValueError."""
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
