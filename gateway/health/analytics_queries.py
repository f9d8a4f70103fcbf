"""What Redis says of the analytics job's queries, and which are behind. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from throttle.contract.cut import Cut
from throttle.contract.lateness import LATE_AFTER_WINDOWS
from throttle.contract.tally import QueryTally, TallyBook

BEHIND_AFTER_MS = 60_000
"""A query may be late by this much beside its batches: Spark starts, and catches up."""

_EVERY_MS = 10_000


@dataclass(frozen=True, slots=True)
class QueryState:
    """One query: who runs it, how far it has read, its state and its books.

    ``owner`` is None while nobody runs the analytics job; ``is_stopped``: it was told
    to end. ``window_ms`` is how far the log's clock has come: windows that ended by
    then are closed. ``figures`` are of Spark's state, by their names in Redis, without
    those that are no numbers. ``fault`` says what could not be read.
    """

    product: str
    owner: str | None
    cut: Cut
    window_ms: int
    book: TallyBook | None
    figures: Mapping[str, int] = field(default_factory=dict)
    fault: str | None = None

    @property
    def is_stopped(self) -> bool:
        """Tell whether the query was told to end."""
        return bool(self.figures.get("stopped"))

    @property
    def problems(self) -> list[str]:
        """Say in one sentence each what is wrong with the query's books."""
        if self.fault is not None:
            return [self.fault]
        return [] if self.book is None else self.book.problems()

    @property
    def total(self) -> QueryTally:
        """Return the books of all partitions."""
        total = QueryTally()
        for tally in () if self.book is None else self.book.partitions.values():
            total.add(tally)
        return total

    def is_dead(self) -> bool:
        """Tell whether nobody runs it, though nobody told it to end."""
        return self.owner is None and not self.is_stopped

    def is_behind(self, clock_ms: int) -> bool:
        """Tell whether it runs and should have read more by now."""
        if self.owner is None or self.is_stopped:
            return False
        every_ms = self.figures.get("every_ms", _EVERY_MS)
        allowed_ms = BEHIND_AFTER_MS + LATE_AFTER_WINDOWS * every_ms
        return clock_ms - self.cut.end_ms > allowed_ms


def decode_query(
    product: str,
    lease: bytes | None,
    progress: Mapping[bytes, bytes],
    ledger: Mapping[bytes, bytes],
    state: Mapping[bytes, bytes],
) -> QueryState | None:
    """Decode what Redis holds of one product, None if it was never made.

    What the analytics job would not have written is a ``fault``.
    """
    if not progress:
        return None
    fault, book, cut, window_ms = None, None, Cut(0, (), ()), 0
    try:
        cut = Cut.from_offset(orjson.loads(progress[b"cut"]))
        window_ms = int(progress[b"clock"])
        book = TallyBook.decode(product, ledger)
    except (KeyError, TypeError, ValueError) as error:
        fault = f"analytics of {product}: {error!r}"
    return QueryState(
        product,
        None if lease is None else lease.partition(b" ")[2].decode(errors="replace"),
        cut,
        window_ms,
        book,
        {n.decode(errors="replace"): int(v) for n, v in state.items() if v.isdigit()},
        fault,
    )
