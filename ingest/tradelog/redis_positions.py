"""Where the trade log on Redis Streams is, and what position a stream id is. Pure.

Nothing here loads what reads a log: a gateway shows where it ends, and no more.
"""

from collections.abc import Mapping

from ingest.tradelog.contract import LogInfo, LogUnusable

FIELD = b"trade"
"""The field of an entry that holds the trade."""

SEQUENCE_BITS = 21
"""Of a position, the lower bits: which of the entries of a millisecond."""


def info_key(namespace: str) -> str:
    """Return the key of the hash that holds a log's identity."""
    return f"{namespace}:log"


def stream_key(namespace: str, partition: int) -> str:
    """Return the key of a partition's stream."""
    return f"{namespace}:log:{partition}"


def decode_info(fields: Mapping[bytes, bytes]) -> LogInfo:
    """Decode a log's identity."""
    return LogInfo(
        fields[b"id"].decode(), int(fields[b"partitions"]), int(fields[b"created_ms"])
    )


def position_of(entry_id: bytes) -> int:
    """Turn a stream id ``<ms>-<n>`` into a position: ms in the upper 42 bits.

    Raises LogUnusable when one millisecond holds more than 2^21 entries.
    """
    ms, _, n = entry_id.partition(b"-")
    number = int(n)
    if number >> SEQUENCE_BITS:
        raise LogUnusable(f"stream id {entry_id!r}: more than 2^21 entries in one ms")
    return int(ms) << SEQUENCE_BITS | number


def entry_id(position: int) -> str:
    """Turn a position back into the stream id it came from."""
    return f"{position >> SEQUENCE_BITS}-{position & (1 << SEQUENCE_BITS) - 1}"


def append_time_ms(position: int) -> int:
    """Return the append time that a position carries."""
    return position >> SEQUENCE_BITS
