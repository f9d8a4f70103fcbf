"""A job's published windows, gone through once and compared with the trade log.

Pure: the window log, the recorded batches and what is left of the trade log come in
as arguments.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

from throttle.compare import Difference, Kind, Published, compare_books, judge
from throttle.ledger import BatchEntry
from throttle.rebuild import Entry, Rebuilt, Rule, rebuild
from throttle.snapshot import WindowSnapshot

SHOWN = 20
"""How many differences are kept in full; all of them are counted."""

TRIMMED_LOG = "their trades are no longer in the log"
TRIMMED_BATCHES = "their batch is no longer recorded"
TRIMMED_WINDOWS = "no longer in the window log"


class Remains(Protocol):
    """What is left of the past, asked for piece by piece."""

    def entries(self, batch: BatchEntry) -> Iterable[Entry]:
        """Return the log's entries between a batch's two cuts that are left."""

    def fronts(self, partitions: Iterable[int]) -> Mapping[int, Entry | None]:
        """Return the oldest entry left in each partition, None where there is none."""

    def oldest_offset(self) -> int | None:
        """Return the offset of the oldest window left, None if there is none."""


@dataclass(slots=True)
class Report:
    """What a comparison found; ``differences`` holds the first ones only.

    ``not_comparable`` counts windows by the reason; ``others`` counts windows that
    are in no recorded batch of this job, though windows before and after them are.
    """

    compared: int = 0
    equal: int = 0
    rows: int = 0
    counts: Counter[Kind] = field(default_factory=Counter)
    undecided: int = 0
    not_comparable: Counter[str] = field(default_factory=Counter)
    others: int = 0
    differences: list[Difference] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Whether something was compared and no difference was found."""
        return self.compared > 0 and not self.counts and not self.problems


def gaps(batches: Sequence[BatchEntry]) -> list[str]:
    """Say in one sentence each where a batch does not begin where the last ended."""
    return [
        f"batch {after.offset} begins at the cut {after.start.to_offset()}, "
        f"the one before it ended at {before.end.to_offset()}"
        for before, after in pairwise(batches)
        if before.end != after.start
    ]


@dataclass(frozen=True, slots=True)
class _Again:
    """A batch computed again, and how much of its log was left to do so.

    ``lost`` are the partitions that are not complete any more. Windows that start
    after ``lost_ms`` have all their trades nevertheless; None: no window has.
    """

    made: Rebuilt
    lost: frozenset[int]
    lost_ms: int | None


class Comparison:
    """Goes through a job's published windows once, oldest first.

    Only windows that end in ``[first_ms, last_ms]`` are judged; from the others it
    learns what had been published.
    """

    def __init__(
        self,
        batches: Sequence[BatchEntry],
        remains: Remains,
        rule: Rule,
        first_ms: int,
        last_ms: int,
    ) -> None:
        self._remains = remains
        self._rule = rule
        self._range = first_ms, last_ms
        self._batch_of = {
            batch.offset - back: batch
            for batch in batches
            for back in range(batch.windows)
        }
        self._again: dict[int, _Again] = {}
        self._report = Report(problems=gaps(batches))

    def run(self, snapshots: Iterable[WindowSnapshot], before: Published) -> Report:
        """Compare all; ``before`` is what had been published until the first."""
        unseen = set(self._batch_of)
        for snapshot in snapshots:
            unseen.discard(snapshot.offset)
            self._look_at(snapshot, before)
            before.learn(snapshot.rows)
        # After the windows: what was trimmed while they were read is not missing.
        oldest = self._remains.oldest_offset()
        for offset in sorted(unseen):
            if self._is_asked_for(self._end_of(offset)):
                self._note_absent(offset, oldest)
        return self._report

    def _look_at(self, snapshot: WindowSnapshot, before: Published) -> None:
        batch, report = self._batch_of.get(snapshot.offset), self._report
        if batch is None:
            self._note_unclaimed(snapshot)
            return
        end_ms = self._end_of(snapshot.offset)
        if not self._is_asked_for(end_ms):
            return
        if snapshot.window != end_ms:
            report.problems.append(
                f"offset {snapshot.offset}: published is the window {snapshot.window}, "
                f"its batch was cut for {end_ms}"
            )
            return
        again = self._compute(batch)
        if not self._is_complete(end_ms, batch, again):
            report.not_comparable[TRIMMED_LOG] += 1
            return
        differences, undecided = judge(
            snapshot, again.made.windows.get(end_ms, {}), before
        )
        report.compared += 1
        report.rows += len(snapshot.rows)
        report.undecided += undecided
        report.equal += not differences and not undecided
        report.counts.update(difference.kind for difference in differences)
        room = SHOWN - len(report.differences)
        report.differences += differences[:room]

    def _compute(self, batch: BatchEntry) -> _Again:
        """Compute a batch again, once for all of its windows."""
        if batch.offset not in self._again:
            self._again.clear()
            entries = self._remains.entries(batch)
            made = rebuild(entries, batch.start.end_ms, batch.end.end_ms, self._rule)
            # After the entries: what was trimmed while they were read is lost, too.
            fronts = self._remains.fronts(batch.end.partitions)
            lost = frozenset(
                p for p, front in fronts.items() if _is_lost(batch, made, p, front)
            )
            lost_ms = _last_append(fronts[p] for p in lost) if lost else None
            self._again[batch.offset] = _Again(made, lost, lost_ms)
            self._report.problems += compare_books(batch, made, lost)
        return self._again[batch.offset]

    def _is_complete(self, end_ms: int, batch: BatchEntry, again: _Again) -> bool:
        if not again.lost:
            return True
        start_ms = end_ms - self._rule.window_ms
        # Trimmed are the oldest ones; a straggler is in the batch's first window.
        is_first = start_ms <= batch.start.end_ms
        return not is_first and again.lost_ms is not None and start_ms > again.lost_ms

    def _note_unclaimed(self, snapshot: WindowSnapshot) -> None:
        claimed = self._batch_of
        if not self._is_asked_for(snapshot.window) or not claimed:
            return
        # Beyond the newest batch: published since the batches were read.
        if snapshot.offset < min(claimed):
            self._report.not_comparable[TRIMMED_BATCHES] += 1
        elif snapshot.offset < max(claimed):
            self._report.others += 1

    def _note_absent(self, offset: int, oldest: int | None) -> None:
        if oldest is None or offset < oldest:
            self._report.not_comparable[TRIMMED_WINDOWS] += 1
        else:
            self._report.problems.append(
                f"offset {offset}: the window {self._end_of(offset)} is missing from "
                "the window log"
            )

    def _end_of(self, offset: int) -> int:
        batch = self._batch_of[offset]
        return batch.end.end_ms - (batch.offset - offset) * self._rule.window_ms

    def _is_asked_for(self, end_ms: int) -> bool:
        first_ms, last_ms = self._range
        return first_ms <= end_ms <= last_ms


def _is_lost(
    batch: BatchEntry, made: Rebuilt, partition: int, front: Entry | None
) -> bool:
    """Tell whether a partition may have lost entries of a batch to trimming.

    Only the oldest are trimmed: an entry left from before the batch proves that all
    of the batch are, too, and so does finding as many as there were.
    """
    if front is not None and front.position <= batch.start.position(partition):
        return False
    books = batch.partitions[batch.end.partitions.index(partition)]
    first, last = batch.start.count(partition), batch.end.count(partition)
    if first is None or last is None:
        there_were = books.read
    else:
        there_were = last - first - books.blanks
    return made.read[partition] < there_were


def _last_append(lost: Iterable[Entry | None]) -> int | None:
    """Return the append time up to which something is lost, None if all is."""
    fronts = list(lost)
    left = [front.append_ms for front in fronts if front is not None]
    return max(left) if len(left) == len(fronts) else None
