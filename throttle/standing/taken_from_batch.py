"""What a batch takes back, found in the log: what its publisher asks about it."""

from collections.abc import Mapping

from throttle.contract.day_so_far import DaySoFar
from throttle.standing.entry_budget import EntryBudget
from throttle.standing.look_back import EntryRules, LookBack
from throttle.standing.restated import Restated, restate, settle_batch
from throttle.standing.restated_day import restated_day
from throttle.window.batch import Batch


class TakenFromBatch:
    """A batch as it is to be published, and its instruments that are ``restated``."""

    def __init__(self, batch: Batch, look: LookBack, window_ms: int) -> None:
        """Look back. Raises what reading the log raises."""
        self._look = look
        self._window_ms = window_ms
        self.batch, restated = restate(batch, settle_batch(batch, look))
        self.restated: Mapping[str, Restated] = restated

    def restated_day(self, isin: str, day: DaySoFar) -> DaySoFar:
        """Return the day of an instrument without what the batch takes back.

        Raises what reading the log raises.
        """
        of_it = self.restated[isin]
        return restated_day(isin, day, of_it, self._look, self._window_ms)


class TakingBack:
    """Finds in the log what batches take back.

    Windows wait for it, so what is read of the log before a batch is bounded
    (``entry_budget.py``).
    """

    def __init__(self, rules: EntryRules) -> None:
        """Take how the log is read."""
        self._rules = rules
        self._budget = EntryBudget()

    def of(self, batch: Batch) -> TakenFromBatch | None:
        """Return what a batch takes back, None if nothing.

        Raises what reading the log raises.
        """
        if not batch.taking_back:
            return None
        rules, cuts = self._rules, (batch.start, batch.end)
        # A log of Redis has an instrument's entries in one partition.
        theirs = {p for some in batch.taking_back.values() for p in some}
        partitions = batch.end.partitions if rules.is_scattered else theirs
        most = self._budget.take()
        look = LookBack(rules, batch.taking_back, *cuts, partitions, most)
        taken = TakenFromBatch(batch, look, rules.window_ms)
        self._budget.leave(look.left)
        return taken
