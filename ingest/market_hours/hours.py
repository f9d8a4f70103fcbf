"""When markets trade: what may be quiet, and what may not."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property

from ingest.market_hours.calendar_file import CALENDARS, find_calendar
from ingest.market_hours.timetable import Timetable, parse_days, parse_span, read_zone

EXAMPLE = "Asia/Seoul Mon-Fri 09:00-15:20 except 2026-12-25,2026-12-31"

MOST_SESSIONS = 64

_SESSION = re.compile(
    r"(?P<zone>\S+) (?P<days>[A-Z][a-z,A-Z-]+) (?P<span>[0-9:]{5}-[0-9:]{5})"
    r"( except (?P<closed>[0-9,-]+))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class MarketState:
    """Whether a market trades at a moment; all times are in ms since 1970.

    ``opened_ms`` and ``closes_ms`` are of the session that is on; one that goes on for
    more than a week does not close. ``opens_ms`` says when the next one begins, None if
    nobody knows.
    """

    market: str
    zone: str
    opened_ms: int | None
    closes_ms: int | None
    opens_ms: int | None

    @property
    def is_open(self) -> bool:
        """Whether a session is on."""
        return self.opened_ms is not None


@dataclass(frozen=True)
class MarketHours:
    """All timetables that are known, perhaps several of a market, perhaps none."""

    timetables: Sequence[Timetable] = ()

    @classmethod
    def parse(cls, text: str) -> "MarketHours":
        """Read what stands between semicolons: a calendar's name, or its file.

        Sessions like ``EXAMPLE`` are of a market named as the zone. Raises ValueError.
        """
        parts = [" ".join(part.split()) for part in text.split(";") if part.strip()]
        if len(parts) > MOST_SESSIONS:
            raise ValueError(f"must be at most {MOST_SESSIONS} sessions")
        return cls(tuple(map(_parse_part, parts)))

    @cached_property
    def markets(self) -> tuple[str, ...]:
        """The names of the markets."""
        return tuple(dict.fromkeys(table.market for table in self.timetables))

    def open_since_ms(self, now_ms: int) -> int | None:
        """Return since when any market has been open without a break, None if none is.

        Without timetables that is 0: for all that anybody knows it always was.
        """
        if not self.timetables:
            return 0
        return _least(state.opened_ms for state in self.states(now_ms))

    def states(self, now_ms: int) -> list[MarketState]:
        """Return how each market is."""
        moment = datetime.fromtimestamp(now_ms / 1_000, UTC)
        return [self._state(market, moment) for market in self.markets]

    def ended(self, day: date) -> Mapping[str, date]:
        """Return the markets that are known up to a day before, and up to which."""
        last = {t.market: t.last for t in self.timetables if t.last is not None}
        return {market: known for market, known in last.items() if known < day}

    def _state(self, market: str, moment: datetime) -> MarketState:
        tables = [table for table in self.timetables if table.market == market]
        sessions = [on for t in tables if (on := t.session(moment)) is not None]
        begins, ends = zip(*sessions, strict=True) if sessions else ((), ())
        closes = max(map(_ms, ends)) if ends and None not in ends else None
        opens = (_ms(at) for t in tables if (at := t.opens(moment)) is not None)
        zone = tables[0].zone
        return MarketState(
            market, zone, _least(map(_ms, begins)), closes, _least(opens)
        )


def _least(times_ms: Iterable[int | None]) -> int | None:
    return min((at for at in times_ms if at is not None), default=None)


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000)


def _parse_part(text: str) -> Timetable:
    if text in CALENDARS or text.endswith(".json"):
        return find_calendar(text)
    form = _SESSION.fullmatch(text)
    if form is None:
        names = ", ".join(CALENDARS)
        raise ValueError(
            f"{text[:80]!r}: must be like {EXAMPLE}, a calendar ({names}), or the path "
            "of a calendar's file, name.json"
        )
    zone, spans = read_zone(form["zone"]), (parse_span(form["span"]),)
    closed = dict.fromkeys(_parse_dates(form["closed"] or ""), ())
    return Timetable(zone, zone, parse_days(form["days"]), spans, closed)


def _parse_dates(text: str) -> frozenset[date]:
    try:
        return frozenset(map(date.fromisoformat, filter(None, text.split(","))))
    except ValueError:
        raise ValueError(f"{text[:80]!r}: must be dates like 2026-12-25") from None
