"""What every feed is made of: payloads with a due time, and a tally of refusals."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from ingest.records.leave_out import LeftOut
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
    """Rows that were refused before they became events: counts and a few examples.

    Rows that are left out on purpose are counted beside them, by their condition.
    """

    counts: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    unknown_conditions: Counter[str] = field(default_factory=Counter)
    """Sale conditions that no table has, of trades that were taken."""

    def add(self, line: int, error: InvalidTrade, of: str = "line") -> None:
        """Count a refused row under its reason, with the line it stands on."""
        if isinstance(error, LeftOut):
            self.left_out[error.condition] += 1
            return
        self.counts[error.reason] += 1
        if len(self.examples) < SHOWN_REFUSALS:
            self.examples.append(f"{of} {line}: {error.reason}: {error}")

    def take_over(self, other: "Refusals") -> None:
        """Add another tally to this one."""
        self.counts.update(other.counts)
        self.left_out.update(other.left_out)
        self.unknown_conditions.update(other.unknown_conditions)
        room = SHOWN_REFUSALS - len(self.examples)
        self.examples.extend(other.examples[:room])

    def by_reason(self) -> Counter[str]:
        """Return a copy of the counts, for any thread."""
        return self.counts.copy()

    @property
    def total(self) -> int:
        """Number of refused rows."""
        return self.counts.total()
