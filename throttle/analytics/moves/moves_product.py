"""Moves: sliding windows, one for each trade, over trades that Spark's state keeps."""

from throttle.analytics.moves.held_trades import held_trades
from throttle.analytics.moves.kept_trades import kept_trades, trades_in_state
from throttle.analytics.moves.moves_sink import MovesSink
from throttle.analytics.moves.single_trades import SingleTrades
from throttle.analytics.product import Product
from throttle.contract.bars import CLOSE_AFTER_MS

MOVES = Product(
    name="moves",
    form=1,
    state_settings=("move_span_ms", "analytics_batch_ms"),
    rule=lambda settings: SingleTrades(settings.analytics_batch_ms, CLOSE_AFTER_MS),
    # Two spans before what is judged next; the watermark may be as far ahead of that
    # as trades are waited for.
    kept_ms=lambda settings: 2 * settings.move_span_ms + CLOSE_AFTER_MS,
    windows=lambda rows, settings, kept_ms: kept_trades(rows, kept_ms),
    mode="append",
    sink=MovesSink,
    state=trades_in_state,
    shown=held_trades,
)
