"""Bursts: session windows, told when they have ended."""

from throttle.analytics.bursts.burst_partials import BurstPartials
from throttle.analytics.bursts.burst_sink import BurstSink
from throttle.analytics.bursts.session_windows import open_bursts, session_bursts
from throttle.analytics.product import Product
from throttle.analytics.state import bars_in_state
from throttle.contract.bars import CLOSE_AFTER_MS

BURSTS = Product(
    name="bursts",
    form=2,
    state_settings=("burst_gap_ms",),
    rule=lambda settings: BurstPartials(
        settings.analytics_batch_ms, CLOSE_AFTER_MS, settings.burst_gap_ms
    ),
    kept_ms=lambda settings: CLOSE_AFTER_MS,
    windows=lambda rows, settings, kept_ms: session_bursts(
        rows, settings.burst_gap_ms, settings.burst_trades, kept_ms
    ),
    mode="append",
    sink=BurstSink,
    state=bars_in_state,
    shown=open_bursts,
    ends_in_batches_without_data=True,
)
