"""Segments of every shape a market has are merged, and hold the same afterwards."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archive.contract.logged import LoggedWindow, segment_of
from archive.contract.packed_window import unpack_window
from archive.contract.segment import Segment
from archive.parquet import segment_files
from archive.parquet.checked_file import Damaged
from archive.parquet.segment_files import ROWS_FILE, WINDOWS_FILE, WindowFiles
from archive.parquet.tables import build_tables
from tests.gateway.samples import LISTED, make_isins, make_row, make_snapshot
from throttle.contract.snapshot import Row

ISINS = make_isins(5)


def run_of(first: int, *windows: list[Row]) -> list[LoggedWindow]:
    """Return windows with these rows, numbered from ``first`` on."""
    return [
        LoggedWindow.decode(make_snapshot(first + n, *rows).encode())
        for n, rows in enumerate(windows)
    ]


def rows_of(seq: int, *instruments: int) -> list[Row]:
    return [
        make_row(ISINS[instrument], f"{seq}.50", seq, 2) for instrument in instruments
    ]


def write(folder: Path, run: list[LoggedWindow]) -> Segment:
    folder.mkdir(parents=True)
    tables = build_tables(run, [1] * len(run), lambda _: LISTED, 2_000)
    WindowFiles().write(folder, tables)
    return segment_of(run)


def merge(folder: Path, sources: list[Path], *, is_final: bool = True) -> None:
    folder.mkdir()
    WindowFiles().merge(sources, folder, lambda: None, is_final=is_final)


QUIET: list[Row] = []

SHAPES = {
    "a day without a trade": [[QUIET, QUIET], [QUIET], [QUIET]],
    "the first one is empty": [[QUIET, QUIET], [rows_of(3, 0, 1)]],
    "the last one is empty": [[rows_of(1, 0, 1)], [QUIET], [QUIET, QUIET]],
    "one in the middle is empty": [[rows_of(1, 4)], [QUIET], [rows_of(3, 0)]],
    "one window": [[rows_of(1, 0)]],
    "one quiet window": [[QUIET]],
    "a quiet window beside a trade": [[QUIET, rows_of(2, 1)], [rows_of(3, 0), QUIET]],
    "an instrument in every window": [
        [rows_of(1, 0, 1), rows_of(2, 0, 1)],
        [rows_of(3, 0), rows_of(4, 0, 1)],
    ],
    "instruments that come and go": [
        [rows_of(1, 0, 4)],
        [rows_of(2, 1, 2, 3)],
        [QUIET],
        [rows_of(4, 0, 1, 2, 3, 4)],
    ],
}


@pytest.mark.parametrize("group", [1, 65_536])
@pytest.mark.parametrize("runs", SHAPES.values(), ids=SHAPES)
def test_a_merge_holds_what_its_segments_held(
    runs: list[list[list[Row]]],
    group: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In any groups; and it can be merged again."""
    monkeypatch.setattr(segment_files, "ROWS_A_GROUP", group)
    monkeypatch.setattr(segment_files, "ROWS_A_PIECE", group)
    monkeypatch.setattr(segment_files, "WINDOWS_A_GROUP", group)
    sources, segments, messages, first = [], [], [], 1
    for number, windows in enumerate(runs):
        run = run_of(first, *windows)
        sources.append(tmp_path / str(number))
        segments.append(write(sources[-1], run))
        messages += [window.message for window in run]
        first += len(windows)
    merged, again = tmp_path / "merged", tmp_path / "again"
    merge(merged, sources)
    merge(again, [merged, write_next(tmp_path / "next", first, messages)])
    whole = segments[0]
    for later in segments[1:]:
        whole = whole.join(later)
    WindowFiles().check(whole, merged)
    windows = pq.read_table(merged / WINDOWS_FILE)
    assert [unpack_window(p) for p in windows["packed"].to_pylist()] == messages[:-1]
    sorted_rows = pa.concat_tables(
        pq.read_table(source / ROWS_FILE) for source in sources
    ).sort_by([("isin", "ascending"), ("window", "ascending")])
    assert pq.read_table(merged / ROWS_FILE).equals(sorted_rows)
    windows = pq.read_table(again / WINDOWS_FILE)
    assert [unpack_window(p) for p in windows["packed"].to_pylist()] == messages


def test_a_merge_holds_a_piece_of_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, whole_bytes = [tmp_path / str(number) for number in range(8)], 0
    for number, source in enumerate(sources, 1):
        write(source, run_of(number, [make_row(isin) for isin in make_isins(2_000)]))
        whole_bytes += pq.read_table(source / ROWS_FILE).nbytes
    monkeypatch.setattr(segment_files, "ROWS_A_GROUP", 512)
    monkeypatch.setattr(segment_files, "ROWS_A_PIECE", 64)
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        merge(tmp_path / "merged", sources)
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < whole_bytes / 2


def write_next(folder: Path, first: int, messages: list[bytes]) -> Path:
    """Write a quiet window behind the others; return where it is."""
    run = run_of(first, QUIET)
    write(folder, run)
    messages.append(run[0].message)
    return folder


@pytest.mark.parametrize("name", [ROWS_FILE, WINDOWS_FILE])
def test_a_merge_names_the_file_that_it_cannot_read(name: str, tmp_path: Path) -> None:
    sources = [tmp_path / "1", tmp_path / "2"]
    for number, source in enumerate(sources, 1):
        write(source, run_of(number, rows_of(number, 0, 1)))
    bad = sources[1] / name
    data = bytearray(bad.read_bytes())
    # In the first page: only its checksum tells.
    data[40] ^= 0x01
    bad.write_bytes(data)
    with pytest.raises(Damaged) as error:
        merge(tmp_path / "merged", sources)
    assert error.value.path == bad


def test_a_segment_holds_what_its_name_says(tmp_path: Path) -> None:
    """Whole files that are another segment's are none."""
    segment = write(tmp_path / "1", run_of(1, rows_of(1, 0), rows_of(2, 0)))
    other = write(tmp_path / "2", run_of(3, rows_of(3, 0)))
    files = WindowFiles()
    files.check(segment, tmp_path / "1")
    with pytest.raises(Damaged, match="other windows than the segment's name says"):
        files.check(other, tmp_path / "1")
    (tmp_path / "2" / ROWS_FILE).replace(tmp_path / "1" / ROWS_FILE)
    with pytest.raises(Damaged, match="has 1 rows, its windows have 2"):
        files.check(segment, tmp_path / "1")
