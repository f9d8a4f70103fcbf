"""Reads the bars of an instrument from an archive's files.

Of a bar that is there several times the newest counts.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from archive.contract.segment import Segment, span_of
from archive.parquet.bar_table import BARS, PRICES, SUMS
from archive.parquet.changing_files import ChangingFiles, SegmentReader, steadily
from archive.parquet.segment_files import BARS_FILE, BarFiles
from archive.parquet.segment_folder import bars_root, days_in, segments_in
from throttle.contract.bars import Bar, newer

MOST_DAYS = 370
"""This many days one question looks at, at most: a year and some."""


class BarReader(SegmentReader):
    """The bars of the archive in a folder."""

    def __init__(self, root: Path, files: type[ChangingFiles] = ChangingFiles) -> None:
        super().__init__(bars_root(root), BarFiles(), BARS, files)

    @steadily
    def newest(
        self, isin: str, width_ms: int, first_ms: int, last_ms: int, limit: int
    ) -> list[Bar]:
        """Return an instrument's newest ``limit`` bars of a width, oldest first.

        ``first_ms`` and ``last_ms`` bound their starts, both included. ``MOST_DAYS``
        days that have bars are looked at, the newest.
        """
        bars: dict[int, Bar] = {}
        for placed in self._days(first_ms, last_ms):
            for _, path in placed:
                with self._files.skipping_damage(path / BARS_FILE):
                    for bar in self._of_instrument(path / BARS_FILE, isin, width_ms):
                        if first_ms <= bar.start_ms <= last_ms:
                            bars[bar.start_ms] = newer(bars.get(bar.start_ms), bar)
            # Days do not overlap, and each is read as a whole.
            if len(bars) >= limit:
                break
        return [bars[start] for start in sorted(bars)[-limit:]]

    def _days(
        self, first_ms: int, last_ms: int
    ) -> Iterator[list[tuple[Segment, Path]]]:
        """Yield the segments of each day that may have bars that begin then.

        The newest day first.
        """
        within = [
            folder
            for day, folder in sorted(days_in(self._root).items(), reverse=True)
            if span_of(day)[0] <= last_ms + 1 and span_of(day)[1] >= first_ms
        ]
        for folder in within[:MOST_DAYS]:
            yield segments_in(folder)

    def _of_instrument(self, path: Path, isin: str, width_ms: int) -> Iterator[Bar]:
        table = self._files.rows_of_instrument(path, isin)
        if table is not None:
            yield from _bars_of(table.filter(pc.equal(table["width_ms"], width_ms)))


def _bars_of(table: pa.Table) -> Iterator[Bar]:
    starts = pc.cast(table["start"], pa.int64()).to_pylist()
    names = ("isin", "width_ms", *PRICES, *SUMS, "trades", "revision")
    columns = (table[name].to_pylist() for name in names)
    for start_ms, isin, width_ms, *amounts, trades, revision in zip(
        starts, *columns, strict=True
    ):
        opened, high, low, close, volume, value = amounts
        yield Bar(
            *(isin, start_ms, start_ms + width_ms, opened, high, low, close),
            *(volume, value, trades, True, revision),
        )
