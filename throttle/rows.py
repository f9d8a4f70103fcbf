"""From log entries to the columns Spark works on.

One schema serves three kinds of rows, told apart by ``key``: a trade (key = its
ISIN), a refused trade (key = ``!`` and its place in the log, ``reason`` set) and the
cut of the batch (key = ``CUT_KEY``, payload = the two cuts as JSON). All three go
through one aggregation, so nothing is counted in a second pass.
"""

from collections.abc import Iterable

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


def trade_rows(
    entries: Iterable[Entry], partition: int, previous_end_ms: int, max_ahead_ms: int
) -> pa.RecordBatch:
    """Decode and check entries of one partition; one row each, valid or refused."""
    rows = [_row(entry, partition, previous_end_ms, max_ahead_ms) for entry in entries]
    return _batch(rows)


def cut_row(start: Cut, end: Cut) -> pa.RecordBatch:
    """Return the one row that carries the cuts of a batch, in its last window."""
    payload = orjson.dumps({"start": start.to_offset(), "end": end.to_offset()})
    return _batch([((end.end_ms - 1) * 1000, CUT_KEY, 0, 0, 0, 0, payload, None, None)])


def decode_cuts(payload: bytes) -> tuple[Cut, Cut]:
    """Decode the payload of a cut row."""
    cuts = orjson.loads(payload)
    return Cut.from_offset(cuts["start"]), Cut.from_offset(cuts["end"])


_Row = tuple[int, str, int, int, int, int, bytes, str | None, str | None]


def _row(entry: Entry, partition: int, previous_end_ms: int, max_ahead_ms: int) -> _Row:
    append_us = window_time_ms(entry.append_time_ms, previous_end_ms) * 1000
    try:
        trade = Trade.from_wire(entry.payload)
        check_not_ahead(trade, entry.append_time_ms * 1000, max_ahead_ms * 1000)
    except InvalidTrade as error:
        key = f"{REFUSED_PREFIX}{partition}:{entry.position}"
        return (
            append_us,
            key,
            0,
            0,
            entry.position,
            partition,
            entry.payload,
            error.reason,
            str(error),
        )
    return (
        append_us,
        trade.isin,
        trade.time_us,
        trade.seq,
        entry.position,
        partition,
        entry.payload,
        None,
        None,
    )


def _batch(rows: list[_Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(_ARROW_SCHEMA)
    arrays = [
        pa.array(column, field.type)
        for column, field in zip(columns, _ARROW_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW_SCHEMA)
