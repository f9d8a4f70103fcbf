"""What REST reads beside the newest values: past windows, bars, days, the archive."""

from gateway.live_stream import LiveStream
from gateway.upstream.analytics_store import AnalyticsStore
from gateway.upstream.archived_windows import ArchivedWindows
from gateway.upstream.bar_store import BarStore
from gateway.upstream.history_filler import HistoryFiller
from gateway.upstream.instrument_history import InstrumentHistory
from gateway.upstream.window_log import WindowLog


class Stores:
    """Where the past is. ``filler`` keeps ``history`` up to date, and has to run."""

    def __init__(self, stream: LiveStream) -> None:
        settings, redis, hub = stream.settings, stream.redis, stream.hub
        self.archived = ArchivedWindows(settings.archive_dir, lambda: hub.instruments)
        self.bars = BarStore(redis, stream.analytics_keys, self.archived)
        self.analytics = AnalyticsStore(redis, stream.analytics_keys)
        self.window_log = WindowLog(redis, stream.keys, lambda: hub.instruments)
        self.history = InstrumentHistory(settings.history_bytes)
        self.filler = HistoryFiller(self.history, self.window_log)
        stream.feed.listeners.append(self.filler)
