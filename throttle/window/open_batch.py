"""A batch that is open while its window is: its plan, its steps, its cut. Pure.

Spark plans a batch and starts its tasks while trades still come. All that is known
then is where the batch begins and the boundary at which it ends; where that is in each
partition is found out by the tasks, once the boundary has passed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from throttle.contract.cut import Cut

LAST_STEP_MS = 40
"""The last step before a boundary is no shorter than this."""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Where a batch begins and the boundary at which it ends: Spark calls it an offset.

    ``start`` is the cut that was published last, ``partitions`` are those that the
    batch reads. A partition that the log gets while a batch is open is read from the
    next one on.
    """

    start: Cut
    end_ms: int
    partitions: tuple[int, ...]

    def to_offset(self) -> dict[str, Any]:
        """Encode as a Spark offset, always in the same key order.

        Spark compares offsets as JSON text: another order would look like news.
        """
        return {
            "end_ms": self.end_ms,
            "partitions": ",".join(map(str, self.partitions)),
            "start": self.start.to_offset(),
        }

    @classmethod
    def from_offset(cls, offset: Mapping[str, Any]) -> "BatchPlan":
        """Decode what ``to_offset`` wrote."""
        partitions = tuple(map(int, offset["partitions"].split(",")))
        return cls(Cut.from_offset(offset["start"]), int(offset["end_ms"]), partitions)


def plan_after(cut: Cut) -> BatchPlan:
    """Return the plan that ends where a job begins: a batch of nothing."""
    return BatchPlan(cut, cut.end_ms, cut.partitions)


def next_step_ms(left_ms: float) -> float:
    """Return how much of a window shall be left when its entries are read next.

    Half of it, or 0, the boundary: so a busy log is read in a few steps, and what is
    left to do after the boundary is the same at any rate.
    """
    half_ms = left_ms / 2
    return half_ms if half_ms >= LAST_STEP_MS else 0


def join_cuts(parts: Iterable[tuple[Cut, Cut]]) -> tuple[Cut, Cut]:
    """Return the two cuts of a batch from those that its tasks made.

    Raises ValueError if they are not parts of one batch.
    """
    parts = list(parts)
    starts, ends = zip(*parts, strict=True)
    partitions = sorted(p for end in ends for p in end.partitions)
    bounds = {(start, end.end_ms) for start, end in zip(starts, ends, strict=True)}
    is_whole = set(partitions) >= set(starts[0].partitions)
    if len(bounds) != 1 or len(set(partitions)) < len(partitions) or not is_whole:
        raise ValueError(f"the cuts of a batch do not fit together: {parts}")
    places = {
        p: (end.position(p), end.count(p)) for end in ends for p in end.partitions
    }
    positions, counts = zip(*(places[p] for p in partitions), strict=True)
    return starts[0], Cut(ends[0].end_ms, positions, counts, tuple(partitions))
