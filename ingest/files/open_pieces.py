"""Open a file or a pipe as pieces of plain bytes, whatever it is packed in."""

import gzip
import io
import os
import select
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ingest.files.file_kind import HEAD_BYTES, DamagedFile, Unreadable, packed_kind
from ingest.files.text_pieces import to_utf8

STANDARD_INPUT = Path("-")

_PIECE_BYTES = 262_144
_LOOK_UP_S = 0.2

# A read of zstd or zip that comes upon damage loses what it had unpacked before. Blocks
# of zstd are multiples of this, mostly.
_SMALL_PIECE_BYTES = 4_096


def read_pieces(
    path: Path, encoding: str = "utf-8", *, follow: bool = False
) -> Iterator[bytes]:
    """Yield the text of a file in UTF-8, piece by piece, as it comes.

    gzip, zstd and zip are unpacked, Parquet becomes a line of JSON for each row. A
    plain pipe yields an empty piece whenever nothing came for a while. ``path`` is a
    named pipe, a file, or ``-``: standard input. With ``follow`` a named pipe does not
    end with its writer. At most a piece of 256 KiB is held, and what unpacking needs.
    Raises Unreadable, DamagedFile and OSError.
    """
    with _opened(path, follow=follow) as descriptor:
        raw = _Raw(descriptor)
        while len(raw.head) < HEAD_BYTES and (more := raw.wait()) is not None:
            if not more:
                yield b""
        kind = packed_kind(raw.head)
        if kind == "Parquet":
            yield from _parquet_lines(raw)
        elif kind is None:
            yield from to_utf8(raw.pieces(), encoding)
        else:
            yield from to_utf8(_UNPACKED[kind](raw), encoding)


class _Raw(io.RawIOBase):
    """What is read of a descriptor; its first bytes can be looked at before."""

    def __init__(self, descriptor: int) -> None:
        self.head = b""
        self._descriptor = descriptor

    def wait(self) -> bytes | None:
        """Add to the head what comes; nothing if nothing came, None at the end."""
        if not select.select([self._descriptor], [], [], _LOOK_UP_S)[0]:
            return b""
        piece = os.read(self._descriptor, _PIECE_BYTES)
        self.head += piece
        return piece or None

    def pieces(self) -> Iterator[bytes]:
        """Yield all of it, plain."""
        while True:
            if self.head:
                yield self.head
                self.head = b""
            if self.wait() is None:
                return
            if not self.head:
                yield b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        piece = self.head or os.read(self._descriptor, len(buffer))
        piece, self.head = piece[: len(buffer)], piece[len(buffer) :]
        buffer[: len(piece)] = piece
        return len(piece)

    @contextmanager
    def from_its_start(self, kind: str) -> Iterator[io.BufferedReader]:
        """Yield it as a file that is read from where one likes. Raises Unreadable."""
        with open(self._descriptor, "rb", closefd=False) as file:
            if not file.seekable():
                raise Unreadable(f"is {kind}, which no pipe can bring: name the file")
            file.seek(0)
            yield file


def _gzip(raw: _Raw) -> Iterator[bytes]:
    try:
        with gzip.GzipFile(fileobj=raw) as file:
            yield from _all(file.read1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DamagedFile(f"gzip damaged: {error}") from error


def _zstd(raw: _Raw) -> Iterator[bytes]:
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd") as file:
            yield from _all(file.read, _SMALL_PIECE_BYTES)
    except OSError as error:
        raise DamagedFile(f"zstd damaged: {error}") from error


def _zip(raw: _Raw) -> Iterator[bytes]:
    try:
        with (
            raw.from_its_start("zip") as file,
            zipfile.ZipFile(file) as archive,
            archive.open(_only_file(archive)) as member,
        ):
            yield from _all(member.read, _SMALL_PIECE_BYTES)
    except (zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise DamagedFile(f"zip damaged: {error}") from error
    except NotImplementedError as error:
        raise Unreadable(f"is zip that cannot be unpacked here: {error}") from error


def _only_file(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    members = archive.infolist()
    names = [member.filename for member in members]
    if "xl/workbook.xml" in names:
        raise Unreadable("is an Excel workbook: save it as CSV in UTF-8")
    files = [m for m in members if not m.is_dir() and "__MACOSX/" not in m.filename]
    if len(files) != 1:
        shown = ", ".join(member.filename for member in files[:5])
        raise Unreadable(f"is zip of {len(files)} files, not one: {shown}"[:200])
    if files[0].flag_bits & 1:
        raise Unreadable("is zip with a password: unpack it first")
    return files[0]


def _parquet_lines(raw: _Raw) -> Iterator[bytes]:
    from ingest.files.parquet_lines import read_lines

    with raw.from_its_start("Parquet") as file:
        try:
            yield from read_lines(file)
        except ValueError as error:
            # Arrow's errors are of many lines.
            rule = str(error).splitlines()[0][:200]
            raise DamagedFile(f"Parquet damaged: {rule}") from error


def _all(read: Callable[[int], bytes], size: int = _PIECE_BYTES) -> Iterator[bytes]:
    while piece := read(size):
        yield piece


_UNPACKED = {"gzip": _gzip, "zstd": _zstd, "zip": _zip}


@contextmanager
def _opened(path: Path, *, follow: bool) -> Iterator[int]:
    if path == STANDARD_INPUT:
        yield 0
        return
    is_fifo = stat.S_ISFIFO(path.stat().st_mode)
    if follow and not is_fifo:
        raise Unreadable("is no named pipe: only one can be followed")
    # Not waiting for a writer, and with `follow` being one, so that it never ends.
    descriptor = os.open(path, os.O_RDWR if follow else os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.set_blocking(descriptor, True)
        yield descriptor
    finally:
        os.close(descriptor)
