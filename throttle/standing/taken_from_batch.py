"""What a batch takes back, found in the log: what its publisher asks about it."""

from collections.abc import Collection, Mapping

import structlog

from ingest.series import instrument_of
from ingest.tradelog.contract import NO_SERVER
from throttle.contract.cut import Cut
from throttle.contract.day_so_far import DaySoFar
from throttle.standing import entry_budget
from throttle.standing.entry_budget import EntryBudget
from throttle.standing.look_back import EntryRules, LookBack
from throttle.standing.restated import (
    Restated,
    day_of_trades,
    day_without,
    restate,
    settle_batch,
)
from throttle.standing.searched_log import MOST_BYTES, SearchedLog
from throttle.window.batch import Batch

log = structlog.get_logger()

MOST_KEPT = 50_000
"""So many entries are kept, some 50 MB, of the instruments that were asked for last."""


class KeptLooks:
    """Looks back at single instruments, each as far as was needed, and keeps them.

    What came since the batch before is read once for all of them. If that is too much,
    as after hours without a question, they are forgotten, and looked for backwards.
    """

    def __init__(self, rules: EntryRules, log: SearchedLog) -> None:
        self._rules = rules
        self._log = log
        self._looks: dict[str, LookBack] = {}
        self._end: Cut | None = None

    def upto(
        self, end: Cut, asked: Mapping[str, Collection[int]], most: float
    ) -> tuple[Mapping[str, LookBack], float]:
        """Return what is known of those that are ``asked`` for, in some partitions.

        So many entries are read at ``most``; with it comes how many may be read yet.
        Raises what reading the log raises.
        """
        self._forget(end)
        if self._end is not None and self._looks:
            partitions = {p for look in self._looks.values() for p in look.partitions}
            cuts = self._end, self._end
            news = LookBack(self._rules, self._looks, *cuts, partitions, 0, self._log)
            if news.advance(end, most):
                for isin, look in self._looks.items():
                    look.learn(isin, news.entries[isin], end)
            else:
                self._looks.clear()
            most = news.left
        self._end = end
        for isin, theirs in asked.items():
            known = self._looks.get(isin)
            if known is None or not known.is_of([isin], theirs):
                known = LookBack(self._rules, [isin], end, end, theirs, 0, self._log)
            # The last ones are those that were asked for last.
            self._looks.pop(isin, None)
            self._looks[isin] = known
        return {isin: self._looks[isin] for isin in asked}, most

    def _forget(self, end: Cut) -> None:
        """Forget what is too much, and everything if a batch is of another history."""
        known = self._end
        if known is not None and any(
            known.position(p) > end.position(p) for p in known.partitions
        ):
            self._looks.clear()
        size = sum(look.size for look in self._looks.values())
        for isin in [*self._looks]:
            if size <= MOST_KEPT:
                break
            size -= self._looks.pop(isin).size


class TakenFromBatch:
    """A batch as it is to be published, and its instruments that are ``restated``."""

    def __init__(
        self, batch: Batch, look: LookBack, kept: KeptLooks, server: str
    ) -> None:
        """Look back, in a log that ``server`` answered for before.

        Raises what reading the log raises.
        """
        self._look = look
        self._server = server
        self._kept = kept
        self.batch, restated = restate(batch, settle_batch(batch, look))
        self.restated: Mapping[str, Restated] = restated

    def servers(self) -> frozenset[str]:
        """Return which servers the batch and what it takes back were read from.

        Raises what reading the log raises.
        """
        looked_at = {self._server, self._look.rules.open_log().server_id()}
        return self.batch.servers | looked_at - {NO_SERVER}

    def days_without(self, days: Mapping[str, DaySoFar]) -> dict[str, DaySoFar]:
        """Return days of restated instruments without what the batch takes back.

        Raises what reading the log raises.
        """
        rules, end = self._look.rules, self.batch.end
        left, asked = {}, []
        for isin, day in days.items():
            left[isin], may_differ = day_without(
                day, self.restated[isin], rules.window_ms
            )
            asked += [isin] if may_differ else []
        if not asked:
            return left
        taking_back = self.batch.taking_back
        isins = set(map(instrument_of, asked))
        theirs = {n: rules.partitions_of(taking_back[n], end) for n in sorted(isins)}
        # What has come since the last question is read, whatever was read before.
        most = max(self._look.left, entry_budget.LEAST_ENTRIES)
        looks, most = self._kept.upto(end, theirs, most)
        self._look.left = min(self._look.left, most)
        unknown = 0
        for isin in asked:
            look = looks[instrument_of(isin)]
            look.left = self._look.left
            restated = day_of_trades(isin, left[isin], look, rules.window_ms)
            self._look.left = look.left
            left[isin] = restated or left[isin]
            unknown += restated is None
        if unknown:
            log.warning("prices of days with trades taken back stay", days=unknown)
        return left


class TakingBack:
    """Finds in the log what batches take back; what is read for one is bounded."""

    def __init__(self, rules: EntryRules) -> None:
        self._rules = rules
        self._budget = EntryBudget()
        self._log = rules.searched_log(MOST_BYTES)
        self._kept = KeptLooks(rules, self._log)
        self._last_look: LookBack | None = None

    def of(self, batch: Batch) -> TakenFromBatch | None:
        """Return what a batch takes back, None if nothing.

        Raises what reading the log raises.
        """
        if not batch.taking_back:
            return None
        if self._last_look is not None:
            # The days of its batch were asked of it, too.
            self._budget.leave(self._last_look.left)
        server = self._rules.open_log().server_id()
        look = self._look_back(batch)
        self._last_look = look
        return TakenFromBatch(batch, look, self._kept, server)

    def _look_back(self, batch: Batch) -> LookBack:
        rules, cuts = self._rules, (batch.start, batch.end)
        theirs = {p for some in batch.taking_back.values() for p in some}
        partitions = rules.partitions_of(theirs, batch.end)
        most = self._budget.take()
        return LookBack(rules, batch.taking_back, *cuts, partitions, most, self._log)
