"""Publishes bars as the analytics job does: all keys and the message in one step."""

from collections.abc import Sequence
from decimal import Decimal

import orjson
import redis

from ingest.redis_keys import AnalyticsKeys
from tests.gateway.samples import SAMSUNG
from throttle.contract.bar_intervals import DayBar, with_bar
from throttle.contract.bars import Bar, BarsUpdate
from throttle.contract.products.bursts import TradingBurst
from throttle.contract.products.movers import MoversList, rank, row
from throttle.contract.products.moves import Move
from throttle.contract.session_calendar import EVERYDAY, SessionCalendar

MINUTE_MS = 60_000
FIRST_MS = 1_773_964_800_000
"""2026-03-20 00:00 UTC, 09:00 in Seoul."""


def make_bar(
    isin: str = SAMSUNG,
    minute: int = 0,
    prices: str = "100 120 90 110",
    trades: int = 4,
    *,
    closed: bool = False,
    revision: int = 0,
    volume: str = "40",
    value: str = "4200",
) -> Bar:
    """Return the bar of a minute since ``FIRST_MS``; ``prices`` as open high low close.

    A hyphen stands for a price that no trade has set.
    A bar of more revisions is newer, then one with more trades.
    """
    start_ms = FIRST_MS + minute * MINUTE_MS
    return Bar(
        isin,
        start_ms,
        start_ms + MINUTE_MS,
        *(None if text == "-" else Decimal(text) for text in prices.split()),
        Decimal(volume),
        Decimal(value),
        trades,
        closed,
        revision,
    )


class BarPublisher:
    """One unbroken numbering of messages, beginning at sequence 1."""

    def __init__(
        self,
        client: redis.Redis,
        epoch: str = "b7x1",
        calendar: SessionCalendar = EVERYDAY,
    ) -> None:
        self.keys = AnalyticsKeys("tt")
        self.epoch = epoch
        self.sequence = 0
        self.clock_ms = FIRST_MS
        self.calendar = calendar
        self._client = client
        self._bars: dict[tuple[str, int], Bar] = {}
        self._days: dict[str, DayBar] = {}

    def publish(
        self, *bars: Bar, clock_ms: int | None = None, is_lost: bool = False
    ) -> BarsUpdate:
        """Publish a batch; nobody hears of one that is lost."""
        self.sequence += 1
        self.clock_ms = max(self.clock_ms, clock_ms or 0)
        days = self._take_in(bars)
        encoded = tuple((isin, day.encode()) for isin, day in days.items())
        update = BarsUpdate(self.epoch, self.sequence, self.clock_ms, bars, encoded)
        keys = self.keys
        with self._client.pipeline(transaction=True) as pipe:
            for bar in bars:
                name, line = keys.bars(bar.isin), bar.encode()
                pipe.zremrangebyscore(name, bar.start_ms, bar.start_ms)
                pipe.zadd(name, {line: bar.start_ms})
            newest = {isin: self._newest(isin) for isin in {b.isin for b in bars}}
            for isin, bar in newest.items():
                pipe.hset(keys.last_bars, isin, bar.encode())
            for isin, line in encoded:
                pipe.hset(keys.days, isin, line)
            pipe.hset(
                keys.progress("bars"),
                mapping={
                    "epoch": self.epoch,
                    "sequence": self.sequence,
                    "clock": self.clock_ms,
                    "bars_ms": MINUTE_MS,
                    "zone": self.calendar.zone,
                    "begins": self.calendar.begins,
                    "batch": self.sequence,
                },
            )
            if not is_lost:
                pipe.publish(keys.updates("bars"), update.encode())
            pipe.execute()
        return update

    def repeat(self, update: BarsUpdate) -> None:
        """Send a message again."""
        self._client.publish(self.keys.updates("bars"), update.encode())

    def spoil(self) -> None:
        """Send what no job would have sent."""
        self._client.publish(self.keys.updates("bars"), b"{nonsense")

    def publish_movers(self, bars: Sequence[Bar], sequence: int = 1) -> bytes:
        """Publish lists made of the bars of one span."""
        lists = {n: [row(b) for b in some] for n, some in rank(bars, 5).items()}
        span = bars[0].start_ms, bars[0].end_ms
        encoded = MoversList(self.epoch, sequence, *span, len(bars), lists).encode()
        self._client.set(self.keys.movers, encoded)
        return encoded

    def publish_burst(self, bar: Bar) -> None:
        """Publish a burst that has ended."""
        self._client.xadd(self.keys.bursts, {"burst": TradingBurst(bar).encode()})

    def publish_move(self, before: str, after: str, isin: str = SAMSUNG) -> None:
        """Publish a move of three seconds."""
        start_us = FIRST_MS * 1_000
        prices = Decimal(before), Decimal(after)
        move = Move(isin, start_us, start_us + 3_000_000, 7, *prices)
        self._client.xadd(self.keys.moves, {"move": move.encode()})

    def tell_state(self, product: str = "bars", **fields: int | str) -> None:
        """Have the query say what its state store holds."""
        name = f"{self.keys.progress(product)}:state"
        self._client.hset(name, mapping={k: orjson.dumps(v) for k, v in fields.items()})

    def _take_in(self, bars: Sequence[Bar]) -> dict[str, DayBar]:
        changed: dict[str, DayBar] = {}
        for bar in bars:
            key = bar.isin, bar.start_ms
            known = self._days.get(bar.isin)
            day = with_bar(known, self._bars.get(key), bar, self.calendar)
            self._bars[key] = bar
            if day is not None and day != known:
                self._days[bar.isin] = changed[bar.isin] = day
        return changed

    def _newest(self, isin: str) -> Bar:
        return max(
            (bar for bar in self._bars.values() if bar.isin == isin),
            key=lambda bar: bar.start_ms,
        )
