"""Files and pipes of every packing, as plain bytes."""

import gzip
import os
import threading
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pytest

from ingest.files.file_kind import DamagedFile, Unreadable
from ingest.files.open_pieces import read_pieces

TEXT = b"".join(b"KR7005930003,%d,71900,10\n" % n for n in range(40_000))


def zstd(content: bytes) -> bytes:
    """Pack as zstd does."""
    return bytes(pa.Codec("zstd").compress(content, asbytes=True))


def zipped(content: bytes, *names: str) -> bytes:
    """Pack into a zip of files of these names."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names or ("day.csv", "__MACOSX/._day.csv", "folder/"):
            archive.writestr(name, b"" if "MAC" in name else content)
    return out.getvalue()


def read(path: Path, content: bytes, **options: str) -> bytes:
    """Return what a file of this content has in it."""
    path.write_bytes(content)
    return b"".join(read_pieces(path, **options))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file whose name tells nothing."""
    return tmp_path / "file"


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd, zipped])
def test_a_file_is_unpacked(path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Whatever it is packed in, and nothing is held whole."""
    assert read(path, pack(TEXT)) == TEXT
    assert max(map(len, read_pieces(path))) <= 262_144


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_packed_files_may_follow_each_other(
    path: Path, pack: Callable[[bytes], bytes]
) -> None:
    """As `cat` makes them."""
    assert read(path, pack(b"a\n") + pack(b"b\n")) == b"a\nb\n"


def test_what_was_unpacked_has_an_encoding(path: Path) -> None:
    """One after the other."""
    text = "종목\n"
    assert read(path, gzip.compress(text.encode("utf-16")), encoding="utf-16") == (
        text.encode()
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(TEXT)[:-4], "gzip damaged: "),
        (zstd(TEXT)[:-4], "zstd damaged: "),
        (zstd(TEXT) + b"rest", "zstd damaged: "),
        (zipped(TEXT)[:-4], "zip damaged: "),
        (b"PAR1" + b"x" * 40 + b"PAR1", "Parquet damaged: "),
    ],
    ids=["gzip", "zstd", "zstd and more", "zip", "Parquet"],
)
def test_a_damaged_file_is_named(path: Path, content: bytes, words: str) -> None:
    """What was read before it is kept by who asks piece by piece."""
    with pytest.raises(DamagedFile, match=words):
        read(path, content)


LONG = b"".join(b"%d\n" % (n * 7_919 % 1_000_003) for n in range(150_000))


def cut(content: bytes) -> bytes:
    """Leave out the last three tenths."""
    return content[: len(content) * 7 // 10]


def spoiled(content: bytes) -> bytes:
    """Spoil the middle; a zip without its end is no zip."""
    place = len(content) * 7 // 10
    return content[:place] + b"\xff" * 999 + content[place + 999 :]


@pytest.mark.parametrize(
    "damaged",
    [cut(gzip.compress(LONG)), cut(zstd(LONG)), spoiled(zipped(LONG, "day.csv"))],
    ids=["gzip", "zstd", "zip"],
)
def test_what_stands_before_the_damage_is_read(path: Path, damaged: bytes) -> None:
    """But for the block that is damaged, of 128 KiB at most."""
    path.write_bytes(damaged)
    pieces = []
    with pytest.raises(DamagedFile):
        pieces.extend(read_pieces(path))
    whole = len(LONG) * 7 // 10 - 150_000
    assert b"".join(pieces)[:whole] == LONG[:whole]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (zipped(b"x", "a.csv", "b.csv"), "is zip of 2 files, not one: a.csv, b.csv"),
        (zipped(b"x", "xl/workbook.xml", "a"), "is an Excel workbook"),
    ],
    ids=["two files", "workbook"],
)
def test_a_zip_holds_one_file(path: Path, content: bytes, words: str) -> None:
    """Which of many is meant, nobody can know."""
    with pytest.raises(Unreadable, match=words):
        read(path, content)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
def test_a_pipe_may_be_packed(path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Its first bytes may come one by one."""
    os.mkfifo(path)
    content = pack(TEXT)

    def write() -> None:
        with path.open("wb", buffering=0) as pipe:
            for byte in content[:12]:
                pipe.write(bytes([byte]))
            pipe.write(content[12:])

    writer = threading.Thread(target=write)
    writer.start()
    assert b"".join(read_pieces(path)) == TEXT
    writer.join()


def test_a_pipe_brings_no_zip(path: Path) -> None:
    """What has to be read from its end needs a file."""
    os.mkfifo(path)

    def write() -> None:
        path.write_bytes(zipped(b"x" * 100))

    writer = threading.Thread(target=write)
    writer.start()
    with pytest.raises(Unreadable, match="is zip, which no pipe can bring"):
        list(read_pieces(path))
    writer.join()
