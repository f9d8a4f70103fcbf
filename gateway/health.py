"""PURE: why the gateway is not ready, and since when."""

from collections.abc import Mapping
from dataclasses import dataclass

CODES = (
    "redis_down",
    "feed_stale",
    "job_behind",
    "quiet",
    "ledger_off",
    "overloaded",
)
"""Every reason there can be, the one to look at first before the others."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What is found to be wrong now; where it is known, for how long already."""

    message: str
    lasts_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason; ``since_ms`` is the time of day when it began to hold."""

    code: str
    message: str
    since_ms: int


class Health:
    """Remembers since when each reason has held."""

    def __init__(self) -> None:
        self._since_ms: dict[str, int] = {}

    def judge(self, found: Mapping[str, Finding], now_ms: int) -> tuple[Reason, ...]:
        """Return what was found, by its code, as reasons in the order of ``CODES``."""
        self._since_ms = {
            code: self._since_ms.get(code, now_ms - round(finding.lasts_s * 1_000))
            for code, finding in found.items()
        }
        return tuple(
            Reason(code, found[code].message, self._since_ms[code])
            for code in CODES
            if code in found
        )
