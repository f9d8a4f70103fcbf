"""Which session of its market a trade is of, where the trade does not say it.

The calendar says when the regular session is. What comes before it on the same day is
``pre``, what comes after it is ``after``, and on a day without one all is ``closed``.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from ingest.market_hours.calendar_file import find_calendar
from ingest.market_hours.timetable import Timetable

_US_PER_MINUTE = 60_000_000


class TradingSessions:
    """The calendars of several markets, by an ISIN's country or a key's venue."""

    def __init__(self, named: Mapping[str, Timetable]) -> None:
        """``named`` has under no letters that of all others, if it is known."""
        self._named = named
        # Trades of one minute are many.
        self._session_at = lru_cache(maxsize=65_536)(self._look_up)

    @property
    def are_by_letters(self) -> bool:
        """Whether instruments differ."""
        return bool(self._named.keys() - {""})

    def session_of(self, isin: str, minute: int) -> str | None:
        """Return the session that a minute since 1970 is in, None if nobody knows."""
        letters = isin[:2]
        return self._session_at(letters if letters in self._named else "", minute)

    def _look_up(self, letters: str, minute: int) -> str | None:
        table = self._named.get(letters)
        return None if table is None else session_at(table, minute)

    @classmethod
    def parse(cls, text: str) -> "TradingSessions":
        """Read ``XKRX`` or ``KR=XKRX,US=XNYS``: calendars, files. Raises ValueError."""
        named: dict[str, Timetable] = {}
        for part in filter(None, map(str.strip, text.split(","))):
            letters, equals, name = part.rpartition("=")
            if equals and (len(letters) != 2 or not letters.isupper()):
                rule = "must be two capitals before the =, as in KR=XKRX"
                raise ValueError(f"{part[:80]!r}: {rule}")
            if letters in named:
                raise ValueError(f"{part[:80]!r}: names {letters or 'all'} twice")
            named[letters] = find_calendar(name)
        return cls(named)


def minute_of(time_us: int) -> int:
    """Return the minute since 1970 that a time is in."""
    return time_us // _US_PER_MINUTE


def session_at(table: Timetable, minute: int) -> str:
    """Return the session of a market that a minute since 1970 is in.

    Between two spans of one day it is the regular session.
    """
    moment = datetime.fromtimestamp(minute * 60, UTC)
    closing = timedelta(minutes=table.closing_minutes)
    if table.session(moment) or table.session(moment - closing):
        return "regular"
    midnight, minutes = table.minutes_of_day(moment)
    spans = table.spans_on(midnight)
    if not spans:
        return "closed"
    if minutes < spans[0][0]:
        return "pre"
    return "regular" if minutes < spans[-1][1] else "after"
