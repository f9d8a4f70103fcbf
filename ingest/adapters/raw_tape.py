"""Raw tapes: the frames of an exchange as they came, to be played again.

JSON lines, packed with gzip. A line with ``open`` says that a connection was opened,
with its symbols; one with ``text`` or ``base64`` holds a frame. ``at`` is when it came,
in microseconds, ``on`` the connection. What was sent is not recorded, and of what came
no key is (``Adapter.without_secrets``).
"""

import gzip
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import structlog

from ingest.adapters.adapter import Frame
from ingest.feed.tape_recorder import RecordedFile

MAX_LINE_BYTES = 96 * 2**20
_CHECK_EVERY = 256

log = structlog.get_logger()


class RawTapeError(ValueError):
    """A raw tape that cannot be written or read; names the file and the rule."""

    def __init__(self, path: Path, rule: str) -> None:
        super().__init__(f"raw tape {path}: {rule}")


class Opened(NamedTuple):
    """A connection was opened."""

    on: int
    symbols: tuple[str, ...]
    adapter: str


class Received(NamedTuple):
    """A frame came."""

    on: int
    at_us: int
    frame: Frame


RAW_TAPE_BYTES = 1_000_000_000
"""Most bytes of a raw tape; then its recording ends."""


class RawRecorder:
    """Writes frames to a file until it has ``most_bytes``; then it says so, and ends.

    A disk that is full ends the recording, not the feed. Raises RawTapeError if the
    file cannot be made.
    """

    def __init__(self, path: Path, adapter: str, most_bytes: int) -> None:
        try:
            self._file = RecordedFile(path, "raw tape", is_packed=True)
        except OSError as error:
            raise RawTapeError(path, error.strerror or str(error)) from None
        self._path = path
        self._adapter = adapter
        self._most_bytes = most_bytes
        self._lines = 0

    def opened(self, on: int, at_us: int, symbols: Sequence[str]) -> None:
        fields = {"at": at_us, "on": on, "open": self._adapter, "symbols": [*symbols]}
        self._write(fields)

    def received(self, on: int, at_us: int, frame: Frame) -> None:
        try:
            text = frame if isinstance(frame, str) else frame.decode()
            fields = {"at": at_us, "on": on, "text": text}
        except UnicodeDecodeError:
            data = b64encode(frame).decode()  # type: ignore[arg-type]
            fields = {"at": at_us, "on": on, "base64": data}
        self._write(fields)

    def close(self) -> None:
        self._file.close()

    def _write(self, fields: dict[str, Any]) -> None:
        is_open = self._file.is_open
        if not (is_open and self._file.write(orjson.dumps(fields) + b"\n")):
            return
        self._lines += 1
        if self._lines % _CHECK_EVERY == 0 and self._file.size >= self._most_bytes:
            self.close()
            log.warning(
                "raw tape is full, recording has ended",
                file=str(self._path),
                bytes=self._most_bytes,
                lines=self._lines,
            )


def read_raw(path: Path) -> Iterator[Opened | Received]:
    """Yield what a raw tape holds, in order. Raises RawTapeError."""
    number = 0
    try:
        with path.open("rb") as plain, gzip.GzipFile(fileobj=plain) as packed:
            for number, line in enumerate(_lines(path, packed), 1):
                yield _parse(path, number, line)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RawTapeError(path, f"gzip damaged after line {number}: {error}") from None
    except OSError as error:
        raise RawTapeError(path, f"cannot be read: {error.strerror or error}") from None
    if not number:
        raise RawTapeError(path, "holds nothing")


def _lines(path: Path, packed: gzip.GzipFile | BufferedReader) -> Iterator[bytes]:
    while line := packed.readline(MAX_LINE_BYTES):
        if len(line) == MAX_LINE_BYTES:
            raise RawTapeError(path, f"has a line of over {MAX_LINE_BYTES} bytes")
        yield line


def _parse(path: Path, number: int, line: bytes) -> Opened | Received:
    try:
        fields = orjson.loads(line)
        on = int(fields["on"])
        if "open" in fields:
            symbols = tuple(str(symbol) for symbol in fields["symbols"])
            return Opened(on, symbols, str(fields["open"]))
        at_us = int(fields["at"])
        if "text" in fields:
            return Received(on, at_us, str(fields["text"]))
        return Received(on, at_us, b64decode(fields["base64"], validate=True))
    except (ValueError, KeyError, TypeError) as error:
        told = f"{type(error).__name__}: {error}"
        raise RawTapeError(path, f"line {number} is none of one: {told}") from None
