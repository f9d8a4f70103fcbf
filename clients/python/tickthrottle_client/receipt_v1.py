"""The receipt of whoever appends, for `tickthrottle reconcile`. Pure."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

VERSION: Literal[1] = 1

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
        """Return the receipt as JSON, for people and programs."""
        # A Counter would be made anew from pairs, which is not what it takes.
        fields = {**asdict(self), "refused": dict(self.refused)}
        return json.dumps(fields, ensure_ascii=False, indent=2).encode() + b"\n"
