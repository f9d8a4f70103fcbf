"""Which starts of jobs are faults: a long one, and one after another. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gateway.health.jobs import PipelineState, starting

USUAL_START_S = 20
"""How long Spark takes to start and warm up."""

LONGEST_START_MS = 3 * USUAL_START_S * 1_000
"""A start that lasts longer is a fault."""

AGAIN_WITHIN_MS = 60_000
"""A job that starts again within this time is at fault."""

LONGEST_GAP_MS = 2_000
"""What counts of a time in which nobody looked: machine asleep, or Redis away."""


@dataclass(frozen=True, slots=True)
class JobStart:
    """A start as it was seen, by Redis' clock; ``cut_ms`` is what it goes on from.

    ``number`` is 2 or more for one that followed another within a minute.
    """

    owner: str
    cut_ms: int | None
    begun_ms: int
    seen_ms: int
    lasted_ms: int = 0
    number: int = 1

    @property
    def fault(self) -> str | None:
        """Say in a few words why it is a fault, None while it is none."""
        if self.number > 1:
            return f"it has been started {self.number} times in a row"
        if self.lasted_ms > LONGEST_START_MS:
            return f"it has been starting for {self.lasted_ms // 1_000} s"
        return None


class JobStarts:
    """Remembers the starts of jobs, for a minute after they were seen last."""

    def __init__(self) -> None:
        self._starts: dict[str, JobStart] = {}
        self._now: frozenset[str] = frozenset()

    def observe(self, pipeline: PipelineState, window_ms: int) -> None:
        """Take in a look at Redis; one that could tell nothing changes nothing."""
        if pipeline.problem is not None:
            return
        clock_ms, about_to = pipeline.clock_ms, dict(starting(pipeline, window_ms))
        for job, cut_ms in about_to.items():
            owner = pipeline.candidates[job]
            self._starts[job] = self._next(job, owner, cut_ms, clock_ms)
        self._now = frozenset(about_to)
        self._starts = {
            job: start
            for job, start in self._starts.items()
            if clock_ms - start.seen_ms <= AGAIN_WITHIN_MS
        }

    def lasting(self) -> Mapping[str, JobStart]:
        """Return the starts of the newest look, by the names of their jobs."""
        return {job: self._starts[job] for job in self._now if job in self._starts}

    def _next(
        self, job: str, owner: str, cut_ms: int | None, clock_ms: int
    ) -> JobStart:
        before = self._starts.get(job)
        fresh = JobStart(owner, cut_ms, clock_ms, clock_ms)
        if before is None:
            return fresh
        is_unpublished = before.cut_ms == cut_ms
        # Two processes that start together say so in turns.
        if job in self._now or (before.owner == owner and is_unpublished):
            passed_ms = min(max(0, clock_ms - before.seen_ms), LONGEST_GAP_MS)
            lasted_ms = before.lasted_ms + passed_ms
            return replace(
                before,
                owner=owner,
                cut_ms=cut_ms,
                seen_ms=clock_ms,
                lasted_ms=lasted_ms,
            )
        # One that has ended without a window counts from its end.
        before_ms = before.seen_ms if is_unpublished else before.begun_ms
        is_again = clock_ms - before_ms <= AGAIN_WITHIN_MS
        return replace(fresh, number=before.number + 1) if is_again else fresh
