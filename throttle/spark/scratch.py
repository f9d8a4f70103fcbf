"""A folder for the life of a process, and an end to those of killed ones."""

import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from throttle.settings import default_state_dir

_PREFIX = "tickthrottle-"
_LOCK = "lock"

# A socket's path has at most 107 bytes; these are a scratch folder's and a socket's
# own names, with the slashes.
_MOST_PATH_BYTES = 107 - len("/tickthrottle-12345678") - len("/." + "0" * 36 + ".sock")

_NO_PROGRAMS = getattr(os, "ST_NOEXEC", 0)

log = structlog.get_logger()


class NoFolder(RuntimeError):
    """There is no place for files; the message says where, and what to set."""


@contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[Path]:
    """Yield a new, empty folder in ``parent``; it is removed at the end.

    Without a parent it is in ``programs_root``. A killed process cannot remove its
    folder; the next one does. A folder is in use for as long as its owner holds the
    lock in it, which ends with the process. Raises NoFolder.
    """
    root = programs_root() if parent is None else parent
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


def programs_root() -> Path:
    """Return a folder for Spark's sockets, and for programs and libraries of its Java.

    It is the system's for temporary files (``TMPDIR``). Where that is mounted noexec,
    as on hardened machines, it is the first other one that will do. Raises NoFolder.
    """
    try:
        temporary = Path(tempfile.gettempdir())
    except OSError as error:
        raise NoFolder(f"TMPDIR: {error.strerror or error}") from error
    if not is_noexec(temporary):
        return temporary
    for folder in _others():
        if len(os.fsencode(folder)) <= _MOST_PATH_BYTES and _can_hold(folder):
            log.info("no program may run in TMPDIR", folder=str(folder))
            return folder
    raise NoFolder(
        f"folder {temporary}: is mounted noexec, and Spark's Java runs programs there; "
        f"set TMPDIR to a folder without noexec, with a path of {_MOST_PATH_BYTES} "
        "bytes at most"
    )


def is_noexec(folder: Path) -> bool:
    """Tell whether no program may run in a folder. Without such a folder: no."""
    try:
        return bool(os.statvfs(folder).f_flag & _NO_PROGRAMS)
    except OSError:
        return False


def _others() -> Iterator[Path]:
    yield Path("/var/tmp")
    yield Path(f"/run/user/{os.getuid()}")
    yield default_state_dir()
    yield Path(sys.prefix) / "share" / "tickthrottle"


def _can_hold(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK) and not is_noexec(folder)


def _remove_if_left(lock: Path) -> None:
    try:
        with lock.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
    except OSError:
        # In use, gone meanwhile, or somebody else's.
        return
