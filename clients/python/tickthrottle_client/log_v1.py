"""What all who append to a trade log, or read it, agree on. Pure.

A log has P partitions; an instrument's trades are all in one of them. In Redis a
partition is a stream, and a hash says which log it is. In Kafka a partition is one of a
topic.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from zlib import crc32

PARTITIONS = 4
"""Partitions of a log in Redis that does not exist yet, unless told otherwise."""

CAP = 4_000_000
"""Most entries that a log in Redis may hold, unless told otherwise."""

MOST_PARTITIONS = 64
LEAST_CAP = 1_000

BACKOFF_S = (0.05, 0.1, 0.2, 0.5, 1.0)
"""How long to wait before an append is tried again; the last one from then on."""

CAP_CHECK_ENTRIES = 5_000
"""After so many entries, who appends looks whether the log is within its cap."""

NAMESPACE_PATTERN = "[A-Za-z0-9_.-]{1,32}"
TOPIC_PATTERN = "[A-Za-z0-9._-]{1,249}"

FIELD = b"trade"
"""The field of a stream's entry that holds the trade."""

SEQUENCE_BITS = 21
"""Of a position, the lower bits: which of the entries of a millisecond."""


class LogError(RuntimeError):
    """The log does not do what was asked of it; the message says why."""


class LogUnusable(LogError):
    """The log cannot be used as asked; the message says why."""


class LogAway(LogError):
    """The log's server cannot be reached now; it may be back later."""


@dataclass(frozen=True, slots=True)
class LogInfo:
    """Identity of one log: a log that was emptied and refilled has another id.

    ``created_ms`` is when it was created, or first looked at.
    """

    log_id: str
    partitions: int
    created_ms: int = field(compare=False)


def partition_of(isin: str, partitions: int) -> int:
    """Return the partition of an instrument: crc32 of the ISIN modulo P."""
    return crc32(isin.encode()) % partitions


def partition_cap(cap: int, partitions: int) -> int:
    """Return how many entries a partition may hold of a log with a cap."""
    return max(1, cap // partitions)


def info_key(namespace: str) -> str:
    return f"{namespace}:log"


def stream_key(namespace: str, partition: int) -> str:
    return f"{namespace}:log:{partition}"


def encode_info(info: LogInfo) -> dict[str, str | int]:
    """Return the fields of a log's identity.

    The first to come decides: a field is written only where there is none.
    """
    return {
        "id": info.log_id,
        "partitions": info.partitions,
        "created_ms": info.created_ms,
    }


def decode_info(fields: Mapping[bytes, bytes]) -> LogInfo:
    """Decode a log's identity. Raises LogUnusable for one of another form, or none."""
    if fields.get(b"form", b"1") != b"1":
        form = fields[b"form"].decode(errors="replace")
        raise LogUnusable(
            f"the trade log has the form {form!r}, this version has 1: "
            "see docs/running.md#upgrading"
        )
    try:
        numbers = int(fields[b"partitions"]), int(fields[b"created_ms"])
        return LogInfo(fields[b"id"].decode(), *numbers)
    except (LookupError, ValueError) as error:
        reason = f"no field {error}" if isinstance(error, LookupError) else str(error)
        raise LogUnusable(
            f"the identity of the trade log cannot be read: {reason}"
        ) from None


def topic_log_id(topic: str, topic_id: str) -> str:
    """Return the identity of a log that is a topic.

    Brokers that know no topic ids give sixteen zero bytes for one, as the client
    library writes them; the topic's name takes its place.
    """
    return f"kafka:{topic_id if topic_id.strip('A=') else topic}"


def position_of(stream_id: bytes) -> int:
    """Turn a stream id ``<ms>-<n>`` into a position: ms in the upper 42 bits.

    Raises LogUnusable when one millisecond holds more than 2^21 entries.
    """
    ms, _, n = stream_id.partition(b"-")
    number = int(n)
    if number >> SEQUENCE_BITS:
        raise LogUnusable(f"stream id {stream_id!r}: more than 2^21 entries in one ms")
    return int(ms) << SEQUENCE_BITS | number


def entry_id(position: int) -> str:
    """Turn a position back into the stream id it came from."""
    return f"{append_time_ms(position)}-{position & (1 << SEQUENCE_BITS) - 1}"


def append_time_ms(position: int) -> int:
    """Return the append time that a position carries."""
    return position >> SEQUENCE_BITS
