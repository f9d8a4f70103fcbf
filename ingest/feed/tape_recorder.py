"""Keep what a feed appends as a tape, which ``replay`` plays again."""

import csv
import gzip
import io
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import structlog

from ingest.trade import REQUIRED, InvalidTrade, JsonNumber, Trade

_LEVEL = 1
_FORMS = (".csv", ".csv.gz", ".jsonl", ".jsonl.gz")

log = structlog.get_logger()


class BadTapeFile(ValueError):
    """A tape that cannot be written; names the file and the rule."""

    def __init__(self, path: Path, rule: str) -> None:
        super().__init__(f"record {path}: {rule}")


class RecordedFile:
    """A file a feed writes; a full disk ends the recording alone, and is said once."""

    def __init__(self, path: Path, what: str, *, is_packed: bool) -> None:
        """Make the file anew. ``what`` it is called in logs. Raises OSError."""
        self._path, self._what = path, what
        self._plain = path.open("wb")
        self._file: IO[bytes] | gzip.GzipFile | None = self._plain
        if is_packed:
            self._file = gzip.GzipFile("", "wb", _LEVEL, self._plain, mtime=0)

    @property
    def is_open(self) -> bool:
        """Whether it is still written."""
        return self._file is not None

    @property
    def size(self) -> int:
        """Bytes that are in the file, as far as they were written out."""
        return self._plain.tell()

    def write(self, content: bytes) -> bool:
        """Write to an open file; False if that has ended the recording."""
        try:
            if self._file is not None:
                self._file.write(content)
        except OSError as error:
            self._give_up(error)
        return self.is_open

    def close(self) -> bool:
        """Finish an open file; False if that failed."""
        try:
            if self._file is not None:
                self._file.close()
                self._plain.close()
        except OSError as error:
            self._give_up(error)
            return False
        self._file = None
        return True

    def _give_up(self, error: OSError) -> None:
        for file in (self._file, self._plain):
            with suppress(OSError, ValueError):
                if file is not None:
                    file.close()
        self._file = None
        log.error(
            f"{self._what} cannot be written, recording has ended",
            file=str(self._path),
            error=error.strerror or str(error),
        )


class TapeFile:
    """A tape while it is written. The file's name tells its form.

    JSON lines keep every trade as it was appended, and entries that are no trades, too.
    CSV has the further fields of the first trade as columns; what it cannot keep is
    counted in ``left_out`` and told at the end. A disk that is full ends the recording,
    not the feed.
    """

    def __init__(self, path: Path) -> None:
        """Make the file anew. Raises BadTapeFile."""
        if not path.name.endswith(_FORMS):
            raise BadTapeFile(path, f"its name must end in one of {', '.join(_FORMS)}")
        try:
            self._file = RecordedFile(path, "tape", is_packed=path.suffix == ".gz")
        except OSError as error:
            raise BadTapeFile(path, error.strerror or str(error)) from None
        self._path = path
        self._is_csv = ".csv" in path.suffixes
        self._columns: tuple[str, ...] = ()
        self.kept = self.left_out = 0

    def add(self, entries: Sequence[tuple[str, bytes]]) -> None:
        """Write what was appended."""
        if not self._file.is_open:
            return
        payloads = [payload for _, payload in entries]
        if self._is_csv:
            self._file.write(self._rows(payloads))
        else:
            # A line of a tape is one entry, whatever is in it.
            lines = [payload.replace(b"\n", b" ") for payload in payloads]
            if self._file.write(b"\n".join(lines) + b"\n"):
                self.kept += len(lines)

    def close(self) -> None:
        """Finish the file and tell what is in it."""
        if self._file.is_open and self._file.close():
            log.info(
                "tape recorded",
                file=str(self._path),
                trades=self.kept,
                left_out=self.left_out,
            )

    def _rows(self, payloads: Sequence[bytes]) -> bytes:
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        for payload in payloads:
            try:
                trade = Trade.from_wire(payload)
            except InvalidTrade:
                self.left_out += 1
                continue
            if not self._columns:
                self._columns = (*REQUIRED, *trade.extra)
                writer.writerow(self._columns)
            if not trade.extra.keys() <= set(self._columns):
                self.left_out += 1
                continue
            own = (trade.isin, trade.time_us, trade.seq, trade.price, trade.size)
            further = map(trade.extra.get, self._columns[len(REQUIRED) :])
            writer.writerow((*own, *map(_text, further)))
            self.kept += 1
        return text.getvalue().encode()


def _text(value: Any) -> str:
    if isinstance(value, JsonNumber):
        return value.text
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
