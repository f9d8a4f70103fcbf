"""Keeps a feed's receipt in a file while the feed runs."""

from pathlib import Path

import structlog

from ingest.feed.receipt import Receipt
from ingest.tradelog.contract import LogInfo, LogWriter

EVERY_MS = 2_000

log = structlog.get_logger()


class ReceiptFile:
    """A file that is replaced as a whole: whoever reads it finds a complete receipt."""

    def __init__(
        self, path: Path, info: LogInfo, writer: LogWriter, now_ms: int
    ) -> None:
        """Write the first receipt. Raises OSError."""
        self._path = path
        self._info = info
        self._writer = writer
        self._started_ms = now_ms
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
                log.warning("the report cannot be written", error=str(error))
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
