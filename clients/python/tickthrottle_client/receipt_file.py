"""Keeps the receipt of whoever appends in a file, as long as it appends."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tickthrottle_client.log_v1 import LogInfo
from tickthrottle_client.receipt_v1 import AppendTally, Receipt

EVERY_MS = 2_000


class Counts(Protocol):
    """What a receipt tells of a writer."""

    @property
    def dropped_at_cap(self) -> int:
        """Entries dropped to keep the log within its cap."""

    @property
    def refused(self) -> Mapping[str, int]:
        """Entries that are not in the log, by reason."""

    @property
    def tallies(self) -> Sequence[AppendTally]:
        """What became of all others, by partition."""


class ReceiptFile:
    """A file that is replaced as a whole: whoever reads it finds a complete receipt.

    ``on_failure`` is told once why the file cannot be written, and again at the end.
    """

    def __init__(
        self,
        path: Path,
        info: LogInfo,
        writer: Counts,
        now_ms: int,
        on_failure: Callable[[OSError], object],
    ) -> None:
        """Write the first receipt. Raises OSError."""
        self._path = path
        self._info = info
        self._writer = writer
        self._started_ms = now_ms
        self._on_failure = on_failure
        self._is_failing = False
        self._write(now_ms, ended=False)

    def renew(self, now_ms: int) -> None:
        """Write anew if the last receipt is a few seconds old."""
        if now_ms - self._written_ms >= EVERY_MS:
            self._try(now_ms, ended=False)

    def finish(self, now_ms: int) -> None:
        """Write the last receipt."""
        self._try(now_ms, ended=True)

    def _try(self, now_ms: int, ended: bool) -> None:
        # A full disk must not end the feed; the receipt before stays.
        try:
            self._write(now_ms, ended)
        except OSError as error:
            if ended or not self._is_failing:
                self._on_failure(error)
            self._is_failing = True
            self._written_ms = now_ms
        else:
            self._is_failing = False

    def _write(self, now_ms: int, ended: bool) -> None:
        writer = self._writer
        receipt = Receipt(
            log_id=self._info.log_id,
            started_ms=self._started_ms,
            written_ms=now_ms,
            ended=ended,
            refused=writer.refused,
            dropped_at_cap=writer.dropped_at_cap,
            partitions=tuple(writer.tallies),
        )
        part = self._path.with_name(f"{self._path.name}.part")
        part.write_bytes(receipt.encode())
        part.replace(self._path)
        self._written_ms = now_ms
