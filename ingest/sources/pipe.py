"""A pipe, or a file, as a source: each of its lines is a trade, read as it comes."""

import os
import select
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from ingest.sources.event import Refusals
from ingest.sources.trade_lines import (
    BOM,
    GZIP_MAGIC,
    MAX_LINE_BYTES,
    BadHeader,
    LineOptions,
    LineReader,
    numbered_lines,
    whole_line,
)
from ingest.trade import InvalidTrade

STANDARD_INPUT = Path("-")

_PIECE_BYTES = 262_144
_LOOK_UP_S = 0.2

log = structlog.get_logger()


class PipeOptions(LineOptions):
    """How a pipe is read."""

    issues_file: Path | None = None
    """Issue list, as CSV: it tells the ISINs of codes and other symbols."""

    follow: bool = False
    """Wait for the next writer of a named pipe when one has closed it."""


class PipeError(ValueError):
    """A source that cannot be read; names it and the rule."""

    def __init__(self, path: Path, rule: str) -> None:
        super().__init__(f"{_name(path)}: {rule}")


def read_pipe(
    path: Path, reader: LineReader, refusals: Refusals, *, follow: bool = False
) -> Iterator[list[tuple[str, bytes]]]:
    """Yield ISINs with their trades as they come, until the source ends.

    What one read brought comes together: while nothing comes, an empty list does,
    several times a second. ``path`` is a named pipe, a file, or ``-``: standard input.
    With ``follow`` a named pipe does not end with its writer, another may come. A line
    that is no trade is counted in ``refusals``, with its number, and loses nothing
    else. Raises PipeError for what cannot be read, or has a header without what a
    trade needs, and at the end if there were lines and not one of them was a trade.
    """
    accepted = has_begun = False
    for lines in numbered_lines(_pieces(path, follow=follow)):
        entries: list[tuple[str, bytes]] = []
        for number, line in lines:
            if not has_begun:
                has_begun = True
                if _begin(path, reader, line):
                    continue
            try:
                entries.append(reader.read(whole_line(line)))
            except InvalidTrade as error:
                refusals.add(number, error)
        accepted = accepted or bool(entries)
        yield entries
    if refusals.total and not accepted:
        raise PipeError(path, f"held no valid trade; {refusals.examples[0]}")


def _begin(path: Path, reader: LineReader, first: bytes | None) -> bool:
    if first is None:
        raise PipeError(path, f"its first line has over {MAX_LINE_BYTES} bytes")
    try:
        is_header = reader.begin(first)
    except BadHeader as error:
        raise PipeError(path, str(error)) from None
    if reader.numbers_by_arrival:
        log.info("the source has no seq: trades are numbered as they come")
    return is_header


def _pieces(path: Path, *, follow: bool) -> Iterator[bytes]:
    """Yield what each read brings, and nothing whenever nothing came for a while."""
    is_first = True
    try:
        with _opened(path, follow=follow) as descriptor:
            while True:
                if not select.select([descriptor], [], [], _LOOK_UP_S)[0]:
                    yield b""
                    continue
                piece = os.read(descriptor, _PIECE_BYTES)
                if not piece:
                    return
                if is_first:
                    is_first = False
                    if piece.startswith(GZIP_MAGIC):
                        raise PipeError(path, "is gzip: have `zcat` unpack it first")
                    piece = piece.removeprefix(BOM)
                yield piece
    except OSError as error:
        raise PipeError(path, f"cannot be read: {error.strerror or error}") from error


@contextmanager
def _opened(path: Path, *, follow: bool) -> Iterator[int]:
    if path == STANDARD_INPUT:
        yield 0
        return
    is_fifo = stat.S_ISFIFO(path.stat().st_mode)
    if follow and not is_fifo:
        raise PipeError(path, "is no named pipe: only one can be followed")
    # Not waiting for a writer, and with `follow` being one, so that it never ends.
    descriptor = os.open(path, os.O_RDWR if follow else os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.set_blocking(descriptor, True)
        yield descriptor
    finally:
        os.close(descriptor)


def _name(path: Path) -> str:
    return "standard input" if path == STANDARD_INPUT else str(path)
