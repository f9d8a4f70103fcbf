"""The entries of some instruments, read from the log backwards, as far as is needed.

Each step back says what it still wants, and only that is taken apart.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from math import inf
from typing import NamedTuple

import pyarrow as pa

from ingest.series import instrument_of
from ingest.tradelog.contract import Chunk, Ranges
from throttle.contract.cut import NOWHERE, Cut
from throttle.standing.searched_log import EVERYTHING, PastLog, SearchedLog, Wanted
from throttle.standing.settled import LoggedTrade, Settled, settle
from throttle.window.checked_rows import trade_rows
from throttle.window.decoder import find_decoder
from throttle.window.series_rows import NO_SERIES, SeriesRules

FIRST_SPAN_MS = 4_000
"""How far back the first step goes at least; each further one goes four times as far,
and one after a step that had too many entries a quarter as far.
"""

_TIMES_FURTHER = 4

_TAKEN_APART = 2
"""An entry that is taken apart takes as long as so many that are only read."""


class EntryRules(NamedTuple):
    """How a log is opened, and its entries are checked, as the job's settings say it.

    An instrument ``is_scattered`` if it may be in any partition of the log. Entries are
    those of instruments; which of them a series has follows from its key. What is not
    behind the cut ``since`` was never counted, and is not looked at.
    """

    open_log: Callable[[], PastLog]
    window_ms: int
    max_ahead_ms: int
    max_entry_bytes: int
    decoder: str
    is_scattered: bool
    series: SeriesRules = NO_SERIES
    since: Cut | None = None
    schema_registry_url: str = ""
    speedups: bool = True

    def searched_log(self, most_bytes: int = 0) -> SearchedLog:
        """Return the log as it is searched, with so many bytes of it kept."""
        decode = find_decoder(self.decoder, self.schema_registry_url)
        labels = SeriesRules(sessions=self.series.sessions)

        def check(partition: int, chunk: Chunk, end_ms: int) -> pa.Table:
            return trade_rows(
                *(chunk, partition, 0, end_ms),
                *(self.max_ahead_ms, decode, self.max_entry_bytes),
                every_trade=True,
                series=labels,
                speedups=self.speedups,
            )

        return SearchedLog(self.open_log, check, most_bytes)

    def first_of(self, partition: int) -> int:
        """Return the last position of a partition that is not looked at."""
        return NOWHERE if self.since is None else self.since.position(partition)

    def partitions_of(self, named: Collection[int], cut: Cut) -> Collection[int]:
        """Return where trades of an instrument may be, of which entries are in some.

        A log of Redis has an instrument's entries in one partition.
        """
        return cut.partitions if self.is_scattered else named


class LookBack:
    """What the log holds of some ``isins`` before the cut ``end``, back to ``from_ms``.

    ``is_whole`` says that there is nothing older to look at. So many entries may be
    read yet as are ``left``. Of what a step back did not want, it holds only what is
    newer.
    """

    def __init__(
        self,
        rules: EntryRules,
        isins: Collection[str],
        start: Cut,
        end: Cut,
        partitions: Collection[int],
        most: int,
        log: SearchedLog | None = None,
    ) -> None:
        """Read what is between two cuts. Raises what reading the log raises.

        Of what is before, so many entries of these partitions are read at ``most``, in
        a ``log`` that keeps what it reads, if there is one.
        """
        self.rules = rules
        self.entries: dict[str, list[LoggedTrade]] = {isin: [] for isin in isins}
        self.from_ms = start.end_ms
        self.is_whole = False
        self._wanted: Wanted = dict.fromkeys(isins, EVERYTHING)
        self.end = end
        self._log = log or rules.searched_log()
        self._span_ms = FIRST_SPAN_MS
        self.left: float = inf
        self._upto = {p: start.position(p) for p in sorted(partitions)}
        self._read({p: (upto, end.position(p)) for p, upto in self._upto.items()})
        self.left = most

    def has_all_of(self, one: LoggedTrade) -> bool:
        """Tell whether it has every entry whose trade is as new as one, or newer.

        That is, of those that each step back wanted. No trade is further than
        ``max_ahead_ms`` ahead of its entry's stamp.
        """
        oldest_ms = self.from_ms + self.rules.max_ahead_ms
        return self.is_whole or one.trade.time_us > 1_000 * oldest_ms

    @property
    def size(self) -> int:
        """How many entries it holds."""
        return sum(map(len, self.entries.values()))

    @property
    def partitions(self) -> Set[int]:
        """The partitions that it reads."""
        return self._upto.keys()

    def settled(self, key: str) -> Settled:
        """Return what has become of the trades of an instrument, or of a series."""
        return settle(self.entries[instrument_of(key)]).under(key)

    def is_of(self, isins: Collection[str], partitions: Collection[int]) -> bool:
        """Tell whether it holds what there is of these instruments, in these."""
        return self.entries.keys() >= set(isins) and self.partitions == set(partitions)

    def learn(self, isin: str, entries: Iterable[LoggedTrade], end: Cut) -> None:
        """Take in what another one has read of an instrument, up to a later cut."""
        self.entries[isin] += entries
        self.end = end

    def advance(self, end: Cut, most: float) -> bool:
        """Read on up to a later cut; False if that is more than so many entries.

        It is of no use then. Raises what reading the log raises.
        """
        before, self.end, self.left = self.end, end, most
        try:
            return self._read(
                {p: (before.position(p), end.position(p)) for p in self._upto}
            )
        except BaseException:
            self.end = before
            raise

    def extend(self, wanted: Wanted | None = None) -> bool:
        """Read a step further back; False if there is no more, or enough was read.

        What is ``wanted`` was wanted at each step before (None: the same as there).
        Raises what reading the log raises.
        """
        if self.is_whole or self.left <= 0:
            return False
        if wanted is not None:
            self._wanted = wanted
        # Looks that begin near each other take their steps at the same times.
        from_ms = self.from_ms - self._span_ms
        from_ms -= from_ms % self._span_ms
        oldest_ms = self._log.oldest_ms()
        is_last = oldest_ms is None or from_ms <= oldest_ms
        first = {p: self.rules.first_of(p) for p in self._upto}
        after = first
        if not is_last:
            at = self._log.positions_at(from_ms, self._upto)
            after = {p: max(at[p], first[p]) for p in first}
            is_last = after == first
        if not self._read({p: (after[p], upto) for p, upto in self._upto.items()}):
            self._span_ms = max(self._span_ms // _TIMES_FURTHER, 1)
            return False
        self._upto = {p: min(after[p], upto) for p, upto in self._upto.items()}
        self.from_ms, self._span_ms = from_ms, self._span_ms * _TIMES_FURTHER
        self.is_whole = is_last
        return True

    def settle(
        self, still_wanted: Callable[[Mapping[str, Settled]], Wanted]
    ) -> dict[str, Settled]:
        """Look back until nothing is wanted any more, or the log, or the bound, ends.

        Raises what reading the log raises.
        """
        settled = {isin: settle(entries) for isin, entries in self.entries.items()}
        while wanted := still_wanted(settled):
            if not self.extend(wanted):
                break
            settled |= {isin: settle(self.entries[isin]) for isin in wanted}
        return settled

    def open_numbers(
        self, settled: Settled, is_own: Callable[[LoggedTrade], bool]
    ) -> set[int]:
        """Return the numbers that own entries take back and that may be further back.

        A trade may be in the log more than once, and its number be that of others.
        """
        of_some = (
            one.by for one in settled.taken_back if not self.has_all_of(one.trade)
        )
        targets = (
            one.trade.takes_back for one in (*settled.unknown, *of_some) if is_own(one)
        )
        return {number for number in targets if number is not None}

    def _read(self, ranges: Ranges) -> bool:
        """Keep what is in some ranges, nothing if that is more than may be read."""
        found: list[LoggedTrade] = []
        for some in self._log.search(ranges, self._wanted, self.end.end_ms):
            self.left -= some.read + _TAKEN_APART * len(some.entries)
            if self.left < 0:
                return False
            found += some.entries
        for entry in found:
            self.entries[entry.trade.isin].append(entry)
        return True
