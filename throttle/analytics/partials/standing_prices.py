"""Windows some of whose trades were taken back: their prices, asked of the log again.

Spark's state can take a trade out of a sum, and not out of a highest price. So a window
with such trades gets its open, high, low and close from those that stand. Those are all
there as soon as they are as many as the window counts. Where the log does not hold them
all, or they lie too far back, the prices are those of all its trades.
"""

from collections.abc import Collection
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import structlog

from ingest.series import instrument_of
from throttle.analytics.partials.partial_bars import ZERO
from throttle.analytics.partials.partial_rule import PartialRule
from throttle.analytics.partials.taken_back import placed_takings, table_of
from throttle.contract.cut import Cut
from throttle.standing import entry_budget
from throttle.standing.entry_budget import EntryBudget
from throttle.standing.look_back import EntryRules, LookBack
from throttle.window.row_schema import records

log = structlog.get_logger()

_PRICES = ("open", "high", "low", "close")
_NO_PRICES: dict[str, Any] = dict.fromkeys(_PRICES)

MOST_KEPT = 200_000
"""With more entries than these it begins anew, with the instruments asked for alone."""

Place = tuple[str, int]
"""An instrument, and the start of a window in milliseconds."""


class StandingPrices:
    """Asks the log for the prices of windows, within a budget of entries.

    What was read is kept: a batch adds what has come since, and looks further back
    where not all was found.
    """

    def __init__(self, rules: EntryRules, rule: PartialRule) -> None:
        """Take how the log is read, and how trades are placed in windows."""
        self._rules = rules
        self._rule = rule
        self._budget = EntryBudget()
        self._look: LookBack | None = None

    def of(self, windows: pa.Table, cut: Cut) -> pa.Table:
        """Return windows (``tumbling_bars.selected``) with prices standing at a cut."""
        if not self._rule.takes_back:
            return windows
        is_asked = pc.greater(windows["taken"], ZERO)
        if not pc.any(is_asked).as_py():
            return windows
        asked = windows.filter(is_asked)
        of_each = records(asked, ("isin", "start_ms", "trades"))
        counts = {(isin, start): n for isin, start, n in of_each}
        prices = self._prices(counts, cut)
        if len(prices) < len(counts):
            log.warning(
                "prices of trades taken back stay", windows=len(counts) - len(prices)
            )
        rows = [
            {**row, **prices.get((row["isin"], row["start_ms"]), {})}
            for row in asked.to_pylist()
        ]
        others = windows.filter(pc.invert(is_asked))
        return pa.concat_tables([others, pa.Table.from_pylist(rows, windows.schema)])

    def _prices(self, counts: dict[Place, int], cut: Cut) -> dict[Place, Any]:
        """Return the prices of windows, by how many trades they count."""
        look = self._look_from({instrument_of(isin) for isin, _ in counts}, cut)
        while True:
            found = self._found(look, {isin for isin, _ in counts})
            windows = {place: found.get(place, (0, _NO_PRICES)) for place in counts}
            prices = {p: w for p, (n, w) in windows.items() if n == counts[p]}
            if len(prices) == len(counts) or not look.extend():
                self._budget.leave(look.left)
                return prices

    def _look_from(self, isins: Collection[str], cut: Cut) -> LookBack:
        """Return what is known of instruments up to a cut.

        It begins anew where too much has come since, as after hours of silence.
        """
        look, most = self._look, self._budget.take()
        if look is not None and look.size > MOST_KEPT:
            look = None
        is_known = look is not None and look.is_of(isins, cut.partitions)
        goes_on = look is not None and is_known and look.end.end_ms <= cut.end_ms
        if look is None or not goes_on or not look.advance(cut, most):
            left = most if look is None or not goes_on else entry_budget.LEAST_ENTRIES
            instruments = {*isins, *(look.entries if look and not goes_on else ())}
            look = LookBack(self._rules, instruments, cut, cut, cut.partitions, left)
        self._look = look
        return look

    def _found(
        self, look: LookBack, isins: Collection[str]
    ) -> dict[Place, tuple[int, Any]]:
        """Return how many trades of instruments stand in each window, its prices."""
        settled = [look.settled(isin) for isin in isins]
        standing = [one for of_it in settled for one in of_it.standing]
        gone = [one for of_it in settled for one in of_it.taken_back]
        # What was taken back when its window was final is in there for good.
        which, _, leaves = placed_takings(gone, self._rule)
        own = zip(which, leaves.to_pylist(), strict=True)
        standing += [gone[n].trade for n, is_gone in own if not is_gone]
        _, table = table_of(standing)
        partials, _ = self._rule.partials(table)
        starts = pc.divide(partials["at"].cast(pa.int64()), 1_000).to_pylist()
        rows = partials.select(["isin", "trades", *_PRICES]).to_pylist()
        return {
            (row.pop("isin"), start): (row.pop("trades"), row)
            for start, row in zip(starts, rows, strict=True)
        }
