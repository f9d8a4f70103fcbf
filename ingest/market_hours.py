"""When a market trades, by its own clock: what may be quiet, and what may not. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from zoneinfo import ZoneInfo, available_timezones

EXAMPLE = "Asia/Seoul Mon-Fri 09:00-15:20 except 2026-12-25,2026-12-31"

MOST_SESSIONS = 64

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_SESSION = re.compile(
    r"(?P<zone>\S+) (?P<days>[A-Z][a-z,A-Z-]+) "
    r"(?P<begin>[0-9]{2}:[0-9]{2})-(?P<end>[0-9]{2}:[0-9]{2})"
    r"( except (?P<closed>[0-9,-]+))?",
    re.ASCII,
)
_DAY_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class MarketSession:
    """Trading from one time of day to another, on some days of the week, in a zone.

    ``end`` may be on the next day; both are in minutes since midnight of the first.
    """

    zone: str
    days: frozenset[int]
    begin: int
    end: int
    closed: frozenset[date] = frozenset()

    def began(self, moment: datetime) -> datetime | None:
        """Return when the session that is on at a moment began, None if none is."""
        local = moment.astimezone(ZoneInfo(self.zone))
        midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
        for day in (midnight, midnight - timedelta(days=1)):
            begin = day + timedelta(minutes=self.begin)
            is_trading = day.weekday() in self.days and day.date() not in self.closed
            if is_trading and begin <= local < day + timedelta(minutes=self.end):
                return begin
        return None


@dataclass(frozen=True)
class MarketHours:
    """All sessions that are known; without any, nobody knows when a market trades."""

    sessions: Sequence[MarketSession] = ()

    @classmethod
    def parse(cls, text: str) -> "MarketHours":
        """Read sessions like ``EXAMPLE``, with semicolons between them.

        Raises ValueError.
        """
        parts = [" ".join(part.split()) for part in text.split(";") if part.strip()]
        if len(parts) > MOST_SESSIONS:
            raise ValueError(f"must be at most {MOST_SESSIONS} sessions")
        return cls(tuple(map(_parse_session, parts)))

    @cached_property
    def markets(self) -> tuple[str, ...]:
        """The names of the markets: their time zones."""
        return tuple(dict.fromkeys(session.zone for session in self.sessions))

    def open_since_ms(self, now_ms: int) -> int | None:
        """Return since when any market has been open without a break, None if none is.

        Without sessions that is 0: for all that anybody knows it always was.
        """
        if not self.sessions:
            return 0
        began = [session.began(_moment(now_ms)) for session in self.sessions]
        opened = [moment for moment in began if moment is not None]
        return round(min(opened).timestamp() * 1_000) if opened else None

    def are_open(self, now_ms: int) -> Mapping[str, bool]:
        """Say of each market whether it is open."""
        moment = _moment(now_ms)
        return {
            market: any(
                session.began(moment) is not None
                for session in self.sessions
                if session.zone == market
            )
            for market in self.markets
        }


def _moment(now_ms: int) -> datetime:
    return datetime.fromtimestamp(now_ms / 1_000, UTC)


def _parse_session(text: str) -> MarketSession:
    form = _SESSION.fullmatch(text)
    if form is None:
        raise ValueError(f"{text[:80]!r}: must be like {EXAMPLE}")
    if form["zone"] not in available_timezones():
        raise ValueError(f"{form['zone'][:40]!r}: must be a time zone like Asia/Seoul")
    begin, end = _minutes(form["begin"]), _minutes(form["end"])
    end += _DAY_MINUTES if end <= begin else 0
    days, closed = _parse_days(form["days"]), _parse_dates(form["closed"] or "")
    return MarketSession(form["zone"], days, begin, end, closed)


def _minutes(text: str) -> int:
    hours, minutes = map(int, text.split(":"))
    if minutes > 59 or hours * 60 + minutes > _DAY_MINUTES:
        raise ValueError(f"{text}: must be a time from 00:00 to 24:00")
    return hours * 60 + minutes


def _parse_days(text: str) -> frozenset[int]:
    days: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first not in _DAYS or (last or first) not in _DAYS:
            raise ValueError(f"{part[:20]!r}: must be days like Mon-Fri or Sun,Tue")
        begin, end = _DAYS.index(first), _DAYS.index(last or first)
        days.update((begin + n) % 7 for n in range((end - begin) % 7 + 1))
    return frozenset(days)


def _parse_dates(text: str) -> frozenset[date]:
    try:
        return frozenset(map(date.fromisoformat, filter(None, text.split(","))))
    except ValueError:
        raise ValueError(f"{text[:80]!r}: must be dates like 2026-12-25") from None
