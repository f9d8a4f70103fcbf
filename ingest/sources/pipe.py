"""A pipe, or a file, as a source: its records are trades, read as they come."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import structlog

from ingest.files.file_kind import DamagedFile, Unreadable
from ingest.files.open_pieces import STANDARD_INPUT, read_pieces
from ingest.files.records import BadHeader, cut_records
from ingest.sources.event import Refusals
from ingest.sources.trade_lines import LineOptions, LineReader, begin, read_records

T = TypeVar("T")

log = structlog.get_logger()


class PipeOptions(LineOptions):
    """How a pipe is read."""

    follow: bool = False
    """Wait for the next writer of a named pipe when one has closed it."""


class PipeError(ValueError):
    """A source that cannot be read; names it and the rule."""

    def __init__(self, path: Path, rule: str) -> None:
        name = "standard input" if path == STANDARD_INPUT else str(path)
        super().__init__(f"{name}: {rule}")
        self.rule = rule


def read_pipe(
    path: Path, reader: LineReader, refusals: Refusals, *, follow: bool = False
) -> Iterator[list[tuple[str, bytes]]]:
    """Yield ISINs with their trades as they come, until the source ends.

    As ``read_source``. Raises PipeError, too, if there were records and not one of them
    was a trade.
    """
    accepted = False
    source = read_source(
        *(path, reader, refusals, reader.read, reader.read_fields), follow=follow
    )
    for entries in source:
        accepted = accepted or bool(entries)
        yield entries
    if refusals.total and not accepted:
        raise PipeError(path, f"held no valid trade; {refusals.examples[0]}")


def read_source(
    path: Path,
    reader: LineReader,
    refusals: Refusals,
    read: Callable[[bytes], T],
    finish: Callable[[dict[str, Any]], T],
    *,
    follow: bool = False,
) -> Iterator[list[T]]:
    """Yield what ``read`` makes of the records of a source, and ``finish`` of the
    trades of those that are lists, until it ends.

    What one read of the source (``read_pieces``) brought comes together: while nothing
    comes from a plain pipe, an empty list does, several times a second. A record that
    is no trade is counted in ``refusals``, with the number of its line, and loses
    nothing else. Raises PipeError for what cannot be read, breaks off, or has a header
    without what a trade needs.
    """
    number, has_begun = 0, False
    form = reader.form
    pieces = read_pieces(path, form.encoding, follow=follow)
    try:
        for records in cut_records(pieces, form.delimiter, no_quotes=form.no_quotes):
            if records and not has_begun:
                has_begun = True
                records = begin(reader, records)
                _tell_names(reader)
            number = records[-1][0] if records else number
            yield read_records(records, reader, refusals, read, finish)
    except DamagedFile as error:
        rule, _, detail = str(error).partition(":")
        raise PipeError(path, f"{rule} after line {number}:{detail}") from error
    except (BadHeader, Unreadable) as error:
        raise PipeError(path, str(error)) from None
    except OSError as error:
        raise PipeError(path, f"cannot be read: {error.strerror or error}") from error


def _tell_names(reader: LineReader) -> None:
    names = {field: name for field, name in reader.taken_names.items() if field != name}
    if reader.form.map.items() != names.items():
        log.info("names taken", **names)
    if reader.numbers_by_arrival:
        log.info("the source has no seq: trades are numbered as they come")
