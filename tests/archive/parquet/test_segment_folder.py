"""A folder whose readers find all of the old or all of the new."""

import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from archive.contract.segment import Segment
from archive.parquet.folder_lock import FolderLock, FolderLost
from archive.parquet.segment_folder import (
    SegmentFolder,
    all_segments,
    bytes_in,
    days_in,
    segments_aside,
)
from tests.archive.contract.test_segment import make_segment

DAY = date(2026, 3, 20)


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[FolderLock]:
    lock = FolderLock(tmp_path / "archive")
    lock.take()
    yield lock
    lock.give_back()


@pytest.fixture
def folder(lock: FolderLock, tmp_path: Path) -> SegmentFolder:
    folder = SegmentFolder(tmp_path / "archive", lock)
    folder.open()
    return folder


def add(folder: SegmentFolder, segment: Segment, text: str = "x") -> None:
    with folder.part(segment) as part:
        (part / "rows.parquet").write_text(text)
        folder.add(DAY, segment)


def contents(folder: SegmentFolder) -> dict[int, str]:
    placed = all_segments(folder.root)
    return {s.first: (path / "rows.parquet").read_text() for s, path in placed}


def test_segments_come_and_are_replaced(folder: SegmentFolder) -> None:
    segments = [make_segment(1, 2), make_segment(3, 4), make_segment(5, 6)]
    for segment in segments:
        add(folder, segment, f"from {segment.first}")
    assert contents(folder) == {1: "from 1", 3: "from 3", 5: "from 5"}
    merged = segments[0].join(segments[1])
    with folder.part(merged) as part:
        (part / "rows.parquet").write_text("both")
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
    assert unfinished(folder) == []


def unfinished(folder: SegmentFolder) -> list[Path]:
    return list(folder.root.glob(".parts*/*"))


def test_what_a_crash_has_left_is_removed(
    folder: SegmentFolder, lock: FolderLock
) -> None:
    add(folder, make_segment(1, 2))
    [version] = os.listdir(folder.root / ".days")
    for leftover in (".parts.0a1b/1_k3x9_3-4_3-4", ".parts", f".days/{DAY}.9"):
        (folder.root / leftover).mkdir(parents=True)
    lock.take()
    folder.open()
    assert unfinished(folder) == []
    assert os.listdir(folder.root / ".days") == [version]
    assert contents(folder) == {1: "x"}


@pytest.mark.parametrize("step", ["add", "replace", "drop", "set aside"])
def test_whoever_lost_the_folder_changes_nothing(
    step: str, folder: SegmentFolder, lock: FolderLock
) -> None:
    """Although it had begun before another process opened it."""
    add(folder, make_segment(1, 2))
    late = SegmentFolder(folder.root, lock)
    late.open()

    def change(part: Path) -> None:
        (part / "rows.parquet").write_text("late")
        another = FolderLock(folder.root)
        (folder.root / ".lock").unlink()
        another.take()
        SegmentFolder(folder.root, another).open()
        try:
            match step:
                case "add":
                    late.add(DAY, make_segment(3, 4))
                case "replace":
                    late.replace(DAY, [make_segment(1, 2)], make_segment(3, 4))
                case "drop":
                    late.drop(DAY)
                case "set aside":
                    late.set_aside(DAY, make_segment(1, 2))
        finally:
            another.give_back()

    with (
        pytest.raises(FolderLost, match="another process has taken it over"),
        late.part(make_segment(3, 4)) as part,
    ):
        change(part)
    assert contents(folder) == {1: "x"}


def test_a_damaged_segment_is_moved_to_where_nobody_looks(
    folder: SegmentFolder,
) -> None:
    """Unchanged, and beside an earlier one of its name."""
    for n in (1, 2):
        add(folder, make_segment(1, 2), f"bad {n}")
        folder.set_aside(DAY, make_segment(1, 2))
    assert contents(folder) == {}
    texts = [(p / "rows.parquet").read_text() for p in segments_aside(folder.root)]
    assert texts == ["bad 1", "bad 2"]


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
