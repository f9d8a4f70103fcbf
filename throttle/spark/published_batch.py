"""What a task says of a window that it has published itself. Pure."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Self

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.cut import Cut
from throttle.publish.publisher import PublishOutcome
from throttle.window.batch import Batch, BatchWindow, PartitionCount
from throttle.window.control_rows import published_row
from throttle.window.row_schema import PUBLISHED_KEY


@dataclass(frozen=True, slots=True)
class PublishedBatch:
    """A window's batch without its rows, how it was published, and when.

    ``assembled_s`` and ``published_s`` are times of day of the task's machine. What
    trades come to is in the job's books, and not said again.
    """

    batch: Batch
    outcome: PublishOutcome
    assembled_s: float
    published_s: float

    def to_row(self) -> pa.Table:
        """Encode as a row (``ARROW_SCHEMA``)."""
        batch = self.batch
        said = {
            "start": batch.start.to_offset(),
            "end": batch.end.to_offset(),
            "counts": [replace(count, traded={}) for count in batch.counts],
            "read_ms": batch.read_ms,
            "outcome": replace(self.outcome, counts=()),
            "times_s": (self.assembled_s, self.published_s),
        }
        place = batch.end.partitions[0], batch.end.end_ms
        return published_row(*place, orjson.dumps(said))

    @classmethod
    def of_rows(cls, rows: pa.Table) -> Self | None:
        """Return what a conflated batch says, None if it is still to be published.

        It needs the columns ``key`` and ``latest``.
        """
        found = rows.filter(pc.equal(rows["key"], PUBLISHED_KEY))
        if not len(found):
            return None
        said = orjson.loads(found["latest"][0].as_py()["payload"])
        start, end = (Cut.from_offset(said[name]) for name in ("start", "end"))
        counts = [
            PartitionCount(**{**one, **{n: Counter(one[n]) for n in _COUNTERS}})
            for one in said["counts"]
        ]
        windows = [BatchWindow(end.end_ms)]
        batch = Batch(start, end, windows, counts, (), said["read_ms"])
        outcome = PublishOutcome(**{**said["outcome"], "counts": ()})
        return cls(batch, outcome, *said["times_s"])


_COUNTERS = ("refused", "skipped")
