"""How connections end: counted by code, and those that we end told in the log.

Many may end at once, at a stop or because somebody tries to; then one line says so of
many.
"""

from collections import Counter
from typing import Literal

import structlog

from tickthrottle_client.tick_v1 import CloseCode

LINES_PER_S = 50
"""Most lines a second about single connections."""

GONE = 1006
"""What stands for a peer that went without a word (RFC 6455, 7.1.5)."""

By = Literal["gateway", "client"]

# A client may send any of 4,000 codes, or what it likes.
_STANDARD = frozenset((1000, 1001, 1002, 1003, 1005, GONE, 1007, 1008, 1009, 1011))

log = structlog.get_logger()


class CloseLog:
    """Every end of a connection since the process started, by who ended it and how."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[By, str]] = Counter()
        for code in CloseCode:
            self.counts["gateway", str(code.value)] = 0
        for standard in _STANDARD:
            self.counts["client", str(standard)] = 0
        self._second = 0
        self._lines = 0
        self._untold: Counter[int] = Counter()

    def by_us(
        self, connection: str | None, code: int, reason: str, now_s: float
    ) -> None:
        """Note that we end a connection; one that was never let in has no name."""
        self.counts["gateway", str(int(code))] += 1
        if self.may_say(now_s):
            named = {} if connection is None else {"connection": connection}
            log.info("connection closed", **named, code=int(code), reason=reason)
        else:
            self._untold[int(code)] += 1

    def by_client(self, code: int) -> None:
        """Note that a client has ended its connection, or has just gone."""
        self.counts["client", str(code) if code in _STANDARD else "other"] += 1

    def tell_rest(self) -> None:
        """Say in one line how many connections were ended without a line each."""
        if self._untold:
            log.info(
                "connections closed",
                count=self._untold.total(),
                codes={str(code): n for code, n in sorted(self._untold.items())},
            )
            self._untold.clear()

    def may_say(self, now_s: float) -> bool:
        """Say whether one more line about a single connection is written."""
        if int(now_s) != self._second:
            self._second, self._lines = int(now_s), 0
        self._lines += 1
        return self._lines <= LINES_PER_S
