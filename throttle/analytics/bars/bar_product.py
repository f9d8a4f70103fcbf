"""Bars: tumbling windows of the exchange's clock, amended by late trades."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Self, cast

import pyarrow as pa
import redis
import structlog

from throttle.analytics.bars.amended_bars import BarBoard, BarChanges, BarPartials
from throttle.analytics.bars.published_bars import PublishedBars, RedisBars, parts
from throttle.analytics.batch_bars import bars_of, shown_bars
from throttle.analytics.product import Product
from throttle.analytics.product_publisher import BatchChanges, Command
from throttle.analytics.product_sink import ProductSink, SinkMeans
from throttle.analytics.tumbling_bars import bars_in_state, tumbling_bars
from throttle.contract.bars import CLOSE_AFTER_MS, Bar, BarsUpdate
from throttle.contract.cut import Cut
from throttle.contract.products.bar_log import entries_of
from throttle.contract.tally import BatchNote
from throttle.settings import AnalyticsSettings

log = structlog.get_logger()

BARS_RETENTION_S = 604_800
"""An instrument's bars are forgotten a week, in seconds, after its last one closed."""

# Fields of a hash that are written by one command: Lua takes so many arguments.
_FIELDS = 1_000
# Bars of the state that are published again in one step.
_BARS = 5_000


class BarSink(ProductSink[Bar]):
    """Every bar that a batch changes, and what the clock closes."""

    def __init__(self, means: SinkMeans, stored: PublishedBars) -> None:
        super().__init__(means)
        self._stored = stored
        self._board: BarBoard | None = None

    @classmethod
    def create(cls, client: redis.Redis, means: SinkMeans) -> Self:
        """Create a sink for what is published in a Redis."""
        return cls(means, RedisBars(client, means.settings))

    def results(self, rows: pa.Table, note: BatchNote, batch_id: int) -> Sequence[Bar]:
        """Return the bars that a batch has changed."""
        return list(bars_of(rows))

    def changes(self, results: Sequence[Bar], clock_ms: int) -> BatchChanges:
        """Return what changed bars change, and those that the clock closes."""
        board = self._board or self._stored.board()
        before = self._stored.look_up(board.unknown(results))
        changes = board.changes(results, before, clock_ms)
        if changes.narrowed:
            days = {isin: changes.days[isin].bar for isin in changes.narrowed}
            changes = changes.refolded(self._stored.within(days), board.calendars)
        # Until it is published, what is known here is not sure to be what is stored.
        self._board, self._next = None, (board, changes)
        return self._update(changes, clock_ms)

    def settle(self) -> int:
        """Take over the newest changes, now published; return the bars kept back."""
        self._board, changes = self._next
        self._board.apply(changes)
        return changes.kept

    def taken_up(self, batch_id: int, upto: Cut) -> Iterator[BatchChanges]:
        """Yield what the state held after a batch, wherever Redis stands."""
        bars: Sequence[Bar] = ()
        if batch_id >= 0:
            bars = shown_bars(self.state(batch_id, upto), {})
            log.info("bars taken up", bars=len(bars), batch=batch_id + 1)
        for part in chain(parts(bars, _BARS), [()]):
            yield self.changes(part, self.clock_ms(upto))

    def _update(self, changes: BarChanges, clock_ms: int) -> BatchChanges:
        days = tuple((isin, day.encode()) for isin, day in changes.days.items())
        message = BarsUpdate("", 0, clock_ms, changes.bars, days).encode()
        settings = self._settings
        zone, begins, named = settings.calendars()
        return BatchChanges(
            # The script writes where the message stands among others.
            message.partition(b'"sequence":0')[2],
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
                # What is kept of an instrument is bounded in number and in time.
                yield "ZREMRANGEBYRANK", key, 0, -most_bars(settings) - 1
                yield "EXPIRE", key, BARS_RETENTION_S
        newest = ((isin, bar.encode()) for isin, bar in changes.newest.items())
        for key, pairs in ((keys.last_bars, newest), (keys.days, iter(days))):
            for part in parts(pairs, _FIELDS):
                yield cast(Command, ("HSET", key, *chain.from_iterable(part)))


def kept_ms(settings: AnalyticsSettings) -> int:
    """Return how long after its end a trade may amend a bar, which the state keeps."""
    # Trades may be stamped ahead of the log's clock, and with them the watermark.
    return settings.lateness_s * 1_000 + CLOSE_AFTER_MS + settings.max_ahead_ms


def most_bars(settings: AnalyticsSettings) -> int:
    """Return how many bars Redis keeps of an instrument.

    As many as a trade may still amend, however short they are: one that is gone would
    begin anew, and its trades count twice in the day.
    """
    return max(settings.bars_kept, kept_ms(settings) // settings.bars_ms + 2)


BARS = Product(
    name="bars",
    form=2,
    state_settings=("bars_ms",),
    rule=lambda settings: BarPartials(
        settings.analytics_batch_ms,
        CLOSE_AFTER_MS,
        settings.bars_ms,
        settings.lateness_s * 1_000,
    ),
    kept_ms=kept_ms,
    windows=lambda rows, settings, kept_ms: tumbling_bars(
        rows, settings.bars_ms, kept_ms
    ),
    mode="update",
    sink=BarSink,
    state=bars_in_state,
    shown=shown_bars,
)
