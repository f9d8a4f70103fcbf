"""Reads the bars of an archive's files: an instrument's, and how many there are.

Of a bar that is there several times the newest counts.
"""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from archive.contract.archive_gap import ArchiveGap, find_gaps, gaps_within
from archive.contract.segment import Segment, span_of
from archive.parquet.bar_table import (
    BAR_ORDER,
    BARS,
    EDITION,
    KEY,
    PRICES,
    SUMS,
    newest_bars,
)
from archive.parquet.changing_files import ChangingFiles
from archive.parquet.checked_file import CheckedFile
from archive.parquet.segment_files import BARS_FILE, BarFiles
from archive.parquet.segment_folder import (
    all_segments,
    bars_root,
    days_in,
    segments_in,
)
from throttle.contract.bars import Bar, newer

MOST_DAYS = 370
"""This many days one question looks at, at most: a year and some."""

_COUNTED = [*KEY, *EDITION]


class BarReader:
    """The bars of the archive in a folder, of which there may be none.

    Methods raise OSError. Damaged files are left out, and among the ``gaps`` from then
    on.
    """

    def __init__(self, root: Path, files: type[ChangingFiles] = ChangingFiles) -> None:
        self._root = bars_root(root)
        self._files = files(self._root, BARS)

    def segments(self) -> list[Segment]:
        """Return every segment that can be read, in the order of publication."""
        damaged = {path.parent for path in self._files.damage()}
        return [s for s, path in all_segments(self._root) if path not in damaged]

    def gaps(self, first_ms: int, last_ms: int) -> list[ArchiveGap]:
        """Return the gaps between batches of bars that end within these bounds."""
        damaged = self._files.damaged_segments()
        gaps = find_gaps(self.segments(), "bars", damaged)
        return gaps_within(gaps, first_ms, last_ms)

    def check(self) -> list[str]:
        """Look at every segment; return what is wrong, and what was set aside."""
        return self._files.check(BarFiles())

    def damage(self) -> list[str]:
        """Return what is wrong with each file that was found damaged."""
        return [*self._files.damage().values()]

    def lines(self) -> dict[date, int]:
        """Return how many lines are stored of each day, by the files' footers."""

        def read() -> dict[date, int]:
            lines = dict[date, int]()
            for day, folder in days_in(self._root).items():
                lines[day] = 0
                for _, path in segments_in(folder):
                    with (
                        self._files.skipping_damage(path / BARS_FILE),
                        CheckedFile(path / BARS_FILE, BARS) as file,
                    ):
                        lines[day] += file.footer.num_rows
            return lines

        return self._files.steadily(read)

    def newest(
        self, isin: str, width_ms: int, first_ms: int, last_ms: int, limit: int
    ) -> list[Bar]:
        """Return an instrument's newest ``limit`` bars of a width, oldest first.

        ``first_ms`` and ``last_ms`` bound their starts, both included. ``MOST_DAYS``
        days that have bars are looked at, the newest.
        """

        def read() -> list[Bar]:
            bars: dict[int, Bar] = {}
            for placed in self._days(first_ms, last_ms):
                for _, path in placed:
                    with self._files.skipping_damage(path / BARS_FILE):
                        for bar in self._of_instrument(
                            path / BARS_FILE, isin, width_ms
                        ):
                            if first_ms <= bar.start_ms <= last_ms:
                                bars[bar.start_ms] = newer(bars.get(bar.start_ms), bar)
                # Days do not overlap, and each is read as a whole.
                if len(bars) >= limit:
                    break
            return [bars[start] for start in sorted(bars)[-limit:]]

        return self._files.steadily(read)

    def table(self, first_ms: int, last_ms: int) -> pa.Table:
        """Return the columns of ``KEY`` and ``EDITION`` of bars, each once, the newest.

        Of those that end within these bounds; ``start`` is milliseconds since 1970.
        """

        def read() -> pa.Table:
            tables = []
            for placed in self._days(first_ms, last_ms, most=None):
                for _, path in placed:
                    with (
                        self._files.skipping_damage(path / BARS_FILE),
                        CheckedFile(path / BARS_FILE, BARS) as file,
                    ):
                        tables.append(file.read(_COUNTED))
            if not tables:
                return pa.schema([BARS.field(name) for name in _COUNTED]).empty_table()
            found = pa.concat_tables(tables)
            start = pc.cast(found["start"], pa.int64())
            end = pc.add(start, pc.cast(found["width_ms"], pa.int64()))
            found = found.set_column(1, "start", start).filter(
                pc.and_(pc.greater_equal(end, first_ms), pc.less_equal(end, last_ms))
            )
            return newest_bars(found.sort_by(BAR_ORDER))

        return self._files.steadily(read)

    def _days(
        self, first_ms: int, last_ms: int, most: int | None = MOST_DAYS
    ) -> Iterator[list[tuple[Segment, Path]]]:
        """Yield the segments of each day that may have such bars, newest day first.

        Of a bar that ends within the bounds, or begins there.
        """
        newest_first = sorted(days_in(self._root).items(), reverse=True)
        within = [
            (day, folder)
            for day, folder in newest_first
            if span_of(day)[0] <= last_ms + 1 and span_of(day)[1] >= first_ms
        ]
        for _, folder in within[:most]:
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
