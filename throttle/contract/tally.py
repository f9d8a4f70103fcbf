"""The books of the analytics job: what became of every trade a query read. Pure.

``read + extra = counted + too_late + refused + skipped``, per partition of the log, at
every batch. What the log had dropped before the query could read it is ``missed``: by
the log's own count it is no part of ``read``.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise

import orjson

from throttle.contract.cut import Cut

BY_NAME = ("refused", "skipped")
"""What has a number for each reason or name."""


@dataclass(slots=True)
class QueryTally:
    """What a query read of one partition, and what became of it.

    ``read`` counts entries, ``extra`` the trades beyond the first of an entry,
    ``skipped`` entries that are no trades, by the decoder's name. ``counted`` are the
    trades in the query's windows. ``too_late`` came when all their windows were over
    for good. ``taken_back`` are counted trades that are in no window any more,
    ``not_taken_back`` entries that take back what is not known, or is in no window
    that may change. ``blanks`` are positions of the log that hold no entry.
    """

    read: int = 0
    extra: int = 0
    counted: int = 0
    too_late: int = 0
    missed: int = 0
    blanks: int = 0
    taken_back: int = 0
    not_taken_back: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def unaccounted(self) -> int:
        """Return how many trades nobody knows anything of; 0 if it balances."""
        by_name = self.refused.total() + self.skipped.total()
        return self.read + self.extra - self.counted - self.too_late - by_name

    def add(self, other: "QueryTally") -> None:
        """Add another one of the same partition."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in BY_NAME:
            getattr(self, name).update(getattr(other, name))

    def items(self) -> Mapping[str, int]:
        """Return every number that is not 0, by its field of the hash."""
        numbers = {name: getattr(self, name) for name in COUNTS}
        for of in BY_NAME:
            numbers |= {f"{of}:{name}": n for name, n in getattr(self, of).items()}
        return {name: n for name, n in numbers.items() if n}

    @classmethod
    def of_items(cls, items: Mapping[str, int]) -> "QueryTally":
        """Return what ``items`` was made of."""
        tally = cls()
        for name, number in items.items():
            of, _, which = name.partition(":")
            if which:
                getattr(tally, of)[which] += number
            else:
                setattr(tally, of, number)
        return tally


COUNTS = tuple(f.name for f in fields(QueryTally) if f.name not in BY_NAME)
"""What is one number in each partition's tally."""


@dataclass(frozen=True, slots=True)
class BatchNote:
    """What a batch has read: from which cut to which, and its books by partition."""

    start: Cut
    end: Cut
    tallies: Mapping[int, QueryTally]

    def encode(self) -> str:
        """Encode as JSON text; ``decode`` gives back an equal one."""
        fields = {
            "start": self.start.to_offset(),
            "end": self.end.to_offset(),
            "tallies": {str(p): dict(t.items()) for p, t in self.tallies.items()},
        }
        return orjson.dumps(fields).decode()

    @classmethod
    def decode(cls, text: str | bytes) -> "BatchNote":
        """Decode what ``encode`` wrote. Raises ValueError."""
        values = orjson.loads(text)
        try:
            return cls(
                Cut.from_offset(values["start"]),
                Cut.from_offset(values["end"]),
                {int(p): QueryTally.of_items(n) for p, n in values["tallies"].items()},
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"note {text[:200]!r}: {error!r}") from None


def join_notes(notes: list[BatchNote]) -> BatchNote:
    """Return what several tasks, or several batches in a row, have read in all.

    Raises ValueError if they do not follow one another, or if there are none.
    """
    spans = sorted({(n.start.end_ms, n.end.end_ms) for n in notes})
    if not spans or any(a[1] != b[0] for a, b in pairwise(spans)):
        raise ValueError(f"the parts of a batch do not fit together: {spans}")
    tallies: dict[int, QueryTally] = {}
    for note in notes:
        for partition, tally in note.tallies.items():
            tallies.setdefault(partition, QueryTally()).add(tally)
    start = min((n.start for n in notes), key=lambda cut: cut.end_ms)
    end = max((n.end for n in notes), key=lambda cut: cut.end_ms)
    return BatchNote(start, end, dict(sorted(tallies.items())))


@dataclass(frozen=True, slots=True)
class TallyBook:
    """The books of a query, from the cut ``since`` to the cut ``upto``."""

    product: str
    since: Cut
    upto: Cut
    batches: int
    partitions: Mapping[int, QueryTally]

    @classmethod
    def decode(cls, product: str, stored: Mapping[bytes, bytes]) -> "TallyBook | None":
        """Decode the hash ``AnalyticsKeys.ledger``; None if there is none yet.

        Raises ValueError for anything the job would not have written.
        """
        if not stored:
            return None
        items: dict[int, dict[str, int]] = {}
        try:
            for name, value in stored.items():
                partition, of, which = name.decode().partition(":")
                if of:
                    items.setdefault(int(partition), {})[which] = int(value)
            return cls(
                product,
                Cut.from_offset(orjson.loads(stored[b"since"])),
                Cut.from_offset(orjson.loads(stored[b"upto"])),
                int(stored[b"batches"]),
                {p: QueryTally.of_items(of) for p, of in sorted(items.items())},
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"books of {product}: {error!r}") from None

    def problems(self) -> list[str]:
        """Say in one sentence each where the books do not balance; none is good."""
        return [
            f"partition {p}: {t.read + t.extra:,} trades were read, "
            f"{t.unaccounted:,} are not accounted for"
            for p, t in self.partitions.items()
            if t.unaccounted
        ]
