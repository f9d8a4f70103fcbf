"""Where the trade log on Redis Streams is, and what position a stream id is. Pure.

Nothing here loads what reads a log: a gateway shows where it ends, and no more. What
those who append need, too, is stated in ``tickthrottle_client/log_v1.py``.
"""

from tickthrottle_client.log_v1 import (
    FIELD,
    SEQUENCE_BITS,
    decode_info,
    info_key,
    position_of,
    stream_key,
)

__all__ = [
    "FIELD",
    "SEQUENCE_BITS",
    "append_time_ms",
    "decode_info",
    "entry_id",
    "info_key",
    "position_of",
    "stream_key",
]


def entry_id(position: int) -> str:
    """Turn a position back into the stream id it came from."""
    return f"{position >> SEQUENCE_BITS}-{position & (1 << SEQUENCE_BITS) - 1}"


def append_time_ms(position: int) -> int:
    """Return the append time that a position carries."""
    return position >> SEQUENCE_BITS
