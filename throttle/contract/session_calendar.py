"""When an exchange's day begins: a time zone and a time of day. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo


@dataclass(frozen=True, slots=True)
class SessionCalendar:
    """Cuts the time of an exchange into its days.

    A day begins at ``begins`` (``HH:MM``) of the clock in ``zone`` and is named by the
    date of that clock at its beginning. Where clocks change, a day has 23 or 25 hours.
    """

    zone: str = "Asia/Seoul"
    begins: str = "00:00"

    def __post_init__(self) -> None:
        try:
            ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError):
            raise ValueError(
                f"zone {self.zone!r}: must be a name such as Asia/Seoul"
            ) from None
        try:
            time.fromisoformat(self.begins)
            is_time = len(self.begins) == len("HH:MM")
        except ValueError:
            is_time = False
        if not is_time:
            raise ValueError(f"begins {self.begins!r}: must be a time such as 09:00")

    def day_of(self, time_ms: int) -> tuple[int, int]:
        """Return the start and the end of the day that a moment is in.

        All are milliseconds since 1970; the end is the next day's start.
        """
        return _day_of(self.zone, self.begins, time_ms // 60_000)


@lru_cache(maxsize=4096)
def _day_of(zone: str, begins: str, minute: int) -> tuple[int, int]:
    # A day begins at a whole minute: all moments of a minute are in the same one.
    local = ZoneInfo(zone)
    starts = time.fromisoformat(begins)
    moment = datetime.fromtimestamp(minute * 60, UTC).astimezone(local)
    shift = timedelta(hours=starts.hour, minutes=starts.minute)
    date = (moment.replace(tzinfo=None) - shift).date()
    first, last = (
        round(datetime.combine(day, starts, local).timestamp() * 1000)
        for day in (date, date + timedelta(days=1))
    )
    return first, last


EVERYDAY = SessionCalendar()
"""The calendar of who says nothing else: Korea's days, from midnight to midnight."""


@dataclass(frozen=True, slots=True)
class SessionCalendars:
    """The calendars of several markets, by the first two letters of an ISIN or key.

    They never change: a bar belongs to one day for good. ``everyday`` is for those that
    are not ``named``.
    """

    everyday: SessionCalendar = EVERYDAY
    named: Mapping[str, SessionCalendar] = field(default_factory=dict)

    def of(self, isin: str) -> SessionCalendar:
        """Return the calendar of an instrument."""
        return self.named.get(isin[:2], self.everyday)

    @classmethod
    def create(cls, zone: str, begins: str, named: str) -> "SessionCalendars":
        """Create them from what settings say (``SparkSettings.calendars``).

        ``named`` is as ``US=America/New_York@09:30,QM=UTC@00:00``. Raises ValueError.
        """
        calendars: dict[str, SessionCalendar] = {}
        everyday = SessionCalendar(zone, begins)
        for part in filter(None, named.split(",")):
            letters, _, calendar = part.partition("=")
            zone, _, begins = calendar.partition("@")
            if letters in calendars:
                raise ValueError(f"{letters}: is named twice")
            try:
                calendars[letters] = SessionCalendar(zone, begins)
            except ValueError as error:
                raise ValueError(f"{letters}: {error}") from None
        return cls(everyday, calendars)


EVERYWHERE = SessionCalendars()
"""The calendars of who says nothing else: one for all."""
