"""Which part of the past a command asks for: some trades, a range of windows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from deploy.arguments import BadArgument, Place
from ingest.redis_log import append_time_ms, position_of
from ingest.trade import REASONS, InvalidTrade, Trade
from throttle.batch import DeadLetter
from throttle.history import History
from throttle.ledger import BatchEntry
from throttle.rebuild import Entry, Rule, holder

T = TypeVar("T")
Judged = tuple[Entry, Trade | InvalidTrade]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which trades: from where on, and only those of a partition, issue or reason.

    Without ``start`` the newest ones are meant.
    """

    start: int | Place | None
    partition: int | None
    isin: str | None
    reason: str | None
    limit: int

    def partitions(self, count: int) -> list[int]:
        """Return the partitions to look into, of a log with so many.

        Raises BadArgument for what such a log cannot hold.
        """
        if self.reason is not None and self.reason not in REASONS:
            raise BadArgument(
                f"reason {self.reason}: must be one of {', '.join(REASONS)}"
            )
        start = self.start.partition if isinstance(self.start, Place) else None
        for option, partition in (("partition", self.partition), ("from", start)):
            if partition is not None and not 0 <= partition < count:
                raise BadArgument(
                    f"{option} {self.start if option == 'from' else partition}: "
                    f"the log has the partitions 0 to {count - 1}"
                )
        asked = {p for p in (self.partition, start) if p is not None}
        if len(asked) > 1:
            raise BadArgument(
                f"partition {self.partition}: --from {self.start} is in another one"
            )
        return sorted(asked) or list(range(count))

    def after(self, partitions: Iterable[int]) -> dict[int, int]:
        """Return the positions after which to begin; none for the very beginning."""
        if self.start is None:
            return {}
        first = (
            self.start.position
            if isinstance(self.start, Place)
            else position_of(b"%d-0" % self.start)
        )
        return {p: max(0, first - 1) for p in partitions}

    def has(self, trade: Trade | InvalidTrade, payload: bytes) -> bool:
        """Tell whether a trade is wanted; a refused one may only name its issue."""
        if isinstance(trade, Trade):
            return self.reason is None and self.isin in (None, trade.isin)
        return self.reason in (None, trade.reason) and self.is_named(payload)

    def is_named(self, payload: bytes) -> bool:
        """Tell whether the wanted issue appears in the bytes of a refused trade."""
        return self.isin is None or self.isin.encode() in payload


def some(found: Iterable[T], limit: int, *, newest_first: bool) -> list[T]:
    """Return the first ``limit``, oldest first, whatever order they come in."""
    first = list(islice(found, limit))
    return first[::-1] if newest_first else first


def pick_trades(
    history: History, wanted: Wanted, count: int, rule: Rule
) -> list[Judged]:
    """Return the wanted trades of a log of ``count`` partitions, newest last."""
    partitions = wanted.partitions(count)
    newest_first = wanted.start is None
    entries = history.trades(partitions, wanted.after(partitions), newest_first)
    judged = ((entry, rule.judge(entry)) for entry in entries)
    found = (pair for pair in judged if wanted.has(pair[1], pair[0].payload))
    return some(found, wanted.limit, newest_first=newest_first)


def pick_letters(
    history: History, job: str, wanted: Wanted, count: int
) -> list[DeadLetter]:
    """Return a job's wanted dead letters, of ``count`` partitions, newest last."""
    partitions = wanted.partitions(count)
    newest_first = wanted.start is None
    after = wanted.after(partitions)
    letters = history.dead_letters(job, partitions, after, newest_first)
    found = (
        letter
        for letter in letters
        if wanted.reason in (None, letter.reason) and wanted.is_named(letter.payload)
    )
    return some(found, wanted.limit, newest_first=newest_first)


def window_end(
    option: str,
    given: int | Place | None,
    batches: Sequence[BatchEntry],
    rule: Rule,
) -> int | None:
    """Return the window a moment or a trade stands for, by its end; None for none.

    Raises BadArgument for a trade that is in no recorded batch.
    """
    if not isinstance(given, Place):
        return given
    batch = holder(batches, *given)
    if batch is None:
        raise BadArgument(
            f"{option} {given}: in no batch that is still recorded, "
            "or not read from the log yet"
        )
    span = batch.start.end_ms, batch.end.end_ms
    return rule.window_of(append_time_ms(given.position), *span)
