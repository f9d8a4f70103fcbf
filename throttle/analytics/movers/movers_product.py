"""Movers: hopping windows, each the sum of its panes."""

from throttle.analytics.batch_bars import shown_bars
from throttle.analytics.movers.movers_sink import MoversSink
from throttle.analytics.movers.pane_partials import PanePartials
from throttle.analytics.product import Product
from throttle.analytics.state import bars_in_state
from throttle.analytics.tumbling_bars import tumbling_bars
from throttle.contract.bars import CLOSE_AFTER_MS

MOVERS = Product(
    name="movers",
    form=3,
    state_settings=("movers_span_s", "movers_every_s"),
    rule=lambda settings: PanePartials(
        settings.movers_every_s * 1_000,
        CLOSE_AFTER_MS,
        settings.movers_span_s * 1_000,
    ),
    # A pane is needed for as long as a span to come holds it.
    kept_ms=lambda settings: settings.movers_span_s * 1_000,
    windows=lambda rows, settings, kept_ms: tumbling_bars(
        rows, settings.movers_every_s * 1_000, kept_ms
    ),
    mode="update",
    sink=MoversSink,
    state=bars_in_state,
    shown=shown_bars,
)
