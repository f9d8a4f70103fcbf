"""From the rows that Spark's state gives out to bars and what was read. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.bars import Bar
from throttle.contract.tally import BatchNote, join_notes

_NAMES = ("isin", "start_ms", "end_ms", "open", "high", "low", "close")
_SUMS = ("volume", "value", "trades", "late", "unfit")


def split(rows: pa.Table) -> tuple[list[Bar], BatchNote | None]:
    """Return the bars of a batch, and what it has read; None if nothing.

    It needs the columns that ``window_transforms.py`` returns. Bars are not said to be
    closed: that is by the clock of the note. Raises ValueError if notes do not fit
    together.
    """
    is_note = pc.is_valid(rows["note"])
    notes = [
        BatchNote.decode(text) for text in rows["note"].filter(is_note).to_pylist()
    ]
    bars = list(_bars(rows.filter(pc.invert(is_note))))
    return bars, join_notes(notes) if notes else None


def _bars(rows: pa.Table) -> Iterator[Bar]:
    columns = (rows[name].to_pylist() for name in (*_NAMES, *_SUMS))
    for isin, start_ms, end_ms, *prices, volume, value, trades, late, unfit in zip(
        *columns, strict=True
    ):
        sums = (None, None) if unfit else (volume, value)
        yield _bar(isin, start_ms, end_ms, (*prices, *sums), trades, late)


def _bar(
    isin: str,
    start_ms: int,
    end_ms: int,
    amounts: Sequence[Any],
    trades: int,
    late: int,
) -> Bar:
    opened, high, low, closed, volume, value = amounts
    prices = opened, high, low, closed
    return Bar(isin, start_ms, end_ms, *prices, volume, value, trades, False, late)
