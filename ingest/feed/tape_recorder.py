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
            plain = path.open("wb")
        except OSError as error:
            raise BadTapeFile(path, error.strerror or str(error)) from None
        self._path = path
        self._plain = plain
        is_packed = path.suffix == ".gz"
        self._file: IO[bytes] | gzip.GzipFile | None = (
            gzip.GzipFile("", "wb", _LEVEL, plain, mtime=0) if is_packed else plain
        )
        self._is_csv = ".csv" in path.suffixes
        self._columns: tuple[str, ...] = ()
        self.kept = self.left_out = 0

    def add(self, entries: Sequence[tuple[str, bytes]]) -> None:
        """Write what was appended."""
        if self._file is None:
            return
        payloads = [payload for _, payload in entries]
        try:
            if self._is_csv:
                self._file.write(self._rows(payloads))
            else:
                # A line of a tape is one entry, whatever is in it.
                lines = [payload.replace(b"\n", b" ") for payload in payloads]
                self._file.write(b"\n".join(lines) + b"\n")
                self.kept += len(lines)
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        """Finish the file and tell what is in it."""
        if self._file is None:
            return
        try:
            self._file.close()
            self._plain.close()
        except OSError as error:
            self._give_up(error)
            return
        self._file = None
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

    def _give_up(self, error: OSError) -> None:
        for file in (self._file, self._plain):
            with suppress(OSError, ValueError):
                if file is not None:
                    file.close()
        self._file = None
        log.error(
            "tape cannot be written, recording has ended",
            file=str(self._path),
            error=error.strerror or str(error),
            trades=self.kept,
        )


def _text(value: Any) -> str:
    if isinstance(value, JsonNumber):
        return value.text
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
