"""What each engine publishes, in one form. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import orjson

from bench.peers.oracle import Rows, Version
from throttle.contract.snapshot import WindowSnapshot


class Message(NamedTuple):
    """One message: it ends a window, or stands for the last so many of them."""

    end_ms: int
    windows: int
    rows: Sequence[tuple[str, Version]]


class Received(NamedTuple):
    """A message and when a subscriber had it, in ms since 1970."""

    at_ms: float
    message: Message


def read_ours(data: bytes) -> Message:
    """Read what tickthrottle publishes, or keeps in its window log."""
    snapshot = WindowSnapshot.decode(data)
    bodies = (orjson.loads(row.body) for row in snapshot.rows)
    return Message(snapshot.window, snapshot.windows, _rows(bodies))


def read_peer(data: bytes) -> Message:
    """Read what the programs in Java publish."""
    fields = orjson.loads(data)
    return Message(fields["window"], 1, _rows(fields["rows"]))


def _rows(trades: Iterable[dict[str, object]]) -> list[tuple[str, Version]]:
    return [(t["isin"], (t["time"], t["seq"])) for t in trades]  # type: ignore[misc]


def rows_of(messages: Iterable[Message]) -> Rows:
    """Return the rows by window; of an issue that came twice the last one."""
    found: Rows = defaultdict(dict)
    for message in messages:
        found[message.end_ms].update(message.rows)
    return found


def arrivals(received: Iterable[Received], window_ms: int) -> dict[int, list[float]]:
    """Return when the messages of each window came, by its end."""
    found: dict[int, list[float]] = defaultdict(list)
    for at_ms, message in received:
        for back in range(message.windows):
            found[message.end_ms - back * window_ms].append(at_ms)
    return found
