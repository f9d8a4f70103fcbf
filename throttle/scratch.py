"""A folder for the life of a process, and an end to those of killed ones."""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "tickthrottle-"
_LOCK = "lock"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a new, empty folder; it is removed at the end.

    Its path is short: Spark puts Unix sockets into it, which have at most 107 bytes.
    A killed process cannot remove its folder; the next one does. A folder is in use
    for as long as its owner holds the lock in it, which ends with the process.
    """
    root = Path(tempfile.gettempdir())
    for lock in root.glob(f"{_PREFIX}*/{_LOCK}"):
        _remove_if_left(lock)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        with (folder / _LOCK).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def checkpoint_folder(state_dir: Path, log_id: str, job: str, term: int) -> Path:
    """Return the new folder for Spark's checkpoint of one term; all others go.

    A checkpoint identifies the batches of one run. Where the next run goes on is
    stored with what was published, so none is ever read again; not even one of the
    same term, which a restored server may give twice.
    """
    terms = state_dir / "checkpoints" / log_id / job
    terms.mkdir(parents=True, exist_ok=True)
    for old in terms.iterdir():
        shutil.rmtree(old, ignore_errors=True)
    return terms / str(term)


def _remove_if_left(lock: Path) -> None:
    try:
        with lock.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
    except OSError:
        # In use, gone meanwhile, or somebody else's.
        return
