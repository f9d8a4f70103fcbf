"""What each engine publishes, in one form. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import orjson

from bench.peers.comparison import Rows, Version
from throttle.contract.snapshot import WindowSnapshot

WINDOW_MS = 2_000
_HEAD = re.compile(rb'"window":(\d+)(?:,"windows":(\d+))?')
_HEAD_BYTES = 200


class Message(NamedTuple):
    """The rows of one window, or of one part of it."""

    end_ms: int
    rows: Sequence[tuple[str, Version]]


class Received(NamedTuple):
    """What a subscriber had at a moment (ms since 1970), its rows still as they came.

    It ends a window, or stands for the last so many of them.
    """

    at_ms: float
    end_ms: int
    windows: int
    data: bytes

    @classmethod
    def of(cls, at_ms: float, data: bytes) -> "Received":
        """Read the head of a message. Raises ValueError if it has none."""
        found = _HEAD.search(data, 0, _HEAD_BYTES)
        if found is None:
            raise ValueError(f"{data[:_HEAD_BYTES]!r}: says no window")
        return cls(at_ms, int(found[1]), int(found[2] or 1), data)


def read_ours(data: bytes) -> Message:
    """Read what tickthrottle publishes, or keeps in its window log."""
    snapshot = WindowSnapshot.decode(data)
    bodies = (orjson.loads(row.body) for row in snapshot.rows)
    return Message(snapshot.window, _rows(bodies))


def read_peer(data: bytes) -> Message:
    fields = orjson.loads(data)
    return Message(fields["window"], _rows(fields["rows"]))


def _rows(trades: Iterable[dict[str, object]]) -> list[tuple[str, Version]]:
    return [(t["isin"], (t["time"], t["seq"])) for t in trades]  # type: ignore[misc]


def rows_of(messages: Iterable[Message]) -> Rows:
    """Return the rows by window; of an instrument that came twice the last one."""
    found: Rows = defaultdict(dict)
    for message in messages:
        found[message.end_ms].update(message.rows)
    return found


def arrivals(received: Iterable[Received]) -> dict[int, list[float]]:
    """Return when the messages of each window came, by its end."""
    found: dict[int, list[float]] = defaultdict(list)
    for one in received:
        for back in range(one.windows):
            found[one.end_ms - back * WINDOW_MS].append(one.at_ms)
    return found
