"""Rows that come by position, as the items that they stand for. Pure."""

from collections.abc import Collection
from typing import Any

EVERY = "*"
"""All fields of an item, as the gateway has them."""

HAVE_ROWS = ("snapshot", "update")
"""Messages whose ``data`` and ``groups`` are known; those of others are not."""

_BEFORE = ("age", "time", "seq", "price", "size")
_BEHIND = (
    *("further", "updates", "corrects", "revision", "trades"),
    *("volume", "value", "high", "low", "day"),
)
_DAY = ("start", "trades", "volume", "value", "high", "low", "open")
_OF_DAYS = ("price", "size", *_BEHIND[-6:])


def wire_fields(fields: Collection[str] | None) -> list[str]:
    """Return what to ask a gateway for, to get these fields of items; None: all.

    Every item has ``trades``, and a day is kept with all that adds to it. Raises
    TypeError for what is no name.
    """
    if fields is None:
        return [EVERY]
    if isinstance(fields, str) or not all(isinstance(name, str) for name in fields):
        raise TypeError(f"fields {fields!r:.80}: must be names, such as ['price']")
    wanted = [*fields, *(_OF_DAYS if "day" in fields else ()), "trades"]
    names = ("age" if name == "time" else name for name in wanted)
    return [*dict.fromkeys(name for name in names if name != "isin")]


class RowPositions:
    """Which fields a connection's rows have, and which instrument a number is.

    ``is_used`` is false where rows come as objects.
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._fields: list[tuple[str, int]] = []
        self.is_used = False

    def take(self, message: dict[str, Any]) -> None:
        """Note what a message says of rows; make items of those that it has.

        Raises any Exception for a message that no gateway sends.
        """
        if message["type"] == "ack" and message.get("op") == "subscribe":
            fields = message.get("fields")
            self.is_used = fields is not None
            self._fields = sorted(
                ((name, at) for at, name in enumerate(fields or (), 1)), key=_place
            )
        if message["type"] in (*HAVE_ROWS, "ack", "members"):
            for number, isin in message.get("names", {}).items():
                self._names[int(number)] = isin
        if self.is_used and message["type"] in HAVE_ROWS:
            window_us = (message["window"] or 0) * 1_000
            message["data"] = [self._item(row, window_us) for row in message["data"]]

    def _item(self, row: list[Any], window_us: int) -> dict[str, Any]:
        item: dict[str, Any] = {"isin": self._names[row[0]]}
        count = len(row)
        for name, at in self._fields:
            value = row[at] if at < count else None
            if value is None:
                continue
            if name == "age":
                item["time"] = window_us - value
            elif name == "further":
                item.update(value)
            elif name == "day":
                pairs = zip(_DAY, value, strict=False)
                item["day"] = {n: part for n, part in pairs if part is not None}
            else:
                item[name] = value
        return item


def _place(field: tuple[str, int]) -> tuple[int, int]:
    """Return where an item has a field: further ones as the row has them."""
    name, at = field
    if name in _BEFORE:
        return 0, _BEFORE.index(name)
    return (2, _BEHIND.index(name)) if name in _BEHIND else (1, at)
