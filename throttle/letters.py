"""Where dead letters stand: their place in the log is their id in a Redis stream."""

from ingest.log import LogKind
from ingest.redis_keys import entry_id, position_of


def letter_id(position: int, log: LogKind) -> str:
    """Return the stream id of the dead letter for an entry of a log.

    Of a Redis log it is the entry's own; of Kafka ``<offset>-1``, as 0-0 is no id.
    Either grows with the position.
    """
    return entry_id(position) if log == "redis" else f"{position}-1"


def letter_position(found: bytes, log: LogKind) -> int:
    """Return the position of the entry that a dead letter with this id stands for."""
    return position_of(found) if log == "redis" else int(found.partition(b"-")[0])
