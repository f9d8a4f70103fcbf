"""Which trades a viewer of the firehose is shown, and how many a look reads. Pure.

``appended = shown + left_out`` holds in every message.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import orjson

from ingest.trade import InvalidTrade, Trade
from throttle.contract.dead_letter import text_of
from tickthrottle_client.taking_back_v1 import CANCELS

TEXT_BYTES = 64
"""So much of an entry is shown that is no trade."""

MOST_KEPT_S = 1.0
"""A viewer that reads slowly is kept the rows of so long a time; older are left out."""

MOST_ENTRIES = 250
"""Most entries that one look reads, of all partitions together."""

MOST_BYTES = 262_144
"""About the most bytes that one look reads; see ``ReadBudget``."""

FIRST_ENTRIES = 64
"""Entries that the first look reads: how large they are is not known yet."""

GROWTH = 4
"""A look reads at most this many times the entries of the look before."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry of the log."""

    append_ms: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class LogPiece:
    """What was appended since the look before: ``appended`` entries by the log's count.

    ``entries`` are the newest of them, in the order of their append times, no more
    than one look may read.
    """

    appended: int = 0
    entries: Sequence[LogEntry] = ()

    @property
    def read_bytes(self) -> int:
        """How many bytes the entries have that were read."""
        return sum(len(entry.payload) for entry in self.entries)


def share_out(appended: Mapping[int, int], most: int) -> dict[int, int]:
    """Return how many of the newest entries to read of each partition that grew.

    All if they are ``most`` or fewer, otherwise a part in proportion, at least one.
    """
    grown = {p: count for p, count in appended.items() if count > 0}
    total = sum(grown.values())
    if total <= most:
        return grown
    return {p: max(1, count * most // total) for p, count in grown.items()}


class ReadBudget:
    """How many entries a look may read.

    A log cannot be asked for "so many bytes". So the number goes by the mean size of
    the entries that were read last, and grows at most fourfold: where large entries
    hide behind small ones, one look may read more than ``MOST_BYTES``.
    """

    def __init__(self) -> None:
        self.entries = FIRST_ENTRIES
        self.mean_bytes = 0.0

    def learn(self, piece: LogPiece) -> None:
        """Take in how large the entries of a look were."""
        if not piece.entries:
            return
        self.mean_bytes = piece.read_bytes / len(piece.entries)
        fitting = int(MOST_BYTES / max(1.0, self.mean_bytes))
        self.entries = max(1, min(MOST_ENTRIES, self.entries * GROWTH, fitting))

    def bytes_of(self, piece: LogPiece) -> int:
        """Return how many bytes were appended.

        Those of entries that were not read are estimated, by the mean of the others.
        """
        unread = piece.appended - len(piece.entries)
        return piece.read_bytes + round(unread * self.mean_bytes)


def encode_row(entry: LogEntry) -> bytes:
    """Encode a trade as it is shown: 512 bytes at most.

    An entry that is no trade by the rules of ``ingest/trade.py``, as in a log whose job
    has a decoder, is shown by the beginning of its bytes, and so is one that takes a
    trade back.
    """
    size, reason = len(entry.payload), CANCELS
    try:
        trade = Trade.from_wire(entry.payload)
        if trade.is_trade:
            fields = {"isin": trade.isin, "price": trade.price, "size": trade.size}
            return orjson.dumps(fields | {"time": trade.time_us, "bytes": size})
    except InvalidTrade as error:
        reason = error.reason
    text = text_of(entry.payload[:TEXT_BYTES])
    return orjson.dumps({"bytes": size, "reason": reason, "text": text})


def thin(items: Sequence[T], most: int) -> Sequence[T]:
    """Return at most so many items, evenly spread, in their order."""
    count = len(items)
    if count <= most:
        return items
    return [items[n * count // most] for n in range(most)]


class RowAllowance:
    """How many rows a viewer may be shown: so many a second, whatever the pace."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self._left = 0.0

    def grow(self, elapsed_s: float) -> None:
        """Let time pass; what was not used is kept for a second at most."""
        self._left = min(float(self.rate), self._left + self.rate * elapsed_s)

    @property
    def rows(self) -> int:
        """How many rows may be shown now."""
        return int(self._left)

    def use(self, rows: int) -> None:
        """Note how many were shown."""
        self._left -= rows


@dataclass(slots=True)
class Sample:
    """What a viewer has not been sent yet: some rows, and the sums of everything.

    ``unread`` of the ``appended`` entries were not even read: their size is
    estimated.
    """

    appended: int = 0
    unread: int = 0
    size: int = 0
    rows: list[bytes] = field(default_factory=list)

    def add(self, appended: int, unread: int, size: int, rows: Sequence[bytes]) -> None:
        """Take in a look at the log."""
        self.appended += appended
        self.unread += unread
        self.size += size
        self.rows += rows

    def keep(self, most: int) -> None:
        """Leave the oldest rows out, beyond so many."""
        if len(self.rows) > most:
            del self.rows[: len(self.rows) - most]

    @property
    def left_out(self) -> int:
        """How many entries are not shown."""
        return self.appended - len(self.rows)

    def encode(self) -> bytes:
        """Encode the message."""
        head = orjson.dumps(
            {
                "type": "trades",
                "appended": self.appended,
                "shown": len(self.rows),
                "left_out": self.left_out,
                "unread": self.unread,
                "bytes": self.size,
            }
        )
        return head[:-1] + b',"data":[' + b",".join(self.rows) + b"]}"
