"""Bars: tumbling windows of the exchange's clock, amended by late trades."""

from throttle.analytics.bars.bar_sink import BarSink
from throttle.analytics.bars.late_trades import BarPartials
from throttle.analytics.batch_bars import shown_bars
from throttle.analytics.product import Product
from throttle.analytics.state import bars_in_state
from throttle.analytics.tumbling_bars import tumbling_bars
from throttle.contract.bars import CLOSE_AFTER_MS
from throttle.settings import AnalyticsSettings


def kept_ms(settings: AnalyticsSettings) -> int:
    """Return how long after its end a bar stays in the state.

    As long as a trade may amend it; trades may be stamped ahead of the log's clock, and
    with them the watermark.
    """
    return settings.lateness_s * 1_000 + CLOSE_AFTER_MS + settings.max_ahead_ms


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
