"""The bars that were published, as Redis has them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Protocol, TypeVar

import redis

from ingest.redis_keys import AnalyticsKeys
from throttle.analytics.bars.amended_bars import BarBoard, Place
from throttle.contract.bar_intervals import DayBar
from throttle.contract.bars import Bar
from throttle.contract.session_calendar import SessionCalendars
from throttle.settings import AnalyticsSettings

T = TypeVar("T")

# Questions that are asked at a time.
_ASKED = 2_000
_DAYS_ASKED = 50


class PublishedBars(Protocol):
    """What a sink of bars asks of those that were published."""

    def board(self) -> BarBoard:
        """Return the open bars, the newest ones, and days."""

    def look_up(self, places: Sequence[Place]) -> Mapping[Place, Bar]:
        """Return the bars at some places, where there are any."""

    def within(self, days: Mapping[str, Bar]) -> Mapping[str, Sequence[Bar]]:
        """Return the bars within a longer one of each instrument, in any order."""


class RedisBars:
    """The published bars of one namespace."""

    def __init__(self, client: redis.Redis, settings: AnalyticsSettings) -> None:
        self._client = client
        self._keys = AnalyticsKeys(settings.namespace)
        self._settings = settings

    def board(self) -> BarBoard:
        keys, settings = self._keys, self._settings
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hget(keys.progress("bars"), "clock")
            pipe.hgetall(keys.last_bars)
            pipe.hgetall(keys.days)
            clock, newest, days = pipe.execute()
        board = BarBoard(
            SessionCalendars.create(*settings.calendars()),
            newest={i.decode(): Bar.decode(i.decode(), b) for i, b in newest.items()},
            days={i.decode(): DayBar.decode(i.decode(), d) for i, d in days.items()},
        )
        since_ms = int(clock or 0) - settings.bars_ms
        recent = ((isin, since_ms, "+inf") for isin in board.newest)
        for _, bars in self._ask(recent, _ASKED):
            board.open |= {(b.isin, b.start_ms): b for b in bars if not b.closed}
        return board

    def look_up(self, places: Sequence[Place]) -> Mapping[Place, Bar]:
        starts = ((isin, start_ms, start_ms) for isin, start_ms in places)
        answers = self._ask(starts, _ASKED)
        return {(bar.isin, bar.start_ms): bar for _, bars in answers for bar in bars}

    def within(self, days: Mapping[str, Bar]) -> Mapping[str, Sequence[Bar]]:
        spans = ((i, day.start_ms, f"({day.end_ms}") for i, day in days.items())
        return dict(self._ask(spans, _DAYS_ASKED))

    def _ask(
        self, spans: Iterable[tuple[str, int, int | str]], at_once: int
    ) -> Iterator[tuple[str, list[Bar]]]:
        """Yield the instrument of each span, and its bars that start in the span."""
        for part in parts(spans, at_once):
            with self._client.pipeline(transaction=False) as pipe:
                for isin, first, last in part:
                    pipe.zrangebyscore(self._keys.bars(isin), first, last)
                for (isin, *_), lines in zip(part, pipe.execute(), strict=True):
                    yield isin, [Bar.decode(isin, line) for line in lines]


def parts(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Yield items in parts of at most ``size``."""
    left = iter(items)
    while part := tuple(islice(left, size)):
        yield part
