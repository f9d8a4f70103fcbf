"""The stream that this process follows, its clients, and where the past is."""

from collections.abc import Coroutine
from secrets import token_hex
from typing import Any

from gateway.admission.bounds import Bounds
from gateway.admission.shared_figures import Seat
from gateway.admission.work import WorkBudget
from gateway.named_files import create_token_reader, read_topic
from gateway.settings import GatewaySettings
from gateway.stream.board import Board
from gateway.stream.counters import Counters, CounterTotals
from gateway.stream.hub import Hub
from gateway.upstream.analytics_store import AnalyticsStore
from gateway.upstream.archived_windows import ArchivedWindows
from gateway.upstream.bar_follower import BarFollower
from gateway.upstream.bar_store import BarStore
from gateway.upstream.history_filler import HistoryFiller
from gateway.upstream.instrument_follower import InstrumentFollower
from gateway.upstream.instrument_history import InstrumentHistory
from gateway.upstream.redis_client import create_no_redis, create_redis
from gateway.upstream.relay.kept_windows import KeptWindows
from gateway.upstream.relay.relay_source import RecentWindows, RelaySource
from gateway.upstream.status_follower import StatusFollower
from gateway.upstream.stream_follower import StreamFollower
from gateway.upstream.stream_source import RedisSource, StreamSource
from gateway.upstream.trade_follower import TradeFollower
from gateway.upstream.trade_tail import KafkaTradeTail, RedisTradeTail, TradeTail
from gateway.upstream.window_log import WindowLog
from ingest.instrument_table.known_instruments import Instruments
from ingest.instrument_table.open_instrument_store import open_instrument_store
from ingest.redis_keys import AnalyticsKeys, Keys, StatusKeys


class LiveStream:
    """Newest values, their followers, and the hub of clients.

    Raises ValueError if a file named in the settings cannot be read.
    """

    def __init__(self, settings: GatewaySettings, seat: Seat, bounds: Bounds) -> None:
        self.settings = settings
        self.board, self.counters = Board(), Counters()
        self.totals = CounterTotals(self.counters, seat.counters, seat.worker)
        self.hub = Hub(
            self.board,
            settings,
            self.counters,
            create_token_reader(settings),
            seat.tally(seat.streams),
            WorkBudget(settings.rows_per_second, seat.work_moments, seat.key),
            bounds,
        )
        self.own_id = token_hex(4)
        """Names this process in the paths of gateways that follow it."""
        self.keys = Keys(settings.namespace)
        self.analytics_keys = AnalyticsKeys(settings.namespace)
        self.kept = KeptWindows()
        self.relay: RelaySource | None = None
        if settings.not_here is None:
            self.redis = create_redis(settings.redis_url)
            source: StreamSource = RedisSource(self.redis, self.keys, self.hub)
        else:
            self.redis = create_no_redis(settings.not_here)
            self.relay = source = RelaySource(self.hub, self.own_id)
        self.feed = StreamFollower(source, self.board, self.hub, self.counters)
        self.feed.listeners.append(self.kept)
        self._instrument_store = open_instrument_store(settings)
        self._instruments = InstrumentFollower(
            self._instrument_store, self._relist, self.counters, settings.served_market
        )
        self._bars = BarFollower(
            self.redis, self.analytics_keys, self.hub.bar_desk, self.counters
        )
        self._statuses = StatusFollower(
            *(self.redis, StatusKeys(settings.namespace), self.hub.status_desk),
            self.counters,
        )
        tail: TradeTail = RedisTradeTail(self.redis, self.keys.namespace)
        if (topic := read_topic(settings)) is not None:
            tail = KafkaTradeTail(topic)
        desk = self.hub.trade_desk
        window_ms, served = lambda: self.board.window_ms, self.hub.served
        self._trades = TradeFollower(tail, desk, window_ms, served)

    def work(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        """Return what has to run, by name; the feed ends by itself, once stopped."""
        work = [("feed", self._follow()), ("hub", self.hub.run())]
        if self.relay is not None:
            return work
        return [
            *work,
            ("instruments", self._instruments.run()),
            ("bars", self._bars.run()),
            ("trades", self._trades.run()),
            ("statuses", self._statuses.run()),
        ]

    async def first_look(self) -> None:
        """Wait until what is stored was looked at once, whatever came of it."""
        await self.feed.first_look()
        if self.relay is None:
            await self._instruments.first_look()

    async def close(self) -> None:
        """Let go of Redis and of the instrument table, when nothing runs any more."""
        await self.redis.aclose()
        self._instrument_store.close()
        self.hub.close_log.tell_rest()

    async def _follow(self) -> None:
        if self.settings.served_market is not None:
            # The table says what of the stored state is served.
            await self._instruments.first_look()
        await self.feed.run()

    def _relist(self, instruments: Instruments) -> None:
        before = [instrument.isin for instrument in self.hub.instruments]
        self.hub.change_instruments(instruments)
        is_part = self.settings.served_market is not None
        if is_part and before != [instrument.isin for instrument in instruments]:
            self.feed.relist()


class Stores:
    """What REST reads beside the newest values; ``filler`` has to run, to fill it."""

    def __init__(self, stream: LiveStream) -> None:
        settings, redis, hub = stream.settings, stream.redis, stream.hub
        self.archived = ArchivedWindows(settings.archive_dir, lambda: hub.instruments)
        self.bars = BarStore(redis, stream.analytics_keys, self.archived)
        self.analytics = AnalyticsStore(redis, stream.analytics_keys)
        self.window_log = WindowLog(redis, stream.keys, lambda: hub.instruments)
        self.history = InstrumentHistory(settings.history_bytes)
        relay = stream.relay
        past = self.window_log if relay is None else RecentWindows(relay)
        self.filler = HistoryFiller(self.history, past)
        stream.feed.listeners.append(self.filler)
