"""The folder of an archive: which segments are there, and how one comes and goes.

    day=2026-03-20              a link to the newest version of the day
    .days/2026-03-20.7/<segment>/windows.parquet, rows.parquet
    .parts.<token>/             what the holder of the lock is writing
    .lock                       held by the process that stores (``folder_lock.py``)
    damaged/day=2026-03-20/<segment>/      what cannot be read, set aside
    bars/, statuses/            the same for bars and for trading statuses

A segment is renamed into its day and is there as a whole. Where segments take the
place of others, the day gets a new version, of links to the files that stay, and the
link of the day moves: whoever looks finds either all of the old or all of the new.

Every step that others see is a rename out of ``.parts.<token>``, or into it. The next
holder takes that folder away before it looks at anything: a process that was frozen,
and goes on, changes nothing any more.
"""

import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path

from archive.contract.segment import Segment
from archive.parquet.folder_lock import FolderLock

DAY = "day="
_DAYS, _PARTS = ".days", ".parts"


def bars_root(root: Path) -> Path:
    """Return the folder of the bars of an archive."""
    return root / "bars"


def statuses_root(root: Path) -> Path:
    """Return the folder of the trading statuses of an archive."""
    return root / "statuses"


def days_in(root: Path) -> dict[date, Path]:
    """Return the days of an archive and their folders, oldest first."""
    days = {}
    with suppress(FileNotFoundError, NotADirectoryError):
        for entry in os.scandir(root):
            if entry.name.startswith(DAY):
                with suppress(ValueError):
                    day = date.fromisoformat(entry.name.removeprefix(DAY))
                    days[day] = root / entry.name
    return dict(sorted(days.items()))


def segments_in(folder: Path) -> list[tuple[Segment, Path]]:
    """Return the segments of a day, in the order of publication."""
    while True:
        version, names = _version_of(folder), list[str]()
        with suppress(FileNotFoundError, NotADirectoryError):
            names = os.listdir(version)
        # One version of the day: of one that is replaced meanwhile a part is listed.
        if _version_of(folder) == version:
            break
    parsed = ((Segment.parse(name), version / name) for name in names)
    return sorted((segment, path) for segment, path in parsed if segment is not None)


def _version_of(folder: Path) -> Path:
    """Return what a day's link leads to, the folder itself if it is none."""
    # One call of the system; resolving asks for each folder above it, too.
    with suppress(OSError):
        return folder.parent / os.readlink(folder)
    return folder


def all_segments(root: Path) -> list[tuple[Segment, Path]]:
    """Return every segment of an archive, in the order of publication."""
    return sorted(
        placed for folder in days_in(root).values() for placed in segments_in(folder)
    )


def damaged_root(root: Path) -> Path:
    """Return the folder of what was set aside of an archive's product."""
    return root / "damaged"


def segments_aside(root: Path) -> list[Path]:
    """Return the segments that were set aside, oldest day first."""
    paths = []
    for folder in days_in(damaged_root(root)).values():
        with suppress(FileNotFoundError, NotADirectoryError):
            names = sorted(os.listdir(folder))
            paths += [folder / name for name in names if segment_aside(name)]
    return paths


def segment_aside(name: str) -> Segment | None:
    """Return which segment was set aside; a second one has a number behind it."""
    return Segment.parse(name.partition(".")[0])


def bytes_in(folder: Path) -> int:
    """Return how many bytes a segment's files have."""
    total = 0
    with suppress(FileNotFoundError, NotADirectoryError):
        total = sum(entry.stat().st_size for entry in os.scandir(folder))
    return total


class SegmentFolder:
    """An archive's folder, for the process that has its lock.

    ``at_step`` is told the name of every step once it is done. Methods raise OSError,
    and FolderLost once another process has the lock; one thread may add while another
    one replaces.
    """

    def __init__(
        self,
        root: Path,
        lock: FolderLock,
        at_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.root = root
        self._lock = lock
        self._at_step = at_step
        self._changing = threading.Lock()
        self._parts = root / _PARTS
        self.is_open = False

    def open(self) -> None:
        """Begin under the lock that was taken; remove what others have left there."""
        self._lock.check()
        self._parts = self.root / f"{_PARTS}.{self._lock.token}"
        self._parts.mkdir(parents=True, exist_ok=True)
        for other in self.root.glob(f"{_PARTS}*"):
            if other != self._parts:
                # At once, as a whole: from here on nobody commits out of it.
                gone = self._parts / other.name
                other.rename(gone)
                shutil.rmtree(gone)
        (self.root / _DAYS).mkdir(exist_ok=True)
        self._remove_old_versions()
        self.is_open = True

    def close(self) -> None:
        self.is_open = False
        with suppress(OSError):
            self._parts.rmdir()

    @contextmanager
    def part(self, segment: Segment) -> Iterator[Path]:
        """Give an empty folder to write a segment into; on an error it goes again."""
        part = self._parts / segment.name
        shutil.rmtree(part, ignore_errors=True)
        try:
            part.mkdir()
            yield part
        except Exception:
            shutil.rmtree(part, ignore_errors=True)
            self._lock.check()
            raise

    def add(self, day: date, segment: Segment) -> None:
        """Have a segment that was written be there."""
        part = self._parts / segment.name
        _sync(part, *part.iterdir())
        self._at_step("synced")
        with self._changing:
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
        with self._changing:
            self._remove_old_versions()
            old = (self.root / f"{DAY}{day}").resolve()
            new = self._new_version(day)
            for _, path in segments_in(old):
                if path.name not in names:
                    _link_all(path, new / path.name)
            if merged is not None:
                part = self._parts / merged.name
                _sync(part, *part.iterdir())
                part.rename(new / merged.name)
            _sync(*new.iterdir(), new)
            self._at_step("linked")
            self._switch(day, new)
        self._at_step("switched")
        shutil.rmtree(old, ignore_errors=True)
        self._at_step("cleaned")

    def drop(self, day: date) -> None:
        link = self.root / f"{DAY}{day}"
        version = link.resolve()
        with self._changing:
            link.rename(self._parts / link.name)
            _sync(self.root)
        self._at_step("unlinked")
        (self._parts / link.name).unlink()
        shutil.rmtree(version, ignore_errors=True)
        self._at_step("dropped")

    def set_aside(self, day: date, segment: Segment) -> Path:
        """Move a segment that cannot be read to where nobody looks for segments.

        Return where it is now. Nothing of it is changed or removed.
        """
        aside = damaged_root(self.root) / f"{DAY}{day}"
        aside.mkdir(parents=True, exist_ok=True)
        names = (segment.name, *(f"{segment.name}.{n}" for n in range(2, 10_000)))
        place = next(aside / name for name in names if not (aside / name).exists())
        with self._changing:
            self._lock.check()
            folder = (self.root / f"{DAY}{day}").resolve()
            (folder / segment.name).rename(place)
            _sync(folder, aside)
        self._at_step("set aside")
        return place

    def _remove_old_versions(self) -> None:
        current = {folder.resolve() for folder in days_in(self.root).values()}
        for version in (self.root / _DAYS).iterdir():
            if version.resolve() not in current:
                shutil.rmtree(version)

    def _new_version(self, day: date) -> Path:
        numbers = [
            int(path.name.rpartition(".")[2].partition("-")[0])
            for path in (self.root / _DAYS).glob(f"{day}.*")
        ]
        # With the token: a frozen process cannot mean this one.
        name = f"{day}.{max(numbers, default=0) + 1}-{self._lock.token}"
        version = self.root / _DAYS / name
        version.mkdir()
        return version

    def _switch(self, day: date, version: Path) -> None:
        link = self._parts / f"{DAY}{day}"
        link.unlink(missing_ok=True)
        link.symlink_to(Path(_DAYS) / version.name)
        link.replace(self.root / f"{DAY}{day}")
        _sync(self.root)


def _link_all(path: Path, copy: Path) -> None:
    """Have a segment be there a second time. Raises the first OSError, as it is."""
    if not path.is_dir():
        _link(path, copy)
        return
    copy.mkdir()
    for file in path.iterdir():
        _link_all(file, copy / file.name)


def _link(file: Path, copy: Path) -> None:
    try:
        os.link(file, copy)
    except OSError:
        # A file system without links.
        shutil.copyfile(file, copy)
        _sync(copy)


def _sync(*paths: Path | str) -> None:
    for path in paths:
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
