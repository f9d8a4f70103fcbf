"""The folder of an archive: which segments are there, and how one comes and goes.

    day=2026-03-20              a link to the newest version of the day
    .days/2026-03-20.7/<segment>/windows.parquet, rows.parquet
    .parts/                     what is being written
    .lock                       held by the process that stores
    bars/                       the same for bars: day=2026-03-20, a link, and so on

A segment is renamed into its day and is there as a whole. Where segments take the
place of others, the day gets a new version, of links to the files that stay, and the
link of the day moves: whoever looks finds either all of the old or all of the new.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import IO

from archive.contract.segment import Segment

DAY = "day="
_DAYS, _PARTS, _LOCK = ".days", ".parts", ".lock"
_BARS = "bars"


class FolderLocked(OSError):
    """Another process stores into this folder."""


def bars_root(root: Path) -> Path:
    """Return the folder of the bars of an archive."""
    return root / _BARS


def days_in(root: Path) -> dict[date, Path]:
    """Return the days of an archive and their folders, oldest first."""
    days = {}
    with suppress(FileNotFoundError):
        for entry in os.scandir(root):
            if entry.name.startswith(DAY):
                with suppress(ValueError):
                    day = date.fromisoformat(entry.name.removeprefix(DAY))
                    days[day] = root / entry.name
    return dict(sorted(days.items()))


def segments_in(folder: Path) -> list[tuple[Segment, Path]]:
    """Return the segments of a day, in the order of publication."""
    found = []
    with suppress(FileNotFoundError):
        # One version of the day, whichever it is: resolved once.
        for path in folder.resolve().iterdir():
            segment = Segment.parse(path.name)
            if segment is not None:
                found.append((segment, path))
    return sorted(found)


def all_segments(root: Path) -> list[tuple[Segment, Path]]:
    """Return every segment of an archive, in the order of publication."""
    return sorted(
        placed for folder in days_in(root).values() for placed in segments_in(folder)
    )


def bytes_in(folder: Path) -> int:
    """Return how many bytes a segment's files have."""
    total = 0
    with suppress(FileNotFoundError):
        total = sum(entry.stat().st_size for entry in os.scandir(folder))
    return total


class SegmentFolder:
    """An archive's folder, for the one process that stores into it.

    ``at_step`` is told the name of every step once it is done. Methods raise OSError.
    """

    def __init__(
        self, root: Path, at_step: Callable[[str], None] = lambda _: None
    ) -> None:
        self.root = root
        self._at_step = at_step
        self._lock: IO[str] | None = None

    def open(self) -> None:
        """Lock the folder, and remove what a crash has left. Raises FolderLocked."""
        self.root.mkdir(parents=True, exist_ok=True)
        lock = (self.root / _LOCK).open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise FolderLocked(
                f"archive_dir {self.root}: another process has it"
            ) from None
        self._lock = lock
        shutil.rmtree(self.root / _PARTS, ignore_errors=True)
        (self.root / _PARTS).mkdir(exist_ok=True)
        (self.root / _DAYS).mkdir(exist_ok=True)
        current = {folder.resolve() for folder in days_in(self.root).values()}
        for version in (self.root / _DAYS).iterdir():
            if version.resolve() not in current:
                shutil.rmtree(version)

    @property
    def is_open(self) -> bool:
        """Whether this process has the folder."""
        return self._lock is not None

    def close(self) -> None:
        """Let another process have the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def part(self, segment: Segment) -> Path:
        """Return an empty folder to write a segment into."""
        part = self.root / _PARTS / segment.name
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        return part

    def add(self, day: date, segment: Segment) -> None:
        """Have a segment that was written be there."""
        part = self.root / _PARTS / segment.name
        _sync(part, *part.iterdir())
        self._at_step("synced")
        if not (self.root / f"{DAY}{day}").exists():
            self._switch(day, self._new_version(day))
        folder = (self.root / f"{DAY}{day}").resolve()
        if (folder / segment.name).exists():
            # It had come to be there, and then something failed.
            shutil.rmtree(part)
        else:
            part.rename(folder / segment.name)
        _sync(folder)
        self._at_step("visible")

    def replace(
        self, day: date, gone: Iterable[Segment], merged: Segment | None = None
    ) -> None:
        """Have segments of a day be gone, and one that was written in their place."""
        names = {segment.name for segment in gone}
        old = (self.root / f"{DAY}{day}").resolve()
        new = self._new_version(day)
        for _, path in segments_in(old):
            if path.name not in names:
                (new / path.name).mkdir()
                for file in path.iterdir():
                    _link(file, new / path.name / file.name)
        if merged is not None:
            part = self.root / _PARTS / merged.name
            _sync(part, *part.iterdir())
            part.rename(new / merged.name)
        _sync(*new.iterdir(), new)
        self._at_step("linked")
        self._switch(day, new)
        self._at_step("switched")
        shutil.rmtree(old)
        self._at_step("cleaned")

    def drop(self, day: date) -> None:
        """Have a whole day be gone."""
        link = self.root / f"{DAY}{day}"
        version = link.resolve()
        link.unlink()
        _sync(self.root)
        self._at_step("unlinked")
        shutil.rmtree(version)
        self._at_step("dropped")

    def clear_parts(self) -> None:
        """Remove what was written and did not come to be there."""
        for part in self._parts():
            shutil.rmtree(part, ignore_errors=True)
        current = {folder.resolve() for folder in days_in(self.root).values()}
        for version in (self.root / _DAYS).iterdir():
            if version.resolve() not in current:
                shutil.rmtree(version, ignore_errors=True)

    def _parts(self) -> Iterator[Path]:
        with suppress(FileNotFoundError):
            yield from (self.root / _PARTS).iterdir()

    def _new_version(self, day: date) -> Path:
        numbers = [
            int(path.name.rpartition(".")[2])
            for path in (self.root / _DAYS).glob(f"{day}.*")
        ]
        version = self.root / _DAYS / f"{day}.{max(numbers, default=0) + 1}"
        version.mkdir()
        return version

    def _switch(self, day: date, version: Path) -> None:
        link = self.root / _PARTS / f"{DAY}{day}"
        link.unlink(missing_ok=True)
        link.symlink_to(Path(_DAYS) / version.name)
        link.replace(self.root / f"{DAY}{day}")
        _sync(self.root)


def _link(file: Path, copy: Path) -> None:
    try:
        os.link(file, copy)
    except OSError:
        # A file system without links.
        shutil.copyfile(file, copy)
        _sync(copy)


def _sync(*paths: Path) -> None:
    for path in paths:
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
