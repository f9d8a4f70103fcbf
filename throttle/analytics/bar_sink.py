"""What Spark calls with every batch of bars: what changed, published once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, TypeVar, cast

import redis
import structlog
from pyspark.sql import DataFrame

from throttle.analytics.bar_board import BarBoard, BarChanges, Place
from throttle.analytics.batch_bars import bars_of, split
from throttle.analytics.product_publisher import BatchChanges, Command, ProductPublisher
from throttle.contract.bar_intervals import DayBar
from throttle.contract.bars import CLOSE_AFTER_MS, Bar, BarsUpdate
from throttle.contract.products.bar_log import entries_of
from throttle.contract.redis_keys import AnalyticsKeys
from throttle.contract.session_calendar import SessionCalendar, SessionCalendars
from throttle.contract.tally import BatchNote
from throttle.publish.publisher import StreamLost
from throttle.settings import AnalyticsSettings

T = TypeVar("T")

log = structlog.get_logger()

BARS_RETENTION_S = 604_800
"""An issue's bars are forgotten so many seconds after its last one closed: a week."""

# Fields of a hash that are written by one command: Lua takes so many arguments.
_FIELDS = 1_000
# Bars of the state that are published again in one step.
_BARS = 5_000
_ASKED = 2_000


class BarSink:
    """Publishes the bars of each batch, under one term.

    ``state`` returns the bars that the state held after a batch. ``error`` keeps what
    stopped it, in its own words. ``retry`` calls for as long as Redis is away.
    """

    product = "bars"

    def __init__(
        self,
        client: redis.Redis,
        settings: AnalyticsSettings,
        publisher: ProductPublisher,
        state: Callable[[int], Sequence[Bar]],
        retry: Callable[[Callable[[], Any]], Any],
        report_to: Callable[[BatchNote, BarChanges], None] | None = None,
    ) -> None:
        self._client = client
        self._keys = AnalyticsKeys(settings.namespace)
        self._settings = settings
        self._publisher = publisher
        self._state = state
        self._retry = retry
        self._report_to = report_to
        self._board: BarBoard | None = None
        self.error: Exception | None = None
        self.batches = 0

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Publish one batch. Spark may call it again for the same batch."""
        try:
            rows, note = split(frame.toArrow())
            if note is not None:
                bars = list(bars_of(rows))
                self._retry(lambda: self._publish(bars, note, batch_id))
        except Exception as error:
            self.error = error
            raise

    def _publish(self, bars: Sequence[Bar], note: BatchNote, batch_id: int) -> None:
        try:
            changes = self._try(bars, note, batch_id)
        except StreamLost:
            if self.batches:
                # What this job has published is gone: whoever leads begins anew.
                raise
            self._take_up(note, batch_id)
            changes = self._try(bars, note, batch_id)
        self.batches += 1
        if changes is not None and self._report_to is not None:
            self._report_to(note, changes)

    def _try(
        self, bars: Sequence[Bar], note: BatchNote, batch_id: int
    ) -> BarChanges | None:
        board = self._board or self._load()
        clock_ms = note.end.end_ms - CLOSE_AFTER_MS
        known = self._look_up(board.unknown(bars))
        changes = board.changes(bars, known, clock_ms)
        update = self._update(changes, clock_ms)
        # Whatever happens now, what is known here is not sure to be what Redis has.
        self._board = None
        if not self._publisher.publish(update, note, batch_id, clock_ms):
            return None
        board.apply(changes, clock_ms)
        self._board = board
        return changes

    def _take_up(self, note: BatchNote, batch_id: int) -> None:
        """Publish what the state held before this batch, wherever Redis stands."""
        held = self._state(batch_id - 1) if batch_id > 0 else ()
        clock_ms = note.start.end_ms - CLOSE_AFTER_MS
        if batch_id > 0:
            log.info("bars taken up", bars=len(held), batch=batch_id)
        board = self._load()
        for part in chain(_parts(held, _BARS), [()]):
            known = self._look_up(board.unknown(part))
            changes = board.changes(part, known, clock_ms)
            update = self._update(changes, clock_ms)
            self._publisher.take_up(update, note, batch_id - 1, clock_ms)
            board.apply(changes, clock_ms)
        self._board = None

    def _load(self) -> BarBoard:
        """Return the board as Redis has it."""
        keys, settings = self._keys, self._settings
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hget(keys.progress(self.product), "clock")
            pipe.hgetall(keys.last_bars)
            pipe.hgetall(keys.days)
            clock, newest, days = pipe.execute()
        clock_ms = int(clock or 0)
        board = BarBoard(
            calendars_of(settings),
            clock_ms,
            newest={i.decode(): Bar.decode(i.decode(), b) for i, b in newest.items()},
            days={i.decode(): DayBar.decode(i.decode(), d) for i, d in days.items()},
        )
        since_ms = clock_ms - settings.bars_ms
        for isins in _parts(board.newest, _ASKED):
            with self._client.pipeline(transaction=False) as pipe:
                for isin in isins:
                    pipe.zrangebyscore(keys.bars(isin), since_ms, "+inf")
                for isin, lines in zip(isins, pipe.execute(), strict=True):
                    bars = (Bar.decode(isin, line) for line in lines)
                    board.open |= {(isin, b.start_ms): b for b in bars if not b.closed}
        return board

    def _look_up(self, places: Sequence[Place]) -> Mapping[Place, Bar]:
        found: dict[Place, Bar] = {}
        for part in _parts(places, _ASKED):
            with self._client.pipeline(transaction=False) as pipe:
                for isin, start_ms in part:
                    pipe.zrangebyscore(self._keys.bars(isin), start_ms, start_ms)
                for place, lines in zip(part, pipe.execute(), strict=True):
                    for line in lines:
                        found[place] = Bar.decode(place[0], line)
        return found

    def _update(self, changes: BarChanges, clock_ms: int) -> BatchChanges:
        days = tuple((isin, day.encode()) for isin, day in changes.days.items())
        message = BarsUpdate("", 0, clock_ms, changes.bars, days).encode()
        head, _, lines = message.partition(b"\n")
        # The script writes where the message stands among others.
        rest = head.partition(b'"sequence":0')[2]
        settings = self._settings
        zone, begins, named = settings.calendars()
        return BatchChanges(
            b"{",
            rest + (b"\n" + lines if lines else b""),
            list(self._commands(changes, days)),
            {
                "bars_ms": settings.bars_ms,
                "close_after_ms": CLOSE_AFTER_MS,
                "zone": zone,
                "begins": begins,
                "calendars": named,
            },
            logged=entries_of(bar for bar in changes.bars if bar.closed),
            log_as=self._keys.bar_log,
        )

    def _commands(
        self, changes: BarChanges, days: Iterable[tuple[str, bytes]]
    ) -> Iterator[Command]:
        keys, settings = self._keys, self._settings
        for bar in changes.bars:
            key = keys.bars(bar.isin)
            yield "ZREMRANGEBYSCORE", key, bar.start_ms, bar.start_ms
            yield "ZADD", key, bar.start_ms, bar.encode()
            if bar.closed:
                # What is kept of an issue is bounded in number and in time.
                yield "ZREMRANGEBYRANK", key, 0, -settings.bars_kept - 1
                yield "EXPIRE", key, BARS_RETENTION_S
        newest = ((isin, bar.encode()) for isin, bar in changes.newest.items())
        for key, pairs in ((keys.last_bars, newest), (keys.days, iter(days))):
            for part in _parts(pairs, _FIELDS):
                yield cast(Command, ("HSET", key, *chain.from_iterable(part)))


def calendars_of(settings: AnalyticsSettings) -> SessionCalendars:
    """Return the calendar of every issue."""
    zone, begins, named = settings.calendars()
    return SessionCalendars.parse(SessionCalendar(zone, begins), named)


def _parts(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Yield items in parts of at most ``size``."""
    left = iter(items)
    while part := tuple(islice(left, size)):
        yield part
