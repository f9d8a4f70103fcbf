"""Windows of trades by their own times, by the rules that recompute a log's. Pure."""

from collections.abc import Iterator

from throttle.audit.compare import PublishedVersions
from throttle.audit.recompute import WindowRule, recompute
from throttle.audit.standing_again import NOTHING_TAKEN, StandingLog
from throttle.backtest.timed_entries import AHEAD_MS, TimedEntries
from throttle.contract.snapshot import Row, WindowSnapshot

EPOCH = "file"
"""The epoch of windows that nobody has published."""


def windows_of(log: TimedEntries, window_ms: int) -> Iterator[WindowSnapshot]:
    """Yield the windows in which something was traded or taken back, oldest first.

    Each as a live job would have published it at its end, had the trades come at their
    own times; without the days so far.
    """
    rule = WindowRule(window_ms, max_ahead_ms=AHEAD_MS)
    batches = list(log.batches(window_ms))
    shown, standing = PublishedVersions(), StandingLog(log, rule, batches)
    for batch in batches:
        start_ms, end_ms = batch.start.end_ms, batch.end.end_ms
        after, upto = batch.start.position(0), batch.end.position(0)
        made = recompute(log.between({0: (after, upto)}), start_ms, end_ms, rule)
        computed = made.windows.get(end_ms, {})
        taken = NOTHING_TAKEN
        if made.taking_back:
            taken = standing.taken_by(batch, made.taking_back, computed)
        rows: list[Row] = []
        for isin in sorted(computed.keys() | taken.rows.keys()):
            again = taken.rows.get(isin)
            row = computed[isin].row if again is None else again.row
            due, _ = shown.due(row, () if again is None else again.gone)
            if due is not None:
                rows.append(due)
        shown.learn(rows)
        published_us = end_ms * 1_000
        yield WindowSnapshot(EPOCH, batch.offset, end_ms, 1, published_us, tuple(rows))
