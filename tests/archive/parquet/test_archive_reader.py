"""What an instrument did, from files: bounded, exact, whatever is merged meanwhile."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from archive.contract.logged import LoggedWindow, runs_of, segment_of
from archive.contract.segment import day_of
from archive.parquet.archive_reader import ArchiveReader
from archive.parquet.parquet_sink import ParquetSink
from archive.parquet.tables import build_tables
from tests.gateway.samples import FIRST_WINDOW, LISTED, SAMSUNG, make_isins, make_row
from tests.gateway.samples import make_snapshot as snapshot
from throttle.contract.snapshot import WindowSnapshot

ALL = (0, 2**53)


def end_of(offset: int) -> int:
    return FIRST_WINDOW + offset * 2_000


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[ParquetSink]:
    sink = ParquetSink(tmp_path, 2**40, 0)
    sink.open()
    yield sink
    sink.close()


def store(sink: ParquetSink, *windows: WindowSnapshot) -> None:
    logged = [LoggedWindow.decode(window.encode()) for window in windows]
    for run in runs_of(logged):
        tables = build_tables(run, [1] * len(run), lambda _: LISTED, 2_000)
        sink.store(segment_of(run), tables)


def prices(
    reader: ArchiveReader, limit: int = 100, *, newest: bool = True
) -> list[str]:
    points = reader.points(SAMSUNG, *ALL, limit, newest=newest)
    return [point.price for point in points]


def test_an_instrument_is_found_among_others(sink: ParquetSink, tmp_path: Path) -> None:
    others = [make_row(isin) for isin in make_isins(50)]
    for n in range(1, 7):
        row = make_row(SAMSUNG, f"{n}.10", n)
        store(sink, snapshot(n, *others, *([row] if n != 3 else [])))
    reader = ArchiveReader(tmp_path)
    assert prices(reader) == ["1.10", "2.10", "4.10", "5.10", "6.10"]
    assert prices(reader, 2) == ["5.10", "6.10"]
    assert prices(reader, 2, newest=False) == ["1.10", "2.10"]
    within = reader.points(SAMSUNG, end_of(2), end_of(5), 9, newest=True)
    assert [point.window for point in within] == [end_of(n) for n in (2, 4, 5)]
    assert reader.points("KR7000020008", *ALL, 9, newest=True) == []


def test_parts_of_a_window_are_one_point(sink: ParquetSink, tmp_path: Path) -> None:
    """The newer trade, and the trades of both; in one segment or in two."""
    first = snapshot(1, make_row(SAMSUNG, "2", seq=2, trades=3), window=end_of(1))
    second = snapshot(2, make_row(SAMSUNG, "1", seq=1, trades=4), window=end_of(1))
    store(sink, first)
    store(sink, second)
    for _ in range(2):
        [point] = ArchiveReader(tmp_path).points(SAMSUNG, *ALL, 9, newest=True)
        assert (point.price, point.trades) == ("2", 7)
        sink.tidy(end_of(1) + 86_400_000)


def test_what_was_published_again_counts_once(
    sink: ParquetSink, tmp_path: Path
) -> None:
    """The later epoch's row is shown, from either end."""
    store(sink, *(snapshot(n, make_row(price=f"{n}", seq=n)) for n in (1, 2, 3)))
    again = snapshot(3, make_row(price="9", seq=3), epoch="later")
    store(sink, replace(again, published_us=10**15 * 2))
    reader = ArchiveReader(tmp_path)
    assert prices(reader) == ["1", "2", "9"]
    assert prices(reader, newest=False) == ["1", "2", "9"]


def test_windows_are_read_on_while_files_are_merged(
    sink: ParquetSink, tmp_path: Path
) -> None:
    """Each once, in their order, from either end."""
    windows = [snapshot(n, make_row(seq=n)) for n in range(1, 10)]
    for window in windows:
        store(sink, window)
    reader = ArchiveReader(tmp_path)
    forward, back = reader.windows(*ALL), reader.windows(*ALL, newest_first=True)
    seen, seen_back = [next(forward)], [next(back)]
    while sink.tidy(end_of(9) + 86_400_000) is not None:
        pass
    seen += forward
    seen_back += back
    assert seen == windows
    assert seen_back == windows[::-1]
    assert reader.window_ms(*ALL) == 2_000


def test_days_are_kept_apart(sink: ParquetSink, tmp_path: Path) -> None:
    """Windows that follow each other over midnight are two segments."""
    midnight = end_of(1) - end_of(1) % 86_400_000 + 86_400_000
    windows = [
        snapshot(n, make_row(seq=n), window=midnight + (n - 2) * 2_000)
        for n in (1, 2, 3)
    ]
    store(sink, *windows)
    reader = ArchiveReader(tmp_path)
    segments = reader.segments()
    assert [(s.first, s.last) for s in segments] == [(1, 2), (3, 3)]
    assert [day_of(s.last_ms).day for s in segments] == [20, 21]
    assert len(prices(reader)) == 3


def test_an_archive_that_is_not_there_is_empty(tmp_path: Path) -> None:
    reader = ArchiveReader(tmp_path / "nothing")
    assert reader.segments() == []
    assert prices(reader) == []
    assert list(reader.windows(*ALL)) == []
    assert reader.window_ms(*ALL) is None
