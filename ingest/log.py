"""What a trade log is: append-only partitions keyed by ISIN.

A log has P partitions. A partition is ordered, every entry has a position (a
64-bit number that only grows) and the append time the log's server gave it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from zlib import crc32


@dataclass(frozen=True, slots=True)
class LogInfo:
    """Identity of one log: a log that was emptied and refilled has another id."""

    log_id: str
    partitions: int
    created_ms: int


class Entry(NamedTuple):
    """One entry read back from a partition."""

    position: int
    append_time_ms: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of the log before a boundary, and the log server's clock.

    ``clock_ms`` was read before ``positions``: when it is at or past the boundary,
    no later append can land before it. ``positions[p]`` is the last position of
    partition p with an append time before the boundary, 0 if there is none.
    """

    clock_ms: int
    positions: tuple[int, ...]


class LogWriter(Protocol):
    """The appending side of a log."""

    dropped_at_cap: int
    """Entries this writer dropped to keep the log within its cap."""

    def append(self, entries: Sequence[tuple[str, bytes]]) -> int:
        """Append (ISIN, payload) pairs in order; return how many were acknowledged.

        All of an ISIN's entries go to one partition. Raises when the log's server
        did not acknowledge every entry.
        """


class LogReader(Protocol):
    """The reading side of a log."""

    info: LogInfo

    def clock_ms(self) -> int:
        """Return the log server's clock, milliseconds since 1970."""

    def tail(self, before_ms: int) -> Tail:
        """Return where the log stands, seen from the boundary ``before_ms``."""

    def read(self, partition: int, after: int, upto: int) -> Iterator[list[Entry]]:
        """Yield the entries with ``after < position <= upto``, in order, in chunks."""

    def oldest_ms(self) -> int | None:
        """Return the append time of the oldest entry, None for an empty log."""

    def trim(self, positions: Sequence[int], before_ms: int) -> None:
        """Drop entries at or below ``positions`` that were appended before a time."""


def partition_of(isin: str, partitions: int) -> int:
    """Return the partition of an issue: crc32 of the ISIN modulo P."""
    return crc32(isin.encode()) % partitions
