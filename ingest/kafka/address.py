"""Where a topic of Kafka is and how to reach it; nothing here talks to a broker."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ingest.tradelog.contract import LogUnusable

_OWNED = {
    "bootstrap.servers": "kafka_servers says it",
    "metadata.broker.list": "kafka_servers says it",
    "acks": "a trade counts once every replica in sync has it",
    "request.required.acks": "a trade counts once every replica in sync has it",
    "enable.idempotence": "a trade that is sent again must not be in the log twice",
    "enable.gapless.guarantee": "a trade that is too large must not stop the others",
    "message.timeout.ms": "a trade is sent until it is acknowledged",
    "delivery.timeout.ms": "a trade is sent until it is acknowledged",
    "message.send.max.retries": "a trade is sent until it is acknowledged",
    "retries": "a trade is sent until it is acknowledged",
    "transactional.id": "a trade is in the log once it is acknowledged",
    "enable.auto.commit": "positions are kept with the windows",
    "enable.auto.offset.store": "positions are kept with the windows",
    "enable.partition.eof": "the reader needs it",
    "auto.offset.reset": "entries that are gone must not be passed over unseen",
}


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """A topic and how to reach it. Travels to every process that reads it.

    ``options`` are further options of librdkafka, as pairs; they may hold passwords.
    """

    servers: str
    topic: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def client_options(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of a client, its ``own`` included."""
        return {
            "bootstrap.servers": self.servers,
            # Errors come back as sentences; its own lines would only be noise.
            "log_level": 0,
            "socket.nagle.disable": True,
            "reconnect.backoff.max.ms": 1_000,
            **dict(self.options),
            **own,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "KafkaTopic":
        """Build from what JSON makes of one."""
        options = tuple((name, value) for name, value in values["options"])
        return cls(values["servers"], values["topic"], options)

    def __str__(self) -> str:
        return f"topic {self.topic!r} at {self.servers}"


def read_options(path: Path | None) -> tuple[tuple[str, str], ...]:
    """Read further options of librdkafka from a file of ``name=value`` lines.

    Raises LogUnusable for a file that cannot be read, a line of another form and an
    option that is not the user's to set.
    """
    if path is None:
        return ()
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LogUnusable(f"kafka_config {path}: {error}") from None
    options = {}
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in stripped.partition("="))
        if not equals or not name:
            raise LogUnusable(f"kafka_config {path}: line {number} is not name=value")
        if name in _OWNED:
            raise LogUnusable(
                f"kafka_config {path}: {name} may not be set: {_OWNED[name]}"
            )
        options[name] = value
    return tuple(options.items())
