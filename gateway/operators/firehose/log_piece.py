"""What a look at the end of the trade log brings, and how much one may bring. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

MOST_ENTRIES = 250
"""Most entries that one look reads, of all partitions together."""

MOST_BYTES = 262_144
"""About the most bytes that one look reads; see ``ReadBudget``."""

FIRST_ENTRIES = 64
"""Entries that the first look reads: how large they are is not known yet."""

GROWTH = 4
"""A look reads at most this many times the entries of the look before."""


class LogUnseen(Exception):
    """The log cannot be looked at; the message is a sentence that says why."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry of the log."""

    append_ms: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class LogPiece:
    """What was appended since the look before: ``appended`` entries by the log's count.

    ``entries`` are the newest of them, in the order of their append times, no more
    than one look may read.
    """

    appended: int = 0
    entries: Sequence[LogEntry] = ()

    @property
    def read_bytes(self) -> int:
        """How many bytes the entries have that were read."""
        return sum(len(entry.payload) for entry in self.entries)


def share_out(appended: Mapping[int, int], most: int) -> dict[int, int]:
    """Return how many of the newest entries to read of each partition that grew.

    All if they are ``most`` or fewer, otherwise a part in proportion, at least one.
    """
    grown = {p: count for p, count in appended.items() if count > 0}
    total = sum(grown.values())
    if total <= most:
        return grown
    return {p: max(1, count * most // total) for p, count in grown.items()}


class LogEnd(Protocol):
    """The end of the trade log, looked at again and again while somebody watches."""

    def begin(self) -> None:
        """Forget the look before: the next one is the first."""

    async def look(self, most: int) -> LogPiece:
        """Return what came since the look before, reading about ``most`` entries.

        The first look brings nothing. Raises LogUnseen.
        """


class ReadBudget:
    """How many entries a look may read.

    A log cannot be asked for "so many bytes". So the number goes by the mean size of
    the entries that were read last, and grows at most fourfold: where large entries
    hide behind small ones, one look may read more than ``MOST_BYTES``.
    """

    def __init__(self) -> None:
        self.entries = FIRST_ENTRIES
        self.mean_bytes = 0.0

    def learn(self, piece: LogPiece) -> None:
        """Take in how large the entries of a look were."""
        if not piece.entries:
            return
        self.mean_bytes = piece.read_bytes / len(piece.entries)
        fitting = int(MOST_BYTES / max(1.0, self.mean_bytes))
        self.entries = max(1, min(MOST_ENTRIES, self.entries * GROWTH, fitting))

    def bytes_of(self, piece: LogPiece) -> int:
        """Return how many bytes were appended.

        Those of entries that were not read are estimated, by the mean of the others.
        """
        unread = piece.appended - len(piece.entries)
        return piece.read_bytes + round(unread * self.mean_bytes)
