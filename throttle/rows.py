"""From log entries to the columns Spark works on.

One schema serves three kinds of rows, told apart by ``key``: a trade (key = its
ISIN), a refused trade (key = ``!`` and its place in the log, ``reason`` set) and the
cut of the batch (key = ``CUT_KEY``, payload = the two cuts as JSON). All three go
through one aggregation, so nothing is counted in a second pass.
"""

from collections.abc import Sequence

import orjson
import pyarrow as pa

from ingest.log import Entry
from ingest.trade import InvalidTrade, Trade, check_not_ahead
from throttle.cut import Cut, window_time_ms

CUT_KEY = "!cut"
REFUSED_PREFIX = "!"

SCHEMA = (
    "append_time timestamp, key string, time bigint, seq bigint, position bigint, "
    "partition int, payload binary, reason string, error string"
)

_ARROW_SCHEMA = pa.schema(
    [
        ("append_time", pa.timestamp("us", tz="UTC")),
        ("key", pa.string()),
        ("time", pa.int64()),
        ("seq", pa.int64()),
        ("position", pa.int64()),
        ("partition", pa.int32()),
        ("payload", pa.binary()),
        ("reason", pa.string()),
        ("error", pa.string()),
    ]
)


Row = tuple[int, str, int, int, int, int, bytes, str | None, str | None]
"""Values in the order of ``SCHEMA``, the append time in microseconds."""


def trade_row(
    entry: Entry, partition: int, previous_end_ms: int, max_ahead_ms: int
) -> Row:
    """Decode and check an entry of the log; its row is a trade's or a refused one's."""
    position, append_ms, payload = entry
    append_us = window_time_ms(append_ms, previous_end_ms) * 1000
    try:
        trade = Trade.from_wire(payload)
        check_not_ahead(trade, append_ms * 1000, max_ahead_ms * 1000)
    except InvalidTrade as error:
        key, reason = f"{REFUSED_PREFIX}{partition}:{position}", error.reason
        return (append_us, key, 0, 0, position, partition, payload, reason, str(error))
    return (
        append_us,
        trade.isin,
        trade.time_us,
        trade.seq,
        position,
        partition,
        payload,
        None,
        None,
    )


def cut_row(start: Cut, end: Cut) -> Row:
    """Return the one row that carries the cuts of a batch, in its last window."""
    payload = orjson.dumps({"start": start.to_offset(), "end": end.to_offset()})
    return ((end.end_ms - 1) * 1000, CUT_KEY, 0, 0, 0, 0, payload, None, None)


def to_arrow(rows: Sequence[Row]) -> pa.RecordBatch:
    """Turn rows into columns."""
    columns = zip(*rows, strict=True) if rows else [()] * len(_ARROW_SCHEMA)
    arrays = [
        pa.array(column, field.type)
        for column, field in zip(columns, _ARROW_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW_SCHEMA)


def decode_cuts(payload: bytes) -> tuple[Cut, Cut]:
    """Decode the payload of a cut row."""
    cuts = orjson.loads(payload)
    return Cut.from_offset(cuts["start"]), Cut.from_offset(cuts["end"])
