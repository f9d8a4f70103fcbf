"""A folder whose readers find all of the old or all of the new."""

import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from archive.contract.segment import Segment
from archive.parquet.segment_folder import (
    FolderLocked,
    SegmentFolder,
    all_segments,
    bytes_in,
    days_in,
)
from tests.archive.contract.test_segment import make_segment

DAY = date(2026, 3, 20)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[SegmentFolder]:
    """An open folder."""
    folder = SegmentFolder(tmp_path / "archive")
    folder.open()
    yield folder
    folder.close()


def add(folder: SegmentFolder, segment: Segment, text: str = "x") -> None:
    """Store a segment of one file."""
    (folder.part(segment) / "rows.parquet").write_text(text)
    folder.add(DAY, segment)


def contents(folder: SegmentFolder) -> dict[int, str]:
    """Return what is stored, by the segments' first offsets."""
    placed = all_segments(folder.root)
    return {s.first: (path / "rows.parquet").read_text() for s, path in placed}


def test_segments_come_and_are_replaced(folder: SegmentFolder) -> None:
    segments = [make_segment(1, 2), make_segment(3, 4), make_segment(5, 6)]
    for segment in segments:
        add(folder, segment, f"from {segment.first}")
    assert contents(folder) == {1: "from 1", 3: "from 3", 5: "from 5"}
    merged = segments[0].join(segments[1])
    (folder.part(merged) / "rows.parquet").write_text("both")
    folder.replace(DAY, segments[:2], merged)
    assert contents(folder) == {1: "both", 5: "from 5"}
    folder.replace(DAY, [merged])
    assert contents(folder) == {5: "from 5"}
    folder.drop(DAY)
    assert days_in(folder.root) == {}
    assert os.listdir(folder.root / ".days") == []


def test_one_that_is_there_already_stays(folder: SegmentFolder) -> None:
    """As after a failure behind the last step."""
    add(folder, make_segment(1, 2), "first")
    add(folder, make_segment(1, 2), "second")
    assert contents(folder) == {1: "first"}
    assert os.listdir(folder.root / ".parts") == []


def test_only_one_may_store(folder: SegmentFolder) -> None:
    other = SegmentFolder(folder.root)
    with pytest.raises(FolderLocked, match="another process has it"):
        other.open()
    folder.close()
    other.open()
    other.close()


def test_what_a_crash_has_left_is_removed(folder: SegmentFolder) -> None:
    add(folder, make_segment(1, 2))
    folder.part(make_segment(3, 4))
    (folder.root / ".days" / f"{DAY}.9").mkdir()
    folder.close()
    folder.open()
    assert os.listdir(folder.root / ".parts") == []
    assert os.listdir(folder.root / ".days") == [f"{DAY}.1"]
    assert contents(folder) == {1: "x"}


def test_files_are_copied_where_there_are_no_links(
    folder: SegmentFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    add(folder, make_segment(1, 2), "one")
    add(folder, make_segment(3, 4), "two")
    monkeypatch.setattr(os, "link", refuse)
    folder.replace(DAY, [make_segment(1, 2)])
    assert contents(folder) == {3: "two"}


def test_what_is_no_day_and_no_segment_is_not_looked_at(folder: SegmentFolder) -> None:
    add(folder, make_segment(1, 2), "four")
    (folder.root / "day=someday").mkdir()
    (folder.root / "notes.txt").touch()
    [day] = days_in(folder.root).values()
    (day / "README").touch()
    [(_, path)] = all_segments(folder.root)
    assert bytes_in(path) == 4
    assert bytes_in(path / "gone") == 0
