"""Reads an archive's files: what an issue did, and windows as they were published."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from archive.contract.archive_gap import ArchiveGap, find_gaps
from archive.contract.packed_window import unpack_window
from archive.contract.segment import Segment, span_of
from archive.parquet.changing_files import ATTEMPTS, ChangingFiles
from archive.parquet.segment_files import ROWS_FILE, WINDOWS_FILE
from archive.parquet.segment_folder import all_segments, days_in, segments_in
from throttle.contract.snapshot import WindowSnapshot

_NO_COUNTS = pa.schema(
    [
        ("epoch", pa.string()),
        ("offset", pa.int64()),
        ("partition", pa.int64()),
        ("rows", pa.int64()),
    ]
).empty_table()

_COLUMNS = [
    *("isin", "window", "epoch", "offset", "time", "seq"),
    *("price_text", "size_text", "trades"),
]


@dataclass(frozen=True, slots=True)
class ArchivedPoint:
    """An issue's latest trade of a window; ``price`` and ``size`` are decimal text."""

    window: int
    price: str
    size: str
    trades: int
    time_us: int
    seq: int

    def encode(self) -> bytes:
        """Encode for clients."""
        return (
            f'{{"window":{self.window},"price":{self.price},"size":{self.size},'
            f'"trades":{self.trades},"time":{self.time_us}}}'
        ).encode()


class ArchiveReader:
    """The archive in a folder, which need not be there yet. Methods raise OSError."""

    def __init__(self, root: Path, files: ChangingFiles | None = None) -> None:
        self._root = root
        self._files = files or ChangingFiles()

    def segments(self) -> list[Segment]:
        """Return every segment there is, in the order of publication."""
        return [segment for segment, _ in all_segments(self._root)]

    def gaps(self, first_ms: int, last_ms: int) -> list[ArchiveGap]:
        """Return the gaps between windows that end within these bounds."""
        return [
            gap
            for gap in find_gaps(self.segments())
            if gap.is_within(first_ms, last_ms)
        ]

    def points(
        self, isin: str, first_ms: int, last_ms: int, limit: int, *, newest: bool
    ) -> list[ArchivedPoint]:
        """Return up to ``limit`` windows in which an issue traded, oldest first.

        The ``newest`` ones within the bounds, or the oldest. What several jobs have
        published of one window is one point: the newer trade, and the sum of their
        trades.
        """

        def read() -> list[ArchivedPoint]:
            points: dict[int, ArchivedPoint] = {}
            epochs: dict[int, str] = {}
            for table in self._tables(isin, first_ms, last_ms, newest=newest):
                _add(points, epochs, table, is_older=newest)
                # Parts of one window may be in two segments: one more than asked.
                if len(points) > limit:
                    break
            windows = sorted(points)
            chosen = windows[-limit:] if newest else windows[:limit]
            return [points[window] for window in chosen]

        return self._files.steadily(read)

    def windows(
        self, first_ms: int, last_ms: int, *, newest_first: bool = False
    ) -> Iterator[WindowSnapshot]:
        """Yield the windows that end within these bounds, in the order of publication.

        A few are read at a time. Raises ValueError for what no throttle has written.
        """
        done: set[Segment] = set()
        for _ in range(ATTEMPTS):
            placed = self._placed(first_ms, last_ms)
            # Merged meanwhile: what of them was yielded already is not again.
            left = [p for p in placed if not any(_is_in(d, p[0]) for d in done)]
            try:
                for segment, path in sorted(left, reverse=newest_first):
                    skipped = [d for d in done if _is_in(segment, d)]
                    for window in self._read_windows(path, newest_first=newest_first):
                        is_done = any(
                            d.first <= window.offset <= d.last for d in skipped
                        )
                        if first_ms <= window.window <= last_ms and not is_done:
                            yield window
                    done.add(segment)
                return
            except FileNotFoundError:
                continue
        raise FileNotFoundError(f"archive_dir {self._root}: changes all the time")

    def window_ms(self, first_ms: int, last_ms: int) -> int | None:
        """Return how long the first window within these bounds is, None if none is."""

        def read() -> int | None:
            for _, path in self._placed(first_ms, last_ms):
                with pq.ParquetFile(path / WINDOWS_FILE) as file:
                    column = file.read_row_group(0, ["window_ms"])["window_ms"]
                return int(column[0].as_py())
            return None

        return self._files.steadily(read)

    def counts(self, first_ms: int, last_ms: int) -> pa.Table:
        """Return ``epoch``, ``offset``, ``window`` and ``rows`` of stored windows."""

        def read() -> pa.Table:
            names = ["epoch", "offset", "window", "rows"]
            return self._select(WINDOWS_FILE, names, first_ms, last_ms)

        return self._files.steadily(read)

    def row_counts(
        self, first_ms: int, last_ms: int, partition: Callable[[str], int]
    ) -> pa.Table:
        """Return ``epoch``, ``offset``, ``partition`` and ``rows`` of stored rows.

        A group of rows is in memory at a time.
        """

        def read() -> pa.Table:
            total = _NO_COUNTS
            for _, path in self._placed(first_ms, last_ms):
                with pq.ParquetFile(path / ROWS_FILE) as file:
                    for group in range(file.num_row_groups):
                        columns = ["epoch", "offset", "window", "isin"]
                        rows = _within(
                            file.read_row_group(group, columns), first_ms, last_ms
                        )
                        counts = _counted(_with_partition(rows, partition))
                        total = _counted(pa.concat_tables([total, counts]))
            return total

        return self._files.steadily(read)

    def _select(
        self, name: str, columns: list[str], first_ms: int, last_ms: int
    ) -> pa.Table:
        tables = []
        for _, path in self._placed(first_ms, last_ms):
            with pq.ParquetFile(path / name) as file:
                tables.append(_within(file.read(columns), first_ms, last_ms))
        empty = pa.table({column: pa.array([], pa.string()) for column in columns})
        return pa.concat_tables(tables) if tables else empty

    def _placed(self, first_ms: int, last_ms: int) -> list[tuple[Segment, Path]]:
        placed = []
        for day, folder in days_in(self._root).items():
            day_first, day_last = span_of(day)
            if day_first <= last_ms and day_last >= first_ms:
                placed += segments_in(folder)
        return [
            (segment, path)
            for segment, path in sorted(placed)
            if segment.first_ms <= last_ms and segment.last_ms >= first_ms
        ]

    def _tables(
        self, isin: str, first_ms: int, last_ms: int, *, newest: bool
    ) -> Iterator[pa.Table]:
        for _, path in sorted(self._placed(first_ms, last_ms), reverse=newest):
            table = self._files.rows_of_issue(path / ROWS_FILE, isin, _COLUMNS)
            if table is not None:
                yield _within(table, first_ms, last_ms)

    def _read_windows(
        self, path: Path, *, newest_first: bool
    ) -> Iterator[WindowSnapshot]:
        with pq.ParquetFile(path / WINDOWS_FILE) as file:
            groups = range(file.num_row_groups)
            for group in reversed(groups) if newest_first else groups:
                packed: Any = file.read_row_group(group, ["packed"])["packed"]
                texts = packed.to_pylist()
                for text in reversed(texts) if newest_first else texts:
                    yield WindowSnapshot.decode(unpack_window(text))


def _within(table: pa.Table, first_ms: int, last_ms: int) -> pa.Table:
    ends = pc.cast(table["window"], pa.int64())
    is_within = pc.and_(pc.greater_equal(ends, first_ms), pc.less_equal(ends, last_ms))
    return table.filter(is_within)


def _with_partition(rows: pa.Table, partition: Callable[[str], int]) -> pa.Table:
    """Return ``epoch``, ``offset``, ``partition`` and ``rows``, 1, of each row."""
    isins = rows["isin"].unique()
    partitions = pa.array([partition(i) for i in isins.to_pylist()], pa.int64())
    found = partitions.take(pc.index_in(rows["isin"], value_set=isins))
    ones = pa.array([1] * rows.num_rows, pa.int64())
    columns = [rows["epoch"], rows["offset"], found, ones]
    return pa.table(columns, schema=_NO_COUNTS.schema)


def _counted(rows: pa.Table) -> pa.Table:
    keys = ["epoch", "offset", "partition"]
    sums = rows.group_by(keys).aggregate([("rows", "sum")])
    return sums.rename_columns([*keys, "rows"]).cast(_NO_COUNTS.schema)


def _is_in(outer: Segment, inner: Segment) -> bool:
    is_same = outer.epoch == inner.epoch
    return is_same and outer.first <= inner.first and inner.last <= outer.last


def _add(
    points: dict[int, ArchivedPoint],
    epochs: dict[int, str],
    table: pa.Table,
    *,
    is_older: bool,
) -> None:
    """Add an issue's rows; ``is_older`` than those that are there already.

    Of one window the later epoch's row stays; of one epoch the newer trade, with the
    trades of both.
    """
    priced = table.filter(pc.is_valid(table["price_text"]))
    columns = (
        priced["epoch"].to_pylist(),
        pc.cast(priced["window"], pa.int64()).to_pylist(),
        priced["price_text"].to_pylist(),
        priced["size_text"].to_pylist(),
        priced["trades"].to_pylist(),
        pc.cast(priced["time"], pa.int64()).to_pylist(),
        priced["seq"].to_pylist(),
    )
    for epoch, *values in zip(*columns, strict=True):
        point = ArchivedPoint(*values)
        other = points.get(point.window)
        if other is not None and epochs[point.window] != epoch:
            # Redis had come back older than it was: published again since.
            point = other if is_older else point
        elif other is not None:
            newer = max(other, point, key=lambda p: (p.time_us, p.seq))
            point = replace(newer, trades=other.trades + point.trades)
        if other is None or not is_older:
            epochs[point.window] = epoch
        points[point.window] = point
