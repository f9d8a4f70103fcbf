"""Calendars of exchanges, and of users, as files: ``packaging/make_calendars.py``.

A file is JSON:

    {"market": "XKRX", "zone": "Asia/Seoul", "source": "exchange_calendars 4.13.2, ...",
     "made": "2026-11-27", "first": "2025-01-01", "last": "2027-12-31",
     "days": "Mon-Fri", "sessions": ["09:00-15:30"], "closed": ["2026-12-25"],
     "other": {"2026-11-19": ["10:00-16:30"]}}

``sessions`` are those of every one of the ``days`` of the week, ``closed`` are days
without one, and ``other`` days have their own. Sessions are in order. ``first`` and
``last`` are the days between which all of that is known; without ``last`` it never
ends. Trades of a closing auction come up to ``closing_minutes`` after a session's end,
and are of the session; without it none do.
"""

from collections.abc import Sequence
from datetime import date
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ingest.market_hours.timetable import (
    Span,
    Timetable,
    parse_days,
    parse_span,
    read_zone,
)

CALENDARS = ("XKRX", "NXT", "XNYS", "XNAS", "BVMF", "24/7")
"""The calendars that come with the product, by the names of their markets."""

MOST_BYTES = 1_048_576
"""A file of a user that is larger is not read."""

_MOST_DAYS = 10_000

_Spans = Annotated[list[str], Field(max_length=16)]


class _Calendar(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    market: str = Field(pattern=r"^[A-Za-z0-9/_-]{1,32}$")
    zone: str
    source: str = Field("", max_length=500)
    made: date | None = None
    first: date | None = None
    last: date | None = None
    days: str
    sessions: _Spans
    closed: list[date] = Field(default_factory=list, max_length=_MOST_DAYS)
    other: dict[date, _Spans] = Field(default_factory=dict, max_length=_MOST_DAYS)
    closing_minutes: int = Field(0, ge=0, le=60)


@cache
def find_calendar(name: str) -> Timetable:
    """Return one of ``CALENDARS``, or the one in a file whose path ends in ``.json``.

    Raises ValueError, which names the file and the field.
    """
    if name in CALENDARS:
        folder = files("ingest.market_hours").joinpath("calendars")
        file = folder.joinpath(f"{name.replace('/', '-')}.json")
        return parse_calendar(file.read_text("utf-8"), name)
    try:
        path = Path(name)
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"calendar {name}: has over {MOST_BYTES:,} bytes")
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"calendar {name}: must be UTF-8") from None
    except OSError as error:
        raise ValueError(f"calendar {name}: {error.strerror}") from None
    return parse_calendar(text, name)


def parse_calendar(text: str, name: str) -> Timetable:
    """Read a calendar that is called ``name`` in errors. Raises ValueError."""
    try:
        calendar = _Calendar.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        raise ValueError(f"calendar {name}: {field}: {first['msg']}") from None
    try:
        other: dict[date, Sequence[Span]] = dict.fromkeys(calendar.closed, ())
        other |= {day: _parse_spans(spans) for day, spans in calendar.other.items()}
        return Timetable(
            *(calendar.market, read_zone(calendar.zone), parse_days(calendar.days)),
            *(_parse_spans(calendar.sessions), other),
            *(calendar.last, calendar.closing_minutes),
        )
    except ValueError as error:
        raise ValueError(f"calendar {name}: {error}") from None


def _parse_spans(texts: list[str]) -> Sequence[Span]:
    spans = tuple(map(parse_span, texts))
    for before, after in pairwise(spans):
        if after[0] < before[1]:
            raise ValueError(f"{', '.join(texts)}: must be in order")
    return spans
