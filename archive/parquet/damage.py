"""Files of an archive that cannot be read: told from an archive that is away."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

_OF_THE_FILE = {None, errno.EIO, errno.ENOTDIR, errno.EISDIR}
"""Codes of an OSError that blames the file; Arrow's own have none."""

_UNREADABLE = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, TypeError),
    *(ValueError, pa.ArrowException),
)
"""What decoding foreign bytes may end with, beside an OSError."""


class Damaged(RuntimeError):
    """A file of a segment, ``path``, is not what an archive has written.

    The message names the file and says what is wrong with it.
    """

    def __init__(self, path: Path, reason: object) -> None:
        words = " ".join(str(reason).split()) or repr(reason)
        super().__init__(f"{path}: {words[:200]}")
        self.path = path


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Read a file of a segment in this block, and make sense of what it holds.

    Raises Damaged for what no waiting cures, FileNotFoundError if the segment has
    gone, and the OSError of a disk or a process in trouble.
    """
    try:
        yield
    except FileNotFoundError as error:
        if path.parent.exists():
            raise Damaged(path, "is missing") from error
        raise
    except OSError as error:
        if error.errno in _OF_THE_FILE:
            raise Damaged(path, error) from error
        raise
    except _UNREADABLE as error:
        raise Damaged(path, error) from error
