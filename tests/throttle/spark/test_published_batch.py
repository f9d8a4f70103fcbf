"""What the driver is told of a window that its task has published."""

from collections import Counter

import pyarrow as pa

from tests.throttle.conflated import as_conflated
from throttle.contract.cut import Cut
from throttle.contract.ledger import Turnover
from throttle.publish.publisher import PublishOutcome
from throttle.spark.published_batch import PublishedBatch
from throttle.window.batch import Batch, BatchWindow, PartitionCount
from throttle.window.control_rows import abandoned_row

W = 2_000
START = Cut(W, (4, 0), (4, None), instruments=7)
END = Cut(2 * W, (9, 1), (9, None), instruments=8)


def test_all_but_rows_and_turnover_comes_back() -> None:
    """As counters that can be added to, and cuts as they were."""
    counts = [
        PartitionCount(5, refused=Counter(bad_json=2), unkept=1, superseded=1),
        PartitionCount(1, skipped=Counter(cancel=1), traded={"read": Turnover(1, 1)}),
    ]
    batch = Batch(START, END, [BatchWindow(2 * W)], counts, (), read_ms=4_003)
    outcome = PublishOutcome("e", 3, 1, 2, 1, 0)
    window = PublishedBatch(batch, outcome, 4.01, 4.02)
    told = PublishedBatch.of_rows(as_conflated(window.to_row(), W))
    assert told is not None
    assert told.batch == batch
    assert told.batch.counts[0].refused.total() == 2
    assert (told.outcome, told.assembled_s, told.published_s) == (outcome, 4.01, 4.02)


def test_rows_that_were_handed_on_say_nothing() -> None:
    """The driver publishes them."""
    rows = pa.concat_tables([abandoned_row(W)])
    assert PublishedBatch.of_rows(as_conflated(rows, W)) is None
