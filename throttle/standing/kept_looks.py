"""Instruments whose trades are kept from batch to batch, as far back as was needed.

Who asks for a day's range again would have to read the day again. What came since the
batch before is read once for all that are kept.
"""

from collections.abc import Collection, Mapping

from throttle.contract.cut import Cut
from throttle.standing.look_back import EntryRules, LookBack
from throttle.standing.searched_log import SearchedLog

MOST_KEPT = 50_000
"""So many entries are kept, some 50 MB, of the instruments that were asked for last."""


class KeptLooks:
    """Looks back at single instruments, each as far as it was extended."""

    def __init__(self, rules: EntryRules, log: SearchedLog) -> None:
        """Take how the log is read; begin with nothing."""
        self._rules = rules
        self._log = log
        self._looks: dict[str, LookBack] = {}
        self._end: Cut | None = None

    def upto(
        self, end: Cut, asked: Mapping[str, Collection[int]]
    ) -> Mapping[str, LookBack]:
        """Return what is known of instruments up to a cut.

        ``asked`` names the partitions in which their entries are. Raises what reading
        the log raises.
        """
        self._forget(end)
        if self._end is not None and self._looks:
            partitions = {p for look in self._looks.values() for p in look.partitions}
            cuts = self._end, end
            news = LookBack(self._rules, self._looks, *cuts, partitions, 0, self._log)
            for isin, look in self._looks.items():
                look.learn(isin, news.entries[isin], end)
        self._end = end
        for isin, theirs in asked.items():
            known = self._looks.get(isin)
            if known is None or not known.is_of([isin], theirs):
                known = LookBack(self._rules, [isin], end, end, theirs, 0, self._log)
            # The last ones are those that were asked for last.
            self._looks.pop(isin, None)
            self._looks[isin] = known
        return {isin: self._looks[isin] for isin in asked}

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
