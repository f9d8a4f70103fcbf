"""From the rows of a batch to bars and what was read. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.bars import Bar
from throttle.contract.tally import BatchNote, join_notes
from throttle.window.row_schema import records

_NAMES = (
    *("isin", "start_ms", "end_ms", "open", "high", "low", "close"),
    *("volume", "value", "trades", "late", "unfit"),
)


def split(rows: pa.Table) -> tuple[pa.Table, BatchNote | None]:
    """Return a batch without its rows with a ``note``, and what it read, or None.

    Raises ValueError if notes do not fit together.
    """
    is_note = pc.is_valid(rows["note"])
    notes = [
        BatchNote.decode(text) for text in rows["note"].filter(is_note).to_pylist()
    ]
    others = rows.filter(pc.invert(is_note))
    return others, join_notes(notes) if notes else None


def bars_of(rows: pa.Table) -> Iterator[Bar]:
    """Yield the bars of rows (``tumbling_bars.selected``) that are no notes.

    They are not said to be closed: that is by the clock of the note.
    """
    for isin, start_ms, end_ms, *amounts, trades, late, unfit in records(rows, _NAMES):
        opened, high, low, closed, *sums = amounts
        volume, value = (None, None) if unfit else sums
        prices = opened, high, low, closed
        yield Bar(isin, start_ms, end_ms, *prices, volume, value, trades, False, late)


def shown_bars(rows: pa.Table, settings: Mapping[str, Any]) -> Sequence[Bar]:
    """Return the bars of a state (``bars_of``), the oldest first."""
    return sorted(bars_of(rows), key=lambda bar: (bar.start_ms, bar.isin))
