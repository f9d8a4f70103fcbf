"""Which trades a viewer of the firehose is shown, and what is told of the others. Pure.

``appended = shown + left_out`` holds in every message.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import orjson

from gateway.operators.firehose.log_piece import LogEntry
from ingest.trade import InvalidTrade, Trade
from throttle.contract.dead_letter import text_of
from tickthrottle_client.taking_back_v1 import CANCELS

TEXT_BYTES = 64
"""So much of an entry is shown that is no trade."""

MOST_KEPT_S = 1.0
"""A viewer that reads slowly is kept the rows of so long a time; older are left out."""

T = TypeVar("T")


def encode_row(entry: LogEntry) -> bytes:
    """Encode a trade as it is shown: 512 bytes at most.

    An entry that is no trade by the rules of ``ingest/trade.py``, as in a log whose job
    has a decoder, is shown by the beginning of its bytes, and so is one that takes a
    trade back.
    """
    size = len(entry.payload)
    text = text_of(entry.payload[:TEXT_BYTES])
    try:
        trade = Trade.from_wire(entry.payload)
    except InvalidTrade as error:
        return orjson.dumps({"bytes": size, "reason": error.reason, "text": text})
    if not trade.is_trade:
        return orjson.dumps({"bytes": size, "reason": CANCELS, "text": text})
    return orjson.dumps(
        {
            "isin": trade.isin,
            "price": trade.price,
            "size": trade.size,
            "time": trade.time_us,
            "bytes": size,
        }
    )


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
