"""Pipes as sources: lines as they come, named pipes, what cannot be read."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.sources.event import Refusals
from ingest.sources.tape import PipeError, read_pipe
from ingest.sources.trade_lines import LineOptions, LineReader
from tests.conftest import eventually

HEADER = b"isin,time,seq,price,size\n"
ISIN = "KR7005930003"


def row(number: int) -> bytes:
    """A trade as CSV."""
    return b"KR7005930003,1773964804123456,%d,71900,3\n" % number


def make_reader() -> LineReader:
    """Return a reader of the plainest source."""
    return LineReader(LineOptions(), 1, lambda: 1)


def read_file(path: Path, content: bytes) -> tuple[int, Refusals]:
    """Return how many trades a file holds, and what was refused."""
    path.write_bytes(content)
    refusals = Refusals()
    parts = read_pipe(path, make_reader(), refusals)
    return sum(map(len, parts)), refusals


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """A named pipe."""
    path = tmp_path / "trades.fifo"
    os.mkfifo(path)
    return path


class Source:
    """A pipe that is read by a thread."""

    def __init__(self, path: Path, *, follow: bool = False) -> None:
        self.trades: list[tuple[str, bytes]] = []
        self.refusals = Refusals()
        self.is_over = self.is_left = False
        self._parts = read_pipe(path, make_reader(), self.refusals, follow=follow)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        for part in self._parts:
            self.trades += part
            if self.is_left:
                return
        self.is_over = True

    def leave(self) -> None:
        """Read no more."""
        self.is_left = True
        self._thread.join(10)


@pytest.fixture
def sources() -> Iterator[list[Source]]:
    """Sources that end with the test."""
    started: list[Source] = []
    yield started
    for source in started:
        source.leave()


def test_a_trade_that_comes_alone_is_there_at_once(
    fifo: Path, sources: list[Source]
) -> None:
    source = Source(fifo)
    sources.append(source)
    with fifo.open("wb", buffering=0) as pipe:
        pipe.write(HEADER + row(1) + row(2)[:10])
        eventually(lambda: len(source.trades) == 1)
        pipe.write(row(2)[10:])
        eventually(lambda: len(source.trades) == 2)
        pipe.write(row(3).rstrip(b"\n"))
    eventually(lambda: source.is_over)

    assert [isin for isin, _ in source.trades] == [ISIN] * 3


def test_a_followed_pipe_has_many_writers(fifo: Path, sources: list[Source]) -> None:
    source = Source(fifo, follow=True)
    sources.append(source)
    for number in range(3):
        with fifo.open("wb", buffering=0) as pipe:
            pipe.write((b"" if number else HEADER) + row(number))
        eventually(lambda number=number: len(source.trades) == number + 1)

    assert not source.is_over


def test_nothing_at_all_is_no_fault(tmp_path: Path) -> None:
    assert read_file(tmp_path / "empty", b"\n \n")[0] == 0


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        pytest.param(b"isin,px\n", "no column 'time'; trades need", id="header"),
        pytest.param(b"\x1f\x8b", "gzip damaged after line 0: ", id="gzip"),
        pytest.param(b"x" * 70_000, "...: over 65536 bytes in a line", id="long"),
        pytest.param(HEADER + b"1\n", "held no valid trade; line 2: bad", id="none"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, content: bytes, rule: str) -> None:
    path = tmp_path / "trades"
    with pytest.raises(PipeError) as caught:
        read_file(path, content)

    assert str(caught.value).startswith(f"{path}: ")
    assert rule in str(caught.value)


def test_a_path_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(PipeError, match="cannot be read: No such file"):
        list(read_pipe(tmp_path / "none", make_reader(), Refusals()))
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(PipeError, match="is no named pipe"):
        list(read_pipe(path, make_reader(), Refusals(), follow=True))
    with pytest.raises(PipeError, match="cannot be read: Is a directory"):
        list(read_pipe(tmp_path, make_reader(), Refusals()))
