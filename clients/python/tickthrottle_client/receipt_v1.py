"""The receipt of whoever appends, for `tickthrottle reconcile`, and its file."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from tickthrottle_client.log_v1 import LogInfo

VERSION: Literal[1] = 1

EVERY_MS = 2_000

UNSENT = "unsent"
"""Why an entry is not in the log that its feed had not sent when it ended."""


@dataclass(slots=True)
class AppendTally:
    """What became of what one writer appended to one partition.

    ``first`` and ``last`` are where the acknowledged entries lie, as the log's server
    told it: positions of a Redis log, offsets of a topic. ``in_doubt`` is how many
    entries may be in the log beyond the acknowledged ones.
    """

    acknowledged: int = 0
    first: int | None = None
    last: int | None = None
    in_doubt: int = 0


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one feed appended to one log, as of ``written_ms``.

    While ``ended`` is false the feed runs, or was killed: then it may have appended
    more than is told here. The times are those of the feed's machine. No number is
    below 0.
    """

    version: Literal[1] = field(default=VERSION, kw_only=True)
    log_id: str
    """Identity of the log (``LogInfo.log_id``)."""
    started_ms: int
    written_ms: int
    """When this was written: once ``ended``, the feed's end."""
    ended: bool
    """Whether the feed is over and every number here final."""
    refused: Mapping[str, int]
    """Entries that the log could never take, by reason; they are not in it."""
    dropped_at_cap: int
    """Entries the feed dropped from the log's beginning to keep it within its cap."""
    partitions: tuple[AppendTally, ...]
    """What became of all others, by partition; there is one at least."""

    def encode(self) -> bytes:
        # A Counter would be made anew from pairs, which is not what it takes.
        """Return the receipt as JSON, for people and programs."""
        fields = {**asdict(self), "refused": dict(self.refused)}
        return json.dumps(fields, ensure_ascii=False, indent=2).encode() + b"\n"


class AppendCounts(Protocol):
    """What a receipt tells of a writer."""

    @property
    def dropped_at_cap(self) -> int:
        """Entries this writer dropped to keep the log within its cap."""

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
        writer: AppendCounts,
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
            *(self._info.log_id, self._started_ms, now_ms, ended),
            writer.refused,
            writer.dropped_at_cap,
            tuple(writer.tallies),
        )
        part = self._path.with_name(f"{self._path.name}.part")
        part.write_bytes(receipt.encode())
        part.replace(self._path)
        self._written_ms = now_ms
