"""Where a window ends in the log, and when it may be cut there. Pure.

Windows are ``[k*W, (k+1)*W)`` of append time, aligned to 1970 and named by their
end. A cut is the end of a window together with the last position before it in every
partition; two cuts bound what one batch reads. Clock and positions come in as
arguments.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ingest.tradelog.contract import Head, Ranges, Tail

NOWHERE = -1
"""A position before any other: of a partition that was added to the log later on."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of a window and, per partition, the last position inside it.

    ``partitions`` are those of the log that the job reads, in order; 0, 1, 2 and so on
    unless given. ``counts`` are the log's own numbers of entries up to there, None if
    unknown: the ledger compares with them what was read. ``instruments`` is the version
    of the instrument table with which the windows up to there were joined, 0 if there
    was none.
    """

    end_ms: int
    positions: tuple[int, ...]
    counts: tuple[int | None, ...]
    partitions: tuple[int, ...] = ()
    instruments: int = 0

    def __post_init__(self) -> None:
        if not self.partitions:
            object.__setattr__(self, "partitions", tuple(range(len(self.positions))))

    def position(self, partition: int) -> int:
        """Return a partition's last position, ``NOWHERE`` of one not in the cut."""
        if partition not in self.partitions:
            return NOWHERE
        return self.positions[self.partitions.index(partition)]

    def count(self, partition: int) -> int | None:
        """Return the log's own count of a partition; 0 of one not in the cut."""
        if partition not in self.partitions:
            return 0
        return self.counts[self.partitions.index(partition)]

    def to_offset(self) -> dict[str, int]:
        """Encode as a flat Spark offset, always in the same key order.

        Spark compares offsets as text. An unknown count is -1. Without an instrument
        table nothing is said of its version.
        """
        offset = {"end_ms": self.end_ms}
        if self.instruments:
            offset["instruments"] = self.instruments
        for partition, position in zip(self.partitions, self.positions, strict=True):
            offset[f"p{partition}"] = position
        for partition, count in zip(self.partitions, self.counts, strict=True):
            offset[f"n{partition}"] = -1 if count is None else count
        return offset

    @classmethod
    def from_offset(cls, offset: Mapping[str, Any]) -> "Cut":
        """Decode what ``to_offset`` wrote."""
        partitions = tuple(sorted(int(name[1:]) for name in offset if name[0] == "p"))
        counts = (int(offset[f"n{p}"]) for p in partitions)
        return cls(
            int(offset["end_ms"]),
            tuple(int(offset[f"p{p}"]) for p in partitions),
            tuple(None if count < 0 else count for count in counts),
            partitions,
            int(offset.get("instruments", 0)),
        )


def between(start: Cut, end: Cut, partitions: Iterable[int]) -> Ranges:
    """Return what lies between two cuts, for those partitions where it is anything."""
    ranges = {p: (start.position(p), end.position(p)) for p in partitions}
    return {p: (after, upto) for p, (after, upto) in ranges.items() if after < upto}


def origin(head: Head, clock_ms: int, window_ms: int) -> Cut:
    """Return the cut from which a new job starts: before all that the log holds."""
    first_ms = clock_ms if head.oldest_ms is None else min(head.oldest_ms, clock_ms)
    end_ms = first_ms // window_ms * window_ms
    return Cut(end_ms, head.positions, head.counts, head.partitions)


def newest_cut(tail: Tail, end_ms: int) -> Cut:
    """Return the cut from which a new job starts that is to leave out the past.

    ``tail`` is the log's end before ``end_ms``, a boundary that has passed.
    """
    return Cut(end_ms, tail.positions, tail.counts, tail.partitions)


def wait_ms(previous_end_ms: int, clock_ms: int, window_ms: int) -> int:
    """Return how long until the next window may be cut, 0 if one may be now."""
    return max(0, previous_end_ms + window_ms - clock_ms)


def next_end(
    previous_end_ms: int, clock_ms: int, window_ms: int, max_windows: int
) -> int:
    """Return the end of the last window that the next batch shall cut.

    It is the newest boundary the log server's clock has passed, at most ``max_windows``
    after the previous one, and the very next one if it has passed none yet.
    """
    windows = (clock_ms - previous_end_ms) // window_ms
    return previous_end_ms + max(1, min(windows, max_windows)) * window_ms


def may_be_cut(end_ms: int, tail: Tail) -> bool:
    """Tell whether a window may be cut where the log's end before ``end_ms`` is.

    The tail's clock was read first: at or past the boundary nothing can be appended
    before it any more. Only a server whose clock was set back could; such a straggler
    falls into the next window.
    """
    return tail.clock_ms >= end_ms


def advance(previous: Cut, end_ms: int, tail: Tail) -> Cut:
    """Return the cut of a tail's partitions at ``end_ms``.

    While it must not be cut there yet (``may_be_cut``), this is how far the window can
    be read.
    """
    ends = zip(tail.partitions, tail.positions, strict=True)
    positions = tuple(max(previous.position(p), position) for p, position in ends)
    return Cut(end_ms, positions, tail.counts, tail.partitions)


def window_time_ms(append_time_ms: int, previous_end_ms: int, end_ms: int) -> int:
    """Return the append time by which an entry between two cuts is put into a window.

    A straggler, stamped before a cut it appeared behind, counts as appended at the
    start of the window that follows the cut: every trade is in exactly one window. An
    entry stamped at or past the cut it stands before, which only a log that lets its
    writers stamp can hold, counts as appended just before it.
    """
    return min(max(append_time_ms, previous_end_ms), end_ms - 1)


def window_end(
    append_time_ms: int, previous_end_ms: int, end_ms: int, window_ms: int
) -> int:
    """Return the end of the window that an entry between two cuts is in."""
    counted_ms = window_time_ms(append_time_ms, previous_end_ms, end_ms)
    return counted_ms - counted_ms % window_ms + window_ms


def window_ends(previous_end_ms: int, end_ms: int, window_ms: int) -> range:
    """Return the ends of the windows between two cuts, oldest first."""
    return range(previous_end_ms + window_ms, end_ms + 1, window_ms)
