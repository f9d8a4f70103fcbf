"""What every message of a client must be, whatever the transcript. Pure."""

import json
from collections.abc import Iterator
from typing import Any

OPS = {"subscribe", "unsubscribe", "list", "ping", "auth"}
ID_MOST = 36


def read_said(data: str | bytes) -> tuple[dict[str, Any], str]:
    """Return a message of a client; what is wrong with its form stands behind it."""
    if isinstance(data, bytes):
        return {}, "a binary frame"
    try:
        message = json.loads(data)
    except ValueError:
        return {}, f"not JSON: {data!r:.80}"
    if not isinstance(message, dict) or message.get("op") not in OPS:
        return {}, f"not an object with an op of the protocol: {data!r:.80}"
    return message, ""


def breaches_of(
    message: dict[str, Any], options: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield the clauses that a message breaks, given what the client was asked for."""
    number = message.get("id", 0)
    is_text = isinstance(number, str) and len(number) <= ID_MOST
    if isinstance(number, bool) or not (isinstance(number, int) or is_text):
        yield "C-4", f"id {number!r:.80} is no integer and no text of {ID_MOST}"
    if message["op"] != "subscribe":
        return
    for clause, name in (("C-13", "min_interval_ms"), ("C-27", "fields")):
        if options.get(name) and not message.get(name):
            yield clause, f"a subscribe without {name}"


class Pace:
    """Counts the messages of one connection against ``limits`` (C-22)."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._left = 2 * per_second
        self._at_s: float | None = None

    def is_kept(self, now_s: float) -> bool:
        """Count a message; say whether it came within the limit."""
        if self._at_s is not None:
            gained = (now_s - self._at_s) * self._per_second
            self._left = min(2 * self._per_second, self._left + gained)
        self._at_s = now_s
        self._left -= 1
        return self._left >= 0
