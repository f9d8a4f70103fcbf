"""A folder for the life of a process, and an end to those of killed ones."""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "tickthrottle-"
_LOCK = "lock"


class NoFolder(RuntimeError):
    """There is no place for files; the message says where, and what to set."""


@contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[Path]:
    """Yield a new, empty folder in ``parent``; it is removed at the end.

    Without a parent it is among the system's temporary ones, where its path is short:
    Spark puts Unix sockets into it, which have at most 107 bytes. A killed process
    cannot remove its folder; the next one does. A folder is in use for as long as its
    owner holds the lock in it, which ends with the process. Raises NoFolder.
    """
    root = Path(tempfile.gettempdir()) if parent is None else parent
    try:
        root.mkdir(parents=True, exist_ok=True)
        for lock in root.glob(f"{_PREFIX}*/{_LOCK}"):
            _remove_if_left(lock)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
    except OSError as error:
        variable = "TMPDIR" if parent is None else "TICKTHROTTLE_STATE_DIR"
        raise NoFolder(
            f"folder {root}: {error.strerror or error}; set {variable} to a folder "
            "that can be written"
        ) from error
    try:
        with (folder / _LOCK).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_if_left(lock: Path) -> None:
    try:
        with lock.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
    except OSError:
        # In use, gone meanwhile, or somebody else's.
        return
