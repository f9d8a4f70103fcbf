"""Test data: a log of trades, its batches, and what they publish."""

from collections.abc import Iterable, Sequence

from ingest.trade import Trade
from throttle.audit.recompute import Entry
from throttle.contract.cut import Cut
from throttle.contract.ledger import BatchEntry, Books
from throttle.contract.snapshot import Row, WindowSnapshot
from throttle.contract.trade_order import encode_version

W = 2_000
FIRST_MS = 1_773_964_800_000
"""The start of the first window."""

A, B, C = "KR7005930003", "KR7000660001", "KR7035420009"


def make_trade(
    isin: str, seq: int, price: str = "10", after_us: int = 0, **extra: str
) -> Trade:
    """Make a trade; a greater ``seq`` makes it newer."""
    extra = {"side": "B", **extra}
    return Trade(isin, FIRST_MS * 1_000 + after_us, seq, price, "5", extra)


def make_entry(
    trade: Trade | bytes, after_ms: int, number: int = 0, partition: int = 0
) -> Entry:
    """Make a log entry, appended so long after ``FIRST_MS``."""
    payload = trade if isinstance(trade, bytes) else trade.to_wire()
    append_ms = FIRST_MS + after_ms
    return Entry(partition, append_ms << 21 | number, append_ms, payload)


def make_row(entry: Entry, trades: int = 1) -> Row:
    """Make the row that an entry is published as."""
    trade = Trade.from_wire(entry.payload)
    version = encode_version(trade.time_us, trade.seq, entry.position)
    return Row(trade.isin, version, b"%d" % trades, trade.to_row())


def make_snapshot(offset: int, *rows: Row, end: int | None = None) -> WindowSnapshot:
    """Make a published window; the first one has offset 1."""
    window = FIRST_MS + offset * W if end is None else end
    return WindowSnapshot("k3x9", offset, window, 1, window * 1_000 + 50_000, rows)


def make_cut(
    windows: int, positions: Sequence[int], counts: Sequence[int | None] | None = None
) -> Cut:
    """Make the cut after so many windows."""
    every = (None,) * len(positions) if counts is None else tuple(counts)
    return Cut(FIRST_MS + windows * W, tuple(positions), every)


def make_batch(
    start: Cut, end: Cut, books: Iterable[Books], offset: int | None = None
) -> BatchEntry:
    """Make the record of a batch; its last offset follows from its end."""
    windows = (end.end_ms - start.end_ms) // W
    last = (end.end_ms - FIRST_MS) // W if offset is None else offset
    return BatchEntry(last, last, 1, start, end, windows, tuple(books))
