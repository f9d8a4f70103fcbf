"""Reads an archive's files: what an instrument did, and windows as published."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from archive.contract.packed_window import unpack_window
from archive.contract.segment import Segment
from archive.parquet.changing_files import (
    ATTEMPTS,
    ChangingFiles,
    SegmentReader,
    steadily,
)
from archive.parquet.checked_file import CheckedFile
from archive.parquet.segment_files import (
    FILED_WINDOWS,
    ROWS_FILE,
    WINDOWS_FILE,
    WindowFiles,
)
from archive.parquet.tables import ROWS, ends_within
from throttle.contract.snapshot import WindowSnapshot

_COLUMNS = [
    *("isin", "window", "epoch", "offset", "time", "seq"),
    *("price_text", "size_text", "trades"),
]


@dataclass(frozen=True, slots=True)
class ArchivedPoint:
    """An instrument's latest trade of a window; its price and size as decimal text."""

    window: int
    price: str
    size: str
    trades: int
    time_us: int
    seq: int

    def encode(self) -> bytes:
        return (
            f'{{"window":{self.window},"price":{self.price},"size":{self.size},'
            f'"trades":{self.trades},"time":{self.time_us}}}'
        ).encode()


class ArchiveReader(SegmentReader):
    """The windows of the archive in a folder."""

    def __init__(self, root: Path, files: type[ChangingFiles] = ChangingFiles) -> None:
        schema = pa.schema([ROWS.field(name) for name in _COLUMNS])
        super().__init__(root, WindowFiles(), schema, files)

    @steadily
    def points(
        self, isin: str, first_ms: int, last_ms: int, limit: int, *, newest: bool
    ) -> list[ArchivedPoint]:
        """Return up to ``limit`` windows in which an instrument traded, oldest first.

        The ``newest`` ones within the bounds, or the oldest. What several jobs have
        published of one window is one point: the newer trade, and the sum of their
        trades.
        """
        points: _Points = {}
        placed = self._placed(first_ms, last_ms)
        for _, path in sorted(placed, reverse=newest):
            with self._files.skipping_damage(path / ROWS_FILE):
                table = self._files.rows_of_instrument(path / ROWS_FILE, isin)
                if table is not None:
                    table = ends_within(table, first_ms, last_ms)
                    _add(points, table, is_older=newest)
            # Parts of one window may be in two segments: one more than asked.
            if len(points) > limit:
                break
        windows = sorted(points)
        chosen = windows[-limit:] if newest else windows[:limit]
        return [points[window][1] for window in chosen]

    def windows(
        self, first_ms: int, last_ms: int, *, newest_first: bool = False
    ) -> Iterator[WindowSnapshot]:
        """Yield the windows that end within these bounds, in the order of publication.

        A few are read at a time.
        """
        done: set[Segment] = set()
        for _ in range(ATTEMPTS):
            placed = self._placed(first_ms, last_ms)
            # Merged meanwhile: what of them was yielded already is not again.
            left = [p for p in placed if not any(_is_in(d, p[0]) for d in done)]
            try:
                for segment, path in sorted(left, reverse=newest_first):
                    skipped = [d for d in done if _is_in(segment, d)]
                    with self._files.skipping_damage(path / WINDOWS_FILE):
                        for window in _read_windows(path, newest_first=newest_first):
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

    @steadily
    def window_ms(self, first_ms: int, last_ms: int) -> int | None:
        """Return how long the first window within these bounds is, None if none is."""
        for _, path in self._placed(first_ms, last_ms):
            with (
                self._files.skipping_damage(path / WINDOWS_FILE),
                CheckedFile(path / WINDOWS_FILE, FILED_WINDOWS) as file,
            ):
                column = file.read(["window_ms"], [0])["window_ms"]
                return int(column[0].as_py())
        return None


def _read_windows(path: Path, *, newest_first: bool) -> Iterator[WindowSnapshot]:
    with CheckedFile(path / WINDOWS_FILE, FILED_WINDOWS) as file:
        for group in reversed(file.groups) if newest_first else file.groups:
            packed: Any = file.read(["packed"], [group])["packed"]
            texts = packed.to_pylist()
            for text in reversed(texts) if newest_first else texts:
                yield WindowSnapshot.decode(unpack_window(text))


def _is_in(outer: Segment, inner: Segment) -> bool:
    is_same = outer.epoch == inner.epoch
    return is_same and outer.first <= inner.first and inner.last <= outer.last


_Points = dict[int, tuple[str, ArchivedPoint]]
"""The epoch and the point of each window."""


def _add(points: _Points, table: pa.Table, *, is_older: bool) -> None:
    """Add an instrument's rows; ``is_older`` than those that are there already.

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
        other_epoch, other = points.get(point.window, (epoch, None))
        if other_epoch != epoch:
            # Redis had come back older than it was: published again since.
            if is_older:
                continue
        elif other is not None:
            newer = max(other, point, key=lambda p: (p.time_us, p.seq))
            point = replace(newer, trades=other.trades + point.trades)
        points[point.window] = epoch, point
