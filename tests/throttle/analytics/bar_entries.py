"""Entries of a log as property tests make them, and their rows."""

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from ingest.trade import Trade
from ingest.tradelog.contract import Chunk
from tests.gateway.samples import make_isins
from tests.throttle.analytics.bar_oracle import Entry, Rules
from throttle.window.checked_rows import trade_rows

START_MS = 1_773_964_800_000
ISINS = make_isins(3)
RULES = Rules(lateness_ms=120_000)
UPDATES = st.sampled_from(
    [None, None, "last", "range", "volume", "range,volume", "volume,last", "none"]
)
AMOUNTS = st.decimals(min_value="0.000001", max_value=10**8, places=6).map(
    lambda amount: f"{amount:f}"
)
ENTRIES = st.lists(
    st.builds(
        lambda isin, at_ms, delay_ms, seq, price, size, updates: Entry(
            START_MS + at_ms + delay_ms,
            ISINS.index(isin) % 2,
            0,
            isin,
            (START_MS + at_ms) * 1_000 + seq,
            seq,
            price,
            size,
            updates,
        ),
        st.sampled_from(ISINS),
        st.integers(0, 200_000),
        st.integers(-1_000, 300_000),
        st.integers(0, 5),
        AMOUNTS,
        AMOUNTS,
        UPDATES,
    ),
    min_size=1,
    max_size=40,
).map(lambda found: [e._replace(position=n) for n, e in enumerate(found)])


def _taking(entry: Entry, what: str) -> Entry:
    """Return an entry that takes back what has its number, or that is a trade."""
    if what == "cancels":
        return entry._replace(updates=None, cancels=entry.seq)
    return entry._replace(corrects=entry.seq) if what == "corrects" else entry


TAKING_ENTRIES = st.lists(
    st.builds(
        _taking,
        ENTRIES.map(lambda some: some[0]),
        st.sampled_from(["cancels", "corrects", "trade", "trade"]),
    ),
    min_size=1,
    max_size=40,
)
"""Of trades with few numbers, a quarter is cancelled and a quarter corrected."""


def trade_of(entry: Entry) -> Trade:
    """Return the trade of an entry, or what takes one back."""
    if entry.cancels is not None:
        fields = {"isin": entry.isin, "time": entry.time_us}
        return Trade.from_fields({**fields, "cancels": entry.cancels})
    extra: dict[str, Any] = {}
    if entry.updates is not None:
        extra["updates"] = entry.updates
    if entry.corrects is not None:
        extra["corrects"] = entry.corrects
    fields = entry.isin, entry.time_us, entry.seq, entry.price, entry.size
    return Trade(*fields, extra)


def rows_of(entries: list[Entry]) -> pa.Table:
    """Return the checked rows of entries, as the source has them."""
    trades = [trade_of(entry) for entry in entries]
    chunk = Chunk(
        pa.array([entry.position for entry in entries], pa.int64()),
        pa.array([entry.append_ms for entry in entries], pa.int64()),
        pa.array([one.to_wire() for one in trades], pa.binary()),
        len(entries),
    )
    partitions = pa.array([entry.partition for entry in entries], pa.int32())
    return trade_rows(chunk, partitions, 0, 2**50, 5_000, every_trade=True)
