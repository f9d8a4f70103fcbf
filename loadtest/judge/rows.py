"""Frames read fast: the same rows go to thousands of clients. Pure.

A row is parsed once; the next client's is told by its bytes. What cannot be cut into
rows by simple means is parsed as a whole: both ways give the same. Sums of a row are
not read here: the row is kept for ``sums_check.py``.
"""

import json
from collections.abc import Mapping, Sequence
from sys import intern
from typing import Any, TypeAlias

import orjson

Item: TypeAlias = tuple[str, int, int, str, int]
"""ISIN, time, seq, the price as it was written, trades (-1 if there are none)."""

Frame: TypeAlias = Mapping[str, Any]
"""A frame's fields; ``data``, if it has one, is empty: its rows stand beside it."""

ROWS_KEPT = 50_000

MOST_SAID = 200_000
"""So many rows that stand for trades are kept to be judged; of more, every second."""

NO_TRADES = -1

_DATA = b'"data":['
_END = b"]}"
_BETWEEN = b"},{"


class RowReader:
    """Reads frames and answers, remembers rows.

    ``said`` has, by epoch, the rows that stand for trades, each once or a few times.
    """

    def __init__(self) -> None:
        self.said: dict[str | None, list[bytes]] = {}
        self._passed = self._every = 1
        self._rows: dict[bytes, Item] = {}
        self._payload = b""
        self._read: tuple[Frame, Sequence[Item]] = ({}, ())

    def read(self, payload: bytes) -> tuple[Frame, Sequence[Item]]:
        """Return a frame and its rows.

        Raises ValueError, KeyError or TypeError if it is no object, or its rows are
        not as they have to be.
        """
        if payload == self._payload:
            return self._read
        at = payload.find(_DATA)
        if at < 0 or not payload.endswith(_END):
            frame = orjson.loads(payload)
            return frame, [to_item(row) for row in frame.get("data", ())]
        try:
            read = self._cut(payload, at + len(_DATA))
        except orjson.JSONDecodeError:
            read = _parse(payload)
        self._payload, self._read = payload, read
        return read

    def _cut(self, payload: bytes, start: int) -> tuple[Frame, Sequence[Item]]:
        frame: Frame = orjson.loads(payload[:start] + _END)
        body = payload[start + 1 : -len(_END) - 1]
        if not body:
            return frame, () if len(payload) == start + len(_END) else _fail(payload)
        if payload[start] != _BETWEEN[2] or payload[-len(_END) - 1] != _BETWEEN[0]:
            _fail(payload)
        known = self._rows
        items = []
        for row in body.split(_BETWEEN):
            item = known.get(row)
            if item is None:
                if len(known) >= ROWS_KEPT:
                    known.clear()
                whole = b"{%b}" % row
                item = known[row] = to_item(orjson.loads(whole), whole)
                if item[4] > 0:
                    self._keep(frame.get("epoch"), whole)
            items.append(item)
        return frame, items

    def _keep(self, epoch: str | None, row: bytes) -> None:
        self._passed += 1
        if self._passed % self._every == 0:
            said = self.said.setdefault(epoch, [])
            said.append(row)
            if len(said) > MOST_SAID:
                del said[::2]
                self._every *= 2


def _fail(payload: bytes) -> Sequence[Item]:
    raise orjson.JSONDecodeError("not rows", payload[:80].decode("utf-8", "replace"), 0)


def _parse(payload: bytes) -> tuple[Frame, Sequence[Item]]:
    frame = orjson.loads(payload)
    exact = json.loads(payload, parse_float=ExactNumber)
    return {**frame, "data": ()}, [to_item(row) for row in exact["data"]]


class ExactNumber(str):
    """A number as it was written."""


def to_item(row: Mapping[str, Any], text: bytes | None = None) -> Item:
    """Return a row, its price as it was written in its ``text``.

    Raises KeyError or TypeError if a field is not as it has to be.
    """
    isin, time_us, seq, price = row["isin"], row["time"], row["seq"], row["price"]
    trades = row.get("trades", NO_TRADES)
    if type(time_us) is not int or type(seq) is not int or type(trades) is not int:
        raise TypeError("time, seq and trades have to be whole numbers")
    if type(isin) is not str:
        raise TypeError("isin has to be text")
    if type(price) is float:
        # A double would lose digits.
        price = json.loads(text or b"null", parse_float=ExactNumber)["price"]
    if type(price) is not int and type(price) is not ExactNumber:
        raise TypeError("price has to be a number")
    # One object for all windows: it is what clients are asked by.
    return intern(isin), time_us, seq, str(price), trades
