"""Which process may store into a folder: one, for as long as it shows that it lives.

The system gives a lock back when its holder dies. A holder that is frozen keeps it, so
a holder also touches the file all the time: where that ends, the next one puts a file
of its own in its place. What the earlier holder was doing then comes to nothing: its
unfinished files are in a folder that has the lock's ``token`` in its name and that the
next one takes away first (``segment_folder.py``).
"""

import fcntl
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import IO

LOCK = ".lock"

TOUCH_S = 1.0

FROZEN_S = 5.0
"""A holder that has not touched its lock for so long has lost it."""


class FolderLocked(OSError):
    """Another process stores into this folder."""


class FolderLost(RuntimeError):
    """Another process has taken the folder over while this one was frozen."""


class FolderLock:
    """The lock of a folder. ``token`` is new each time that it is taken."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / LOCK
        self._file: IO[str] | None = None
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        # How the lock of another process looked, and since when.
        self._looked: tuple[int, int] | None = None
        self._since_s = 0.0
        self.token = ""

    @property
    def is_taken(self) -> bool:
        """Whether this process has taken it, and not given it back."""
        return self._file is not None

    def take(self) -> None:
        """Take the lock, making the folder. Raises FolderLocked, and other OSErrors.

        Asked again and again, it is taken from a process that is frozen.
        """
        self.give_back()
        self._root.mkdir(parents=True, exist_ok=True)
        file: IO[str] = self._path.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            if not self._is_frozen():
                raise self._locked() from None
            file = self._put_in_place()
        except OSError:
            file.close()
            raise
        self._file, self.token = file, token_hex(4)
        if not self._is_ours():
            # Somebody else was faster.
            self.give_back()
            raise self._locked()
        self._closing.clear()
        self._thread = threading.Thread(target=self._run, name="folder", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Return if this process still has it. Raises FolderLost."""
        if not self._is_ours():
            raise FolderLost(
                f"archive_dir {self._root}: another process has taken it over"
            )

    def give_back(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def _locked(self) -> FolderLocked:
        return FolderLocked(f"archive_dir {self._root}: another process has it")

    def _is_ours(self) -> bool:
        if self._file is None:
            return False
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self._file.fileno()), self._path.stat())
        return False

    def _is_frozen(self) -> bool:
        """Tell whether the holder has not touched its lock while this one looked."""
        stat = self._path.stat()
        looks = stat.st_ino, stat.st_mtime_ns
        if looks != self._looked:
            self._looked, self._since_s = looks, time.monotonic()
        return time.monotonic() - self._since_s >= FROZEN_S

    def _put_in_place(self) -> IO[str]:
        ours = self._root / f"{LOCK}.{token_hex(4)}"
        file = ours.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours.replace(self._path)
        except OSError:
            file.close()
            ours.unlink(missing_ok=True)
            raise
        self._looked = None
        return file

    def _run(self) -> None:
        while not self._closing.wait(TOUCH_S):
            file = self._file
            if file is not None:
                with suppress(OSError):
                    os.utime(file.fileno())
