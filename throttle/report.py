"""What is told of every batch that was published: to metrics, to operators."""

from collections.abc import Mapping
from dataclasses import dataclass

from throttle.batch import Batch
from throttle.publish import Published


@dataclass(frozen=True, slots=True)
class BatchReport:
    """A published batch. ``published_s`` is when, by this machine's time of day.

    ``stages_s`` is where the time went, in the order of the stages.
    """

    batch_id: int
    batch: Batch
    published: Published
    published_s: float
    stages_s: Mapping[str, float]

    @property
    def lag_s(self) -> float:
        """Time from the end of the batch's last window to the publish."""
        return self.published_s - self.batch.end.end_ms / 1000


SPARK_STAGES = {
    "queryPlanning": "query_planning",
    "walCommit": "offset_log",
    "getBatch": "get_batch",
    "commitOffsets": "commit_log",
}
"""What Spark does around a batch, by its own name, but waiting for a window's end."""


def spark_stages(durations_ms: Mapping[str, int]) -> dict[str, float]:
    """Return in seconds where Spark spent a batch outside of our own stages."""
    return {
        name: durations_ms[theirs] / 1000
        for theirs, name in SPARK_STAGES.items()
        if theirs in durations_ms
    }
