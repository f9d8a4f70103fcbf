"""Where a topic of Kafka is and how to reach it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OWNED = {
    "bootstrap.servers": "the address says it",
    "metadata.broker.list": "the address says it",
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
"""Options of librdkafka that are not the user's to set, and why."""


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
