"""What a partition of the trade log holds, counted entry by entry. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stock:
    """A partition that was read from its first mark, or its beginning, to its end.

    ``gone`` is how many entries and blanks it has had before those it still holds, and
    nothing at or before ``gone_upto`` is left. ``counts`` says how many of its
    ``entries`` stand at or before each mark. In a dense log every position is an
    entry or a blank.
    """

    gone: int
    gone_upto: int
    is_dense: bool
    entries: int
    counts: Mapping[int, int]

    def between(self, after: int, upto: int) -> int:
        """Return the number of entries between two marks."""
        return max(0, self.counts[upto] - self.counts[after])

    def behind(self, after: int) -> int:
        """Return the number of entries behind a mark."""
        return self.entries - self.counts[after]

    def blanks(self, after: int, upto: int) -> int:
        """Return the number of blanks between two marks, of those that are left."""
        left = upto - max(after, self.gone_upto)
        if not self.is_dense or left <= 0:
            return 0
        return left - self.between(after, upto)


class Census:
    """Counts the entries at or before some marks, as they are read."""

    def __init__(self, marks: Iterable[int]) -> None:
        self._counts = dict.fromkeys(sorted(marks), 0)
        self._entries = 0

    def add(self, positions: Sequence[int]) -> None:
        """Count some entries by their positions, which go up."""
        self._entries += len(positions)
        for mark in self._counts:
            self._counts[mark] += bisect_right(positions, mark)

    def take(self, gone: int, gone_upto: int, is_dense: bool) -> Stock:
        """Return what was counted."""
        return Stock(gone, gone_upto, is_dense, self._entries, dict(self._counts))

    @property
    def entries(self) -> int:
        """How many entries were counted so far."""
        return self._entries
