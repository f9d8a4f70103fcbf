"""Bars as an Arrow table: closed or amended, as the analytics job logged them. Pure.

Prices and sums are decimals, which add up exactly; they have no zeros at their end
that anybody published, so they need no text beside them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from archive.contract.logged import LoggedBars
from archive.contract.segment import Product
from archive.parquet.tables import DECIMAL, MS, US, BadWindow

PRICES = ("open", "high", "low", "close")
SUMS = ("volume", "value")

BARS = pa.schema(
    [
        ("isin", pa.string()),
        ("start", MS),
        ("width_ms", pa.int32()),
        *((name, DECIMAL) for name in (*PRICES, *SUMS)),
        ("trades", pa.int64()),
        ("revision", pa.int64()),
        ("epoch", pa.string()),
        ("number", pa.int64()),
    ]
)
"""One line a bar and entry of the bar log that has it. ``volume`` and ``value`` are
null if the sum did not fit, prices where no trade counts for them. Of several lines of
``KEY`` the one with the greatest ``EDITION`` is the bar (``bars.newer``).
"""

KEY = ("isin", "start", "width_ms")

EDITION = ("revision", "trades")
"""The columns by which one state of a bar is newer than another (``Bar.edition``)."""

BAR_ORDER = [(name, "ascending") for name in (*KEY, *EDITION)]

BATCHES = pa.schema(
    [
        ("epoch", pa.string()),
        ("number", pa.int64()),
        ("published", US),
        ("first_end", MS),
        ("last_end", MS),
        ("bars", pa.int32()),
    ]
)
"""One line an entry of the bar log."""

_PRICE = r"[0-9]{1,18}(?:\.[0-9]{1,18})?|-"
_SUM = r"[0-9]{1,20}(?:\.[0-9]{1,18})?|-"
_LINE = (
    r"^(?P<isin>[0-9A-Z]{12}(?:@[0-9A-Za-z_-]+)?) "
    r"(?P<start>[0-9]{1,16}) (?P<end>[0-9]{1,16}) "
    + " ".join(f"(?P<{name}>{_PRICE})" for name in PRICES)
    + " "
    + " ".join(f"(?P<{name}>{_SUM})" for name in SUMS)
    + r" (?P<trades>[0-9]{1,18}) 1 (?P<revision>[0-9]{1,18})$"
)


@dataclass(frozen=True, slots=True)
class StoredBars:
    """Bars (``BARS``), and the entries of the bar log they came from (``BATCHES``)."""

    product: ClassVar[Product] = "bars"

    bars: pa.Table
    batches: pa.Table


def build_bars(entries: Sequence[LoggedBars]) -> StoredBars:
    """Return the bars of entries, in the order of ``BAR_ORDER``. Raises BadWindow."""
    lines = [line for entry in entries for line in entry.lines]
    counts = [len(entry.lines) for entry in entries]
    places = pa.array([i for i, n in enumerate(counts) for _ in range(n)], pa.int64())
    text = pa.array(lines, pa.string())
    parsed = pc.extract_regex(text, _LINE)
    if parsed.null_count:
        at = pc.is_null(parsed).index(pa.scalar(True)).as_py()
        raise BadWindow(
            f"entry {entries[places[at].as_py()].offset} of the bar log: a line is no "
            f"closed bar of an analytics job: {text[at].as_py()[:120]!r}"
        )
    whole = {
        name: pc.cast(parsed.field(name), pa.int64())
        for name in ("start", "end", "trades", "revision")
    }
    batches = _batches(entries, counts)
    columns = {
        "isin": parsed.field("isin"),
        "start": pc.cast(whole["start"], MS),
        "width_ms": pc.cast(pc.subtract(whole["end"], whole["start"]), pa.int32()),
        **{name: _decimals(parsed.field(name)) for name in (*PRICES, *SUMS)},
        "trades": whole["trades"],
        "revision": whole["revision"],
        "epoch": batches["epoch"].take(places),
        "number": batches["number"].take(places),
    }
    bars = pa.table([columns[name] for name in BARS.names], schema=BARS)
    return StoredBars(bars.sort_by(BAR_ORDER), batches)


def newest_bars(bars: pa.Table) -> pa.Table:
    """Return each bar once, the newest, of bars in the order of ``BAR_ORDER``.

    It needs the columns of ``KEY``; the others stay as they are.
    """
    if bars.num_rows < 2:
        return bars
    columns = [bars[name].combine_chunks() for name in KEY]
    differs = [pc.not_equal(column[:-1], column[1:]) for column in columns]
    is_last = reduce(pc.or_, differs)
    return bars.filter(pa.concat_arrays([is_last, pa.array([True])]))


def _batches(entries: Sequence[LoggedBars], counts: Sequence[int]) -> pa.Table:
    values = {
        "epoch": [entry.epoch for entry in entries],
        "number": [entry.offset for entry in entries],
        "published": [entry.published_us for entry in entries],
        "first_end": [entry.first_ms for entry in entries],
        "last_end": [entry.last_ms for entry in entries],
        "bars": counts,
    }
    return pa.table(values, schema=BATCHES)


def _decimals(texts: pa.Array) -> pa.Array:
    none = pa.scalar(None, pa.string())
    return pc.cast(pc.if_else(pc.equal(texts, "-"), none, texts), DECIMAL)
