"""What a trade log is: append-only partitions keyed by ISIN.

A log has P partitions. A partition is ordered, every entry has a position (a
64-bit number that only grows) and the append time the log's server gave it. What those
who append need, too, is stated in ``tickthrottle_client/log_v1.py``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from tickthrottle_client.log_v1 import LogAway, LogInfo, LogUnusable, partition_of
from tickthrottle_client.receipt_v1 import AppendCounts, AppendTally

if TYPE_CHECKING:
    # Whoever only needs to know what a position is should not load a library for it.
    import pyarrow as pa

__all__ = ["AppendTally", "LogAway", "LogInfo", "LogUnusable", "partition_of"]

LogKind = Literal["redis", "kafka"]
"""What a log is kept in."""


PIECE_BYTES = 8 * 2**20
"""About so many bytes of entries a reader asks for at a time."""


NO_SERVER = ""
"""The server's name of a log that loses nothing when another one answers."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive entries of one partition, as columns of equal length.

    ``positions`` and ``append_ms`` are int64, ``payloads`` binary. With this chunk its
    partition is read up to ``upto``. ``blanks`` positions among those hold no entry and
    never will: a log may use some for itself, or drop entries whose key came again.
    """

    positions: "pa.Array"
    append_ms: "pa.Array"
    payloads: "pa.Array"
    upto: int
    blanks: int = 0

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of the log: the oldest append time, None for an empty log.

    ``positions[i]`` is just before the first entry of the i-th of ``partitions``, and
    ``counts[i]`` is how many entries it has had before those it still holds.
    """

    oldest_ms: int | None
    partitions: tuple[int, ...]
    positions: tuple[int, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of the log before a boundary, and the log server's clock.

    ``clock_ms`` was read before ``positions``: when it is at or past the boundary,
    no later append can land before it. ``positions[i]`` is the last position of the
    i-th of ``partitions`` with an append time before the boundary, or anything smaller
    than its first one if there is none. ``counts[i]`` is the log's own count of the
    entries up to there, from its very first one, None where finding out would take too
    long.
    """

    clock_ms: int
    partitions: tuple[int, ...]
    positions: tuple[int, ...]
    counts: tuple[int | None, ...]


class LogWriter(AppendCounts, Protocol):
    """The appending side of a log; what it refused, the log can never take."""

    def append(self, entries: Sequence[tuple[str, bytes]]) -> int:
        """Append (ISIN, payload) pairs in order; return how many were acknowledged.

        All of an ISIN's entries go to one partition. Every entry is acknowledged or
        refused when this returns. Raises LogAway when the log's server was silent for
        about a second: the entries are under way still, and to append the very same
        list object again only waits on for them. Until that has returned, nothing
        else may be appended. After any other error the very same list again appends
        what the log is not known to have.
        """

    def abandon(self) -> None:
        """Give up what is still under way: it is in doubt from now on."""


Ranges = Mapping[int, tuple[int, int]]
"""What to read: by partition, the position after which to begin, and the last one."""


class LogReader(Protocol):
    """The reading side of a log, or of some of its partitions.

    Methods raise LogAway, or what the log's client raises for it, and LogUnusable.
    """

    info: LogInfo
    margin_ms: int
    """How far ``clock_ms`` is held back, because other clocks stamp the entries."""

    def clock_ms(self) -> int:
        """Return the log server's clock, milliseconds since 1970."""

    def server_id(self) -> str:
        """Return which process answers, NO_SERVER where what was read is never lost.

        Another one, as after a fail-over, may lack entries that were read already.
        """

    def partitions(self) -> tuple[int, ...]:
        """Return the partitions that it looks at, those too that were just added."""

    def tail(self, before_ms: int, partitions: Sequence[int] = ()) -> Tail:
        """Return where some partitions stand before a boundary; all unless given."""

    def positions_at(
        self, time_ms: int, partitions: Sequence[int] = ()
    ) -> Mapping[int, int]:
        """Return for some partitions the last position before a time that is over.

        All unless given. It need not be that of an entry.
        """

    def read(self, ranges: Ranges) -> Iterator[tuple[int, Chunk]]:
        """Yield the entries with ``after < position <= upto``, by partition, in chunks.

        Those of a partition come in order; which partition comes when is not said.
        """

    def head(self) -> Head:
        """Return where the log begins."""

    def trim(self, positions: Mapping[int, int], before_ms: int) -> None:
        """Drop entries at or below ``positions`` that were appended before a time."""
