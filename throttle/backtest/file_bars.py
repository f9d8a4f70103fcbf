"""Bars of trades by their own times: each closed, without what was taken back. Pure."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from ingest.trade import Trade
from ingest.tradelog.contract import Chunk
from throttle.analytics.bars.amended_bars import BarPartials
from throttle.analytics.batch_bars import bars_of
from throttle.analytics.partials.partial_bars import combine, trades_of
from throttle.audit.recompute import Entry, WindowRule
from throttle.audit.standing_again import isins_taken_back
from throttle.backtest.file_windows import AHEAD_MS, TimedEntries
from throttle.contract.bars import CLOSE_AFTER_MS, Bar
from throttle.standing.settled import LoggedTrade, settle
from throttle.testing.windows_by_hand import TumblingByHand
from throttle.window.checked_rows import trade_rows

_AT_ONCE = 40_000
_NEVER_MS = 2**50


def bars_of_log(log: TimedEntries, bars_ms: int) -> tuple[list[Bar], int]:
    """Return all bars, by their start and instrument, as they are in the end.

    Their revision is 0: nobody was told another one before. With them comes the number
    of trades whose price or size no bar can hold (``partial_bars.OUT_OF_RANGE``).
    """
    rule = BarPartials(bars_ms, CLOSE_AFTER_MS, bars_ms, _NEVER_MS)
    gone = _taken_back(log)
    standing = [entry for entry in log.entries if entry.position not in gone]
    out_of_range: Counter[int] = Counter()
    tables: list[pa.Table] = []
    for begin in range(0, len(standing), _AT_ONCE):
        chunk = _chunk(standing[begin : begin + _AT_ONCE])
        rows = trade_rows(chunk, 0, 0, _NEVER_MS, AHEAD_MS, every_trade=True)
        trades, unfit = trades_of(rows)
        partials, _ = rule.partials(trades)
        tables = [combine([*tables, partials])]
        out_of_range += unfit
    if not tables:
        return [], 0
    shown = TumblingByHand(bars_ms).shown(tables[0])
    bars = (replace(bar, closed=True, revision=0) for bar in bars_of(shown))
    ordered = sorted(bars, key=lambda bar: (bar.start_ms, bar.isin))
    return ordered, out_of_range.total()


def _chunk(entries: Sequence[Entry]) -> Chunk:
    return Chunk(
        pa.array([entry.position for entry in entries], pa.int64()),
        pa.array([entry.append_ms for entry in entries], pa.int64()),
        pa.array([entry.payload for entry in entries], pa.binary()),
        entries[-1].position,
    )


def _taken_back(log: TimedEntries) -> set[int]:
    """Return the positions of trades that do not stand, and of what cancels them."""
    rule = WindowRule(1, max_ahead_ms=AHEAD_MS)
    isins = isins_taken_back(log.entries, rule)
    if not isins:
        return set()
    entries: defaultdict[str, list[LoggedTrade]] = defaultdict(list)
    gone: set[int] = set()
    for entry in log.entries:
        for one in rule.judge(entry):
            if isinstance(one, Trade) and one.isin in isins:
                place = entry.append_ms, entry.partition, entry.position
                entries[one.isin].append(LoggedTrade(*place, one))
                if not one.is_trade:
                    gone.add(entry.position)
    for of_one in entries.values():
        gone |= {one.trade.position for one in settle(of_one).taken_back}
    return gone
