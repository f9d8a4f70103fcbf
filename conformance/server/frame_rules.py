"""What every frame of a server must keep, on one connection, in their order. Pure.

Frames come as text; numbers of them are read without losing a digit.
"""

import json
from collections import deque
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, TypeAlias

from conformance.server.chain_rules import ChainRules

Frame: TypeAlias = dict[str, Any]
Breach: TypeAlias = tuple[str, str]
Version: TypeAlias = tuple[int, int, int]

PIECE = 500
BANDS = "price_bands"
SUMS = ("volume", "value", "high", "low")
ANSWERS = {"ack", "pong", "error"}
WELCOME = ("protocol", "connection", "epoch", "window_ms", "heartbeat_ms", "limits")


def read_frame(data: str | bytes) -> Frame:
    """Return a frame, its decimals as Decimal, exactly. Raises ValueError for none."""
    if isinstance(data, bytes):
        raise ValueError("a binary frame")
    frame = json.loads(data, parse_float=Decimal)
    if not isinstance(frame, dict) or not isinstance(frame.get("type"), str):
        raise ValueError(f"no object with a type: {data:.80}")
    return frame


class FrameRules:
    """Takes all frames of a connection; ``breaches`` has what they break.

    ``asked`` has to be told of each message of the client, by its ``id``.
    """

    def __init__(self) -> None:
        self.breaches: list[Breach] = []
        self._owed: deque[Any] = deque()
        self._count = 0
        self._epoch: str | None = None
        self._offset = self._window = self._span = -1
        self._versions: dict[str, Version] = {}
        self._in_window: dict[str, int] = {}
        self._groups: dict[str, int] = {}
        self._bars: dict[tuple[Any, ...], tuple[int, int, bool]] = {}
        self._numbers: dict[str, int] = {}
        self._may_repeat = self._is_anew = False
        self._statuses: str | None = None
        self._number = 0
        self._is_rest = False
        self.is_held = False
        """Whether a whole snapshot has come."""
        self.says_sums = True
        """Whether items may be held to have them: not those of a token with a pace."""
        self.met: set[str] = set()
        """Clauses of what has come and need not: S-17, S-26, S-28."""
        self.chain: ChainRules | None = None
        """What is told of the chain is held to these, once it was asked for."""

    def asked(self, number: Any) -> None:
        """Take in that the client says a message with this ``id``."""
        self._owed.append(number)

    def take(self, data: str | bytes) -> Frame | None:
        """Take the next frame; return it, or None if it is none."""
        try:
            frame = read_frame(data)
            self.breaches += self._breaches(frame)
            if self.chain is not None:
                self.breaches += self.chain.take(str(data), frame)
        except ValueError as error:
            self.breaches.append(("S-4", str(error)))
            return None
        except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
            self.breaches.append(("S-4", f"{error!r} in {data!r:.160}"))
        self._count += 1
        return frame

    def _breaches(self, frame: Frame) -> Iterator[Breach]:
        kind = frame["type"]
        if (kind == "welcome") != (self._count == 0):
            yield "S-5", f"{kind} is message {self._count + 1}"
        if kind == "welcome":
            lacking = [name for name in WELCOME if name not in frame]
            if lacking or frame["protocol"] != "tick.v1":
                yield "S-5", f"a welcome without {lacking}: {frame}"
        elif kind in ANSWERS:
            yield from self._answer(frame)
        elif kind in ("snapshot", "update", "heartbeat") and frame["epoch"] is not None:
            yield from self._position(frame)
            if kind != "heartbeat":
                yield from self._items(frame)
        elif kind == "bars":
            yield from self._take_bars(frame)
        elif kind == "trades":
            yield from self._entries(frame)
        elif kind == "statuses":
            yield from self._take_statuses(frame)

    def _answer(self, frame: Frame) -> Iterator[Breach]:
        wanted = self._owed.popleft() if self._owed else None
        if frame.get("id") != wanted:
            yield "S-8", f"an answer to {frame.get('id')!r}, due was {wanted!r}"
        if frame.get("op") == "subscribe":
            self._may_repeat = True

    def _position(self, frame: Frame) -> Iterator[Breach]:
        epoch, offset, window = frame["epoch"], frame["offset"], frame["window"]
        if epoch != self._epoch:
            if self.is_held and self._epoch is not None:
                self.met.add("S-17")
                self._is_anew = True
            self._epoch, self._offset, self._window, self._span = epoch, -1, -1, -1
            self._versions.clear()
            self._in_window.clear()
            self._groups.clear()
        for name, value, before in (
            ("offset", offset, self._offset),
            ("window", window, self._window),
        ):
            if value < before:
                yield "S-19", f"{name} {value} behind {before}"
        self._offset, self._window = offset, window
        merged = frame.get("merged", 1)
        if frame["type"] == "update" and merged:
            if offset - merged < self._span:
                yield "S-21", f"windows up to {self._span} were told, then {frame}"
            self._span = offset

    def _items(self, frame: Frame) -> Iterator[Breach]:
        items, is_snapshot = frame["data"], frame["type"] == "snapshot"
        if is_snapshot and len(items) + len(frame.get("groups", ())) > PIECE:
            yield "S-16", f"a piece of {len(items)} items"
        if not is_snapshot and not self.is_held:
            yield "S-16", f"an update before the snapshot, at {frame['offset']}"
        if not is_snapshot and self._is_anew:
            yield "S-17", f"an update of {frame['epoch']}, which has had no snapshot"
        self._is_anew &= not is_snapshot
        if is_snapshot and self._may_repeat:
            self._in_window.clear()
        names = [item["isin"] for item in items if isinstance(item, dict)]
        if len(set(names)) < len(names):
            yield "S-19", f"an instrument twice at {frame['offset']}"
        for item in items:
            if isinstance(item, dict):
                yield from self._item(item, frame, is_snapshot=is_snapshot)
        for figures in frame.get("groups", ()):
            name, window = figures["group"], figures["window"]
            if window < self._groups.get(name, -1):
                yield "S-19", f"{name} went back to window {window}"
            self._groups[name] = window
        if is_snapshot:
            self._may_repeat = False
            self.is_held |= frame["final"]

    def _item(
        self, item: Frame, frame: Frame, *, is_snapshot: bool
    ) -> Iterator[Breach]:
        isin, where = item["isin"], f"{item['isin']} at {frame['offset']}"
        version = item.get("revision", 0), item["time"], item["seq"]
        before = self._versions.get(isin)
        if before is not None and version < before:
            yield "S-19", f"{where} went back"
        elif before is not None and not is_snapshot and self.says_sums:
            yield from self._restated(item, where, version, before)
        self._versions[isin] = version
        if is_snapshot and item["trades"]:
            yield "S-16", f"{where} stands for {item['trades']} trades in a snapshot"
        if not is_snapshot and self._in_window.get(isin) == frame["window"]:
            yield "S-20", f"{where} comes twice in window {frame['window']}"
        self._in_window[isin] = frame["window"]
        yield from breaches_of_sums(item, where)

    def _restated(
        self, item: Frame, where: str, version: Version, before: Version
    ) -> Iterator[Breach]:
        """Look at an item of a trade that was shown, or that takes one back."""
        trades, volume = item["trades"], item.get("volume")
        if version == before and trades:
            self.met.add("S-26")
            if trades == 1 and volume is None:
                yield "S-26", f"{where}: late trades without their sums: {item}"
        elif version[0] > before[0]:
            self.met.add("S-28")
            if "day" not in item:
                yield "S-28", f"{where}: a greater revision without a day: {item}"
            if not trades and volume is not None and (volume or item["value"]):
                yield "S-28", f"{where}: no trades, and sums that are not 0: {item}"

    def _take_statuses(self, frame: Frame) -> Iterator[Breach]:
        epoch, entries, missed = frame["epoch"], frame["entries"], frame["missed"]
        numbers = [entry["number"] for entry in entries]
        if len(entries) > PIECE:
            yield "ST-4", f"a piece of {len(entries)} statuses"
        if frame["snapshot"]:
            slots = {(e["isin"], e.get("venue"), e["status"] == BANDS) for e in entries}
            if len(slots) < len(entries):
                yield "ST-4", f"current ones twice: {numbers}"
        is_other = epoch != self._statuses
        before = 0 if is_other else self._number
        if not frame["snapshot"] and not self._is_rest:
            order = [before, *numbers]
            if order != sorted(set(order)):
                yield "ST-1", f"numbers {numbers} behind {before}"
            if not frame.get("resumed") and (missed or (is_other and self._statuses)):
                told = f"{missed} missed, epoch {epoch} behind {self._statuses}"
                yield "ST-5", f"{told}, and not what is current"
        self._statuses, self._number = epoch, max(before, *numbers, 0)
        self._is_rest = len(entries) == PIECE and (frame["snapshot"] or self._is_rest)

    def _take_bars(self, frame: Frame) -> Iterator[Breach]:
        if len(frame["bars"]) > PIECE:
            yield "S-29", f"a piece of {len(frame['bars'])} bars"
        names = [(bar["interval"], bar["isin"], bar["start"]) for bar in frame["bars"]]
        if len(set(names)) < len(names):
            yield "S-29", f"a bar twice at {frame['sequence']}"
        for bar in frame["bars"]:
            name = frame["epoch"], bar["interval"], bar["isin"], bar["start"]
            order = bar["revision"], bar["trades"], bar["closed"]
            if order < self._bars.get(name, order):
                yield "S-32", f"bar {name} went back to {order}"
            self._bars[name] = order

    def _entries(self, frame: Frame) -> Iterator[Breach]:
        isin, number, missed = frame["isin"], frame["number"], frame["missed"]
        due = self._numbers.get(isin)
        if due is not None and missed is not None and number != due + missed:
            yield "S-30", f"entry {number} of {isin}, due was {due} and {missed} missed"
        if not frame["entries"]:
            yield "S-30", f"trades of {isin} without an entry"
        self._numbers[isin] = number + len(frame["entries"])


def breaches_of_sums(item: Frame, where: str) -> Iterator[Breach]:
    """Yield what is wrong with the decimals of an item."""
    for name in ("price", "size", *SUMS):
        text = str(item.get(name, 0))
        if "E" in text.upper():
            yield "S-1", f"{where}: {name} {text} has an exponent"
        if name in SUMS and "." in text and text.endswith("0"):
            yield "S-1", f"{where}: {name} {text} has zeros at its end"
    if "volume" not in item:
        return
    if "value" not in item or ("high" in item) != ("low" in item):
        yield "S-25", f"{where}: sums that are not whole: {item}"
    elif "high" in item and item["low"] > item["high"]:
        yield "S-25", f"{where}: low {item['low']} is above high {item['high']}"
