"""From the rows of a batch to bars and what was read. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.bars import Bar
from throttle.contract.tally import BatchNote, join_notes

_NAMES = ("isin", "start_ms", "end_ms", "open", "high", "low", "close")
_SUMS = ("volume", "value", "trades", "late", "unfit")


def split(rows: pa.Table) -> tuple[pa.Table, BatchNote | None]:
    """Return a batch without its notes, and what it has read; None if nothing.

    It needs the column ``note``; the others stay as they are. Raises ValueError if
    notes do not fit together.
    """
    is_note = pc.is_valid(rows["note"])
    notes = [
        BatchNote.decode(text) for text in rows["note"].filter(is_note).to_pylist()
    ]
    others = rows.filter(pc.invert(is_note))
    return others, join_notes(notes) if notes else None


def bars_of(rows: pa.Table) -> Iterator[Bar]:
    """Yield the bars of rows that are no notes.

    It needs the columns that the windows of ``tumbling_bars.py`` return. Bars are
    not said to be closed: that is by the clock of the note.
    """
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
