"""Plain trades checked, parsed and multiplied in one compiled pass. Pure."""

import pyarrow as pa

from ingest.trade import ISIN_CHARS, LATEST_TIME_US, MAX_PAYLOAD_BYTES
from ingest.tradelog.contract import Chunk
from ingest.tradelog.speedups import find_speedups
from throttle.window.trade_sums import HIGH, LOW, SUMS, Columns
from throttle.window.vector_check import KNOWN_NAMES

_NAMES = ",".join(sorted(KNOWN_NAMES))
_WHOLES = ("time", "seq", *SUMS, HIGH)
_LONGEST_PRICE = 18
_INT64, _INT32 = 8, 4


def plain_trades(
    chunk: Chunk, max_ahead_ms: int, max_bytes: int
) -> tuple[pa.BooleanArray, Columns] | None:
    """Return which entries hold plain trades, and their ``key``, ``time``, ``seq``,
    ``first_price`` and those of ``FOLDS``; None without the compiled package.

    A plain trade is of the form of ``vector_check.has_wire_form``, valid, and not ahead
    of its entry's stamp; it counts for everything, and fits into ``trade_sums``'s
    columns. What is not plain may be as valid.
    """
    module, payloads, stamps = find_speedups(), chunk.payloads, chunk.append_ms
    size = len(payloads)
    if module is None or not size or payloads.null_count or stamps.null_count:
        return None
    _, ends, data = payloads.buffers()
    count, block = module.check(
        *(ends, data or b"", stamps.buffers()[1], payloads.offset, stamps.offset, size),
        *(max_ahead_ms, LATEST_TIME_US - 1, min(max_bytes, MAX_PAYLOAD_BYTES), _NAMES),
    )

    def array(kind: pa.DataType, *buffers: pa.Buffer, of: int = count) -> pa.Array:
        return pa.Array.from_buffers(kind, of, [None, *buffers])

    ends, columns = pa.py_buffer(block), {}
    for name in _WHOLES:
        columns[name] = array(pa.int64(), ends)
        ends = ends.slice(size * _INT64)
    keys = ends.slice((size + 1) * _INT32)
    prices = keys.slice(size * ISIN_CHARS)
    columns["key"] = array(pa.binary(ISIN_CHARS), keys).cast(pa.string())
    columns["first_price"] = array(pa.string(), ends, prices)
    columns[LOW] = columns[HIGH]
    are_plain = prices.slice(size * _LONGEST_PRICE)
    return array(pa.uint8(), are_plain, of=size).cast(pa.bool_()), columns
