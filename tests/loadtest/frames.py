"""Frames as a gateway sends them, and a client that takes them."""

import json
from typing import Any

from loadtest.judge.checker import Checker
from loadtest.judge.rows import RowReader

EPOCH = "k3x9"
A, B, C = "KR7005930003", "KR7000660001", "KR7035420009"


def make_item(isin: str = A, seq: int = 1, trades: int = 1, **fields: Any) -> Any:
    """Return an item; a greater ``seq`` makes it newer."""
    item = {"isin": isin, "time": 1_000 + seq, "seq": seq, "price": 100 + seq}
    return {**item, "size": 1, "trades": trades, **fields}


class Told:
    """A checker that is told frames by a connection."""

    def __init__(self, *keys: str) -> None:
        self.checker = Checker(keys or (A, B))
        self._reader = RowReader()
        self.now_ms = 0.0

    def tell(self, kind: str, offset: int = 0, *items: Any, **fields: Any) -> "Told":
        frame = {"type": kind, "epoch": EPOCH, "offset": offset}
        frame |= {"window": offset * 2_000, **fields}
        if kind in ("update", "snapshot"):
            frame["data"] = list(items)
        head, rows = self._reader.read(
            json.dumps(frame, separators=(",", ":")).encode()
        )
        self.now_ms += 1
        self.checker.take(head, rows, self.now_ms)
        return self

    def join(self, offset: int = 1, *items: Any, resumed: bool = False) -> "Told":
        return self.subscribe(resumed=resumed).snapshot(offset, *items)

    def subscribe(self, *, resumed: bool = False) -> "Told":
        self.checker.connected()
        return self.tell("ack", op="subscribe", rejected=[], resumed=resumed)

    def snapshot(self, offset: int, *items: Any, final: bool = True) -> "Told":
        return self.tell(
            "snapshot", offset, *({**i, "trades": 0} for i in items), final=final
        )

    def update(self, offset: int, *items: Any, **fields: Any) -> "Told":
        return self.tell("update", offset, *items, **fields)

    @property
    def faults(self) -> list[str]:
        assert self.checker.fault_count == len(self.checker.faults)
        return self.checker.faults
