"""Whether a server may forget what it acknowledged, by what INFO says. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KEEPS = "noeviction"

NEARLY_FULL = 0.9
"""From this share of its memory on, a server is nearly full."""


@dataclass(frozen=True, slots=True)
class ServerMemory:
    """Memory of a server, in bytes; ``max_bytes`` is 0 where there is no limit.

    ``evicted`` counts the keys that it has evicted since its start.
    """

    used_bytes: int
    max_bytes: int
    policy: str = KEEPS
    evicted: int = 0
    is_writable_replica: bool = False

    @classmethod
    def decode(cls, info: Mapping[str, Any]) -> "ServerMemory":
        """Decode an answer to INFO; what a server does not say does no harm."""
        is_replica = info.get("role") in ("slave", "replica")
        return cls(
            _number(info.get("used_memory")),
            _number(info.get("maxmemory")),
            str(info.get("maxmemory_policy", KEEPS)),
            _number(info.get("evicted_keys")),
            is_replica and str(info.get("slave_read_only", 1)) == "0",
        )

    @property
    def is_nearly_full(self) -> bool:
        """Whether a limit is near that makes the server refuse writes."""
        return 0 < self.max_bytes * NEARLY_FULL <= self.used_bytes

    def why_forgetful(self) -> str | None:
        """Return why the server may forget what it acknowledged, and what to set."""
        if self.max_bytes and self.policy != KEEPS:
            evicted = f" and has evicted {self.evicted:,} keys" if self.evicted else ""
            return (
                f"the server may evict keys (maxmemory {self.max_bytes:,} bytes, "
                f"maxmemory-policy {self.policy}){evicted}: acknowledged trades would "
                f"be lost; CONFIG SET maxmemory-policy {KEEPS}, there or in the "
                "settings of its provider"
            )
        if self.is_writable_replica:
            return (
                "the server is a replica that takes writes, and loses them when it "
                "synchronises with its primary; give the address of the primary"
            )
        return None


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
