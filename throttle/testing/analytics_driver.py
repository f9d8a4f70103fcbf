"""A test driver for the analytics job: trades in, the clock turned by hand.

For everybody who changes a rule of bars, movers, bursts or moves, or relies on one:

    driver = AnalyticsDriver(analytics="bars")
    driver.trade("KR7005930003", "70000", at_ms=100)
    driver.turn_clock(61_000)
    driver.trade("KR7005930003", "69900", at_ms=62_000, time_ms=200)  # came late
    driver.turn_clock(65_000)
    [bar] = driver.bars()
    assert (bar.closed, bar.revision, bar.low) == (True, 1, 69900)

It needs no Spark, no Redis and no Java: the log, and what is published, are in memory,
and the grouping is done by ``windows_by_hand.py``, which by test does what Spark does.
All else is the product's own code, up to the messages that gateways get.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from decimal import Decimal
from json import loads
from typing import Any

import pyarrow as pa

from ingest.tradelog.contract import NO_SERVER, Chunk, Head, LogInfo, Ranges, Tail
from throttle.analytics.bars.amended_bars import BarBoard, Place
from throttle.analytics.bars.bar_product import BarSink
from throttle.analytics.partials.log_source import CutRange, PartialOptions
from throttle.analytics.partials.partial_reader import partials_of
from throttle.analytics.partials.standing_prices import StandingPrices
from throttle.analytics.product import Product
from throttle.analytics.product_publisher import BatchChanges
from throttle.analytics.product_sink import ProductSink, SinkMeans
from throttle.analytics.products import BY_NAME
from throttle.contract.bar_intervals import DayBar
from throttle.contract.bars import Bar, BarsUpdate
from throttle.contract.cut import Cut, advance, between, next_end
from throttle.contract.products.bursts import TradingBurst
from throttle.contract.products.moves import Move
from throttle.contract.session_calendar import SessionCalendars
from throttle.contract.tally import BatchNote, QueryTally
from throttle.settings import AnalyticsSettings
from throttle.spark.options import log_options
from throttle.spark.task_log import entry_rules
from throttle.testing.driver import START_MS, TradesByHand
from throttle.testing.windows_by_hand import (
    KeptByHand,
    SessionsByHand,
    TumblingByHand,
    WindowsByHand,
)

_WINDOWS: Mapping[str, Callable[[AnalyticsSettings], WindowsByHand]] = {
    "bars": lambda settings: TumblingByHand(settings.bars_ms),
    "movers": lambda settings: TumblingByHand(settings.movers_every_s * 1_000),
    "bursts": lambda s: SessionsByHand(s.burst_gap_ms, s.burst_trades),
    "moves": lambda settings: KeptByHand(),
}


class AnalyticsDriver(TradesByHand):
    """Queries of products over one log in memory, with a clock turned by hand.

    Moments are milliseconds since the driver's start (``start_ms``). ``settings`` are
    those of the job (``AnalyticsSettings``); all products are made unless ``analytics``
    says which.
    """

    def __init__(self, *, start_ms: int = START_MS, **settings: Any) -> None:
        super().__init__(start_ms)
        everything = {"analytics": ",".join(BY_NAME), **settings}
        self.settings = AnalyticsSettings(**everything)
        self.partitions = self.settings.partitions
        self._log = _MemoryLog(self.partitions)
        self._queries = {
            name: _Query(BY_NAME[name], self.settings, self._log, start_ms)
            for name in self.settings.products()
        }

    def payload(self, payload: bytes, *, at_ms: int, partition: int = 0) -> int:
        """Append any bytes at a moment, malformed ones too; return the position."""
        return self._log.append(partition, self._start_ms + at_ms, payload)

    def turn_clock(self, to_ms: int) -> None:
        """Set the log's clock, forward or back; what is due by then is published."""
        for query in self._queries.values():
            query.run(self._start_ms + to_ms)

    def restart_job(self) -> None:
        """Kill the job and start it again: it goes on from what Spark's state holds."""
        for query in self._queries.values():
            query.restart()

    def bars(self) -> list[Bar]:
        """Return every bar as it was published last, the oldest first."""
        bars = self._queries["bars"].published.bars.values()
        return sorted(bars, key=lambda bar: (bar.start_ms, bar.isin))

    def days(self) -> Mapping[str, DayBar]:
        """Return the newest day of each instrument."""
        return self._queries["bars"].published.days

    def movers(self) -> dict[str, Any]:
        """Return the newest list as clients get it, with decimals; empty before one."""
        messages = self.messages("movers")
        return loads(messages[-1], parse_float=Decimal) if messages else {}

    def bursts(self) -> list[TradingBurst]:
        """Return the bursts that were told, in this order."""
        return [TradingBurst.decode(line) for line in self._lines("bursts")]

    def moves(self) -> list[Move]:
        """Return the moves that were told, in this order."""
        return [Move.decode(line) for line in self._lines("moves")]

    def messages(self, product: str) -> Sequence[bytes]:
        """Return every message of a product, as gateways get them."""
        return self._queries[product].published.messages

    def tally(self, product: str) -> QueryTally:
        """Return what became of the trades that a product's query has read."""
        total = QueryTally()
        for note in self._queries[product].published.notes:
            for tally in note.tallies.values():
                total.add(tally)
        return total

    def _lines(self, product: str) -> list[bytes]:
        return [
            line for m in self.messages(product) for line in m.split(b"\n")[1:] if line
        ]


class _MemoryLog:
    """A log in memory; a position is the number of an entry in its partition."""

    def __init__(self, partitions: int) -> None:
        self.info = LogInfo("driver", partitions, 0)
        self._append_ms: dict[int, list[int]] = defaultdict(list)
        self._payloads: dict[int, list[bytes]] = defaultdict(list)

    def append(self, partition: int, append_ms: int, payload: bytes) -> int:
        times = self._append_ms[partition]
        if times and append_ms < times[-1]:
            raise ValueError(f"partition {partition} has a later entry")
        times.append(append_ms)
        self._payloads[partition].append(payload)
        return len(times)

    def head(self) -> Head:
        partitions = tuple(range(self.info.partitions))
        firsts = (times[0] for times in self._append_ms.values() if times)
        nowhere = (0,) * len(partitions)
        return Head(min(firsts, default=None), partitions, nowhere, nowhere)

    def tail(self, before_ms: int, partitions: Sequence[int] = ()) -> Tail:
        asked = tuple(partitions) or tuple(range(self.info.partitions))
        ends = tuple(bisect_left(self._append_ms[p], before_ms) for p in asked)
        return Tail(before_ms, asked, ends, ends)

    def server_id(self) -> str:
        return NO_SERVER

    def positions_at(
        self, time_ms: int, partitions: Sequence[int] = ()
    ) -> Mapping[int, int]:
        tail = self.tail(time_ms, partitions)
        return dict(zip(tail.partitions, tail.positions, strict=True))

    def read(self, ranges: Ranges) -> Generator[tuple[int, Chunk]]:
        for p, (after, upto) in ranges.items():
            after = max(after, 0)
            yield (
                p,
                Chunk(
                    pa.array(range(after + 1, upto + 1), pa.int64()),
                    pa.array(self._append_ms[p][after:upto], pa.int64()),
                    pa.array(self._payloads[p][after:upto], pa.binary()),
                    upto,
                ),
            )


class _Query:
    """One product: its place in the log, its windows, its sink."""

    def __init__(
        self,
        product: Product,
        settings: AnalyticsSettings,
        log: _MemoryLog,
        start_ms: int,
    ) -> None:
        self._product, self._settings, self._log = product, settings, log
        rule = product.rule(settings)
        options = log_options(settings, log.info)
        self._options = PartialOptions.create(options, rule, settings.start)
        self._rules = entry_rules(options)._replace(open_log=lambda: log)
        self._windows = _WINDOWS[product.name](settings)
        nowhere = (0,) * log.info.partitions
        self._cut = Cut(rule.boundary_ms(start_ms), nowhere, nowhere)
        self._batch_id = 0
        self.since_ms = 0
        self.published = _Published(settings)
        self.restart()

    def restart(self) -> None:
        """Begin with a new sink: what it knows has to come from the state."""
        means = SinkMeans(
            self._settings,
            self._windows.state,
            StandingPrices(self._rules, self._options.rule).of,
            retry=lambda call: call(),
            report=lambda note, kept: None,
        )
        is_bars = self._product.sink is BarSink
        self._sink: ProductSink[Any] = (
            BarSink(means, self.published) if is_bars else self._product.sink(means)
        )
        self._sink.publisher.set_result(self.published)

    def run(self, clock_ms: int) -> None:
        rule, most = self._options.rule, self._options.log.max_windows
        while True:
            end_ms = next_end(self._cut.end_ms, clock_ms, rule.batch_ms, most)
            if end_ms > clock_ms:
                return
            end = advance(self._cut, end_ms, self._log.tail(end_ms))
            part = CutRange(self._cut, end, end.partitions, self.since_ms)
            chunks = self._log.read(between(self._cut, end, end.partitions))
            batches = partials_of(chunks, self._options, part, self._rules)
            rows = self._windows.add(
                pa.Table.from_batches(batches), end_ms - rule.close_after_ms
            )
            self._sink.take(rows, self._batch_id)
            self._cut, self._batch_id = end, self._batch_id + 1


class _Published:
    """What one product has published; of bars what can be asked for, too."""

    def __init__(self, settings: AnalyticsSettings) -> None:
        self._settings = settings
        self.messages: list[bytes] = []
        self.notes: list[BatchNote] = []
        self.bars: dict[Place, Bar] = {}
        self.days: dict[str, DayBar] = {}

    def publish(
        self,
        changes: BatchChanges,
        note: BatchNote,
        batch_id: int,
        clock_ms: int,
        *,
        takes_up: bool = False,
    ) -> bool:
        place = b'"epoch":"driver","sequence":%d' % (len(self.messages) + 1)
        message = b"{" + place + changes.rest
        self.messages.append(message)
        self.notes.append(note)
        if changes.settings:
            update = BarsUpdate.decode(message)
            self.bars |= {(bar.isin, bar.start_ms): bar for bar in update.bars}
            self.days |= {isin: DayBar.decode(isin, d) for isin, d in update.days}
        return True

    def board(self) -> BarBoard:
        return BarBoard(
            SessionCalendars.create(*self._settings.calendars()),
            {place: bar for place, bar in self.bars.items() if not bar.closed},
            {isin: self.bars[isin, start] for isin, start in sorted(self.bars)},
            dict(self.days),
        )

    def look_up(self, places: Sequence[Place]) -> Mapping[Place, Bar]:
        return {place: self.bars[place] for place in places if place in self.bars}

    def within(self, days: Mapping[str, Bar]) -> Mapping[str, Sequence[Bar]]:
        return {
            isin: [
                bar
                for (other, start_ms), bar in self.bars.items()
                if other == isin and day.start_ms <= start_ms < day.end_ms
            ]
            for isin, day in days.items()
        }
