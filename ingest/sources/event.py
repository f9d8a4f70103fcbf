"""What every feed is made of: payloads with a due time, and a tally of refusals."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from ingest.trade import InvalidTrade

SHOWN_REFUSALS = 5
"""How many refusals are kept in words; all of them are counted."""


class Event(NamedTuple):
    """One payload to append.

    ``due_us`` is when, in microseconds since the feed's start; it never goes back
    from one event to the next. ``key`` is the ISIN that picks the partition.
    """

    due_us: int
    key: str
    payload: bytes


@dataclass(slots=True)
class Refusals:
    """Rows that were refused before they became events: counts and a few examples."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def add(self, line: int, error: InvalidTrade, of: str = "line") -> None:
        """Count a refused row under its reason, with the line it stands on."""
        self.counts[error.reason] += 1
        if len(self.examples) < SHOWN_REFUSALS:
            self.examples.append(f"{of} {line}: {error.reason}: {error}")

    def by_reason(self) -> Counter[str]:
        """Return a copy of the counts; any thread may ask for it."""
        return self.counts.copy()

    @property
    def total(self) -> int:
        """Number of refused rows."""
        return self.counts.total()
