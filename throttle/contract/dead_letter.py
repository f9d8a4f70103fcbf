"""Dead letters: what is kept of a refused trade, and under which id. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from ingest.tradelog.contract import LogKind
from tickthrottle_client.log_v1 import append_time_ms, entry_id, position_of

KEPT_BYTES = 2_048
"""Most that is kept of a refused trade; of a longer one its length and digest, too."""

LETTERS_PER_BATCH = 500
"""Most letters of a partition that a batch keeps; the rest is counted only."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A refused trade: where it stood in the log, why, and its original bytes.

    A long one was cut: ``payload`` is its beginning, ``length`` says how many bytes it
    had, and ``sha256`` is the digest of all of them, in hex. Both are None otherwise.
    """

    partition: int
    position: int
    append_ms: int
    reason: str
    error: str
    payload: bytes
    length: int | None = None
    sha256: str | None = None

    @classmethod
    def decode(
        cls,
        partition: int,
        stream_id: bytes,
        fields: Mapping[bytes, bytes],
        log: LogKind,
    ) -> "DeadLetter":
        """Decode one entry of a stream under ``Keys.dead``. Raises ValueError."""
        position = letter_position(stream_id, log)
        # Letters of earlier versions are all of a Redis log and tell it by their id.
        appended = fields.get(b"appended")
        append_ms = append_time_ms(position) if appended is None else int(appended)
        digest = text_of(fields.get(b"sha256", b"")) or None
        return cls(
            partition,
            position,
            append_ms,
            text_of(fields.get(b"reason", b"")),
            text_of(fields.get(b"error", b"")),
            fields.get(b"trade", b""),
            None if digest is None else int(fields.get(b"bytes", b"0")),
            digest,
        )

    @property
    def size(self) -> int:
        """How many bytes the trade had."""
        return len(self.payload) if self.length is None else self.length


def text_of(value: bytes) -> str:
    """Return bytes as text; what is not UTF-8 is written with backslashes."""
    return value.decode("utf-8", "backslashreplace")


def pack(payload: bytes) -> bytes:
    """Return what travels of a refused trade: a long one's beginning and digest."""
    if len(payload) <= KEPT_BYTES:
        return payload
    return payload[:KEPT_BYTES] + sha256(payload).digest()


def unpack(packed: bytes, size: int) -> tuple[bytes, int | None, str | None]:
    """Return the bytes that are kept; if those are not all, the size and the digest."""
    if size <= KEPT_BYTES:
        return packed, None, None
    return packed[:KEPT_BYTES], size, packed[KEPT_BYTES:].hex()


def letter_id(position: int, log: LogKind) -> str:
    """Return the stream id of the dead letter for an entry of a log.

    Of a Redis log it is the entry's own; of Kafka ``<offset>-1``, as 0-0 is no id.
    Either grows with the position.
    """
    return entry_id(position) if log == "redis" else f"{position}-1"


def letter_position(stream_id: bytes, log: LogKind) -> int:
    """Return the position of the entry that a dead letter with this id stands for."""
    return (
        position_of(stream_id) if log == "redis" else int(stream_id.partition(b"-")[0])
    )
