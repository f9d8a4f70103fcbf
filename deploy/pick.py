"""Which part of the past a command asks for: some trades, a range of windows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from deploy.arguments import BadArgument, Place
from ingest.trade import REASONS, InvalidTrade, Trade
from throttle.batch import DeadLetter
from throttle.history import History
from throttle.ledger import BatchEntry
from throttle.log_past import LogPast
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

    def after(
        self,
        partitions: Sequence[int],
        positions_before: Callable[[int, Iterable[int]], Mapping[int, int]],
    ) -> Mapping[int, int]:
        """Return the positions after which to begin; none for the very beginning.

        ``positions_before`` tells them of a moment (``LogPast``).
        """
        if self.start is None:
            return {}
        if isinstance(self.start, Place):
            # The place before the first one of a topic is -1.
            return dict.fromkeys(partitions, self.start.position - 1)
        return positions_before(self.start, partitions)

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


def pick_trades(log: LogPast, wanted: Wanted, rule: Rule) -> list[Judged]:
    """Return the wanted trades of a log, newest last."""
    partitions = wanted.partitions(log.info.partitions)
    newest_first = wanted.start is None
    after = wanted.after(partitions, log.positions_before)
    entries = log.trades(partitions, after, newest_first)
    judged = ((entry, rule.judge(entry)) for entry in entries)
    found = (pair for pair in judged if wanted.has(pair[1], pair[0].payload))
    return some(found, wanted.limit, newest_first=newest_first)


def pick_letters(
    history: History, log: LogPast, job: str, wanted: Wanted
) -> list[DeadLetter]:
    """Return a job's wanted dead letters of a log, newest last."""
    partitions = wanted.partitions(log.info.partitions)
    newest_first = wanted.start is None
    after = wanted.after(partitions, log.positions_before)
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
    append_ms: Callable[[int, int], int | None],
) -> int | None:
    """Return the window a moment or a trade stands for, by its end; None for none.

    ``append_ms`` tells when the trade was appended (``LogPast``). Raises BadArgument
    for a trade that is in no recorded batch, or of which that is not known.
    """
    if not isinstance(given, Place):
        return given
    batch = holder(batches, *given)
    if batch is None:
        raise BadArgument(
            f"{option} {given}: in no batch that is still recorded, "
            "or not read from the log yet"
        )
    appended_ms = append_ms(*given)
    if appended_ms is None:
        raise BadArgument(f"{option} {given}: the log has no such entry any more")
    return rule.window_of(appended_ms, batch.start.end_ms, batch.end.end_ms)
