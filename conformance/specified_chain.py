"""The chain of windows: lines, digests, links and hashes. Pure.

Written from the specification alone (docs/spec/tick-v1-parts.md), so that it may judge
whoever has written it otherwise.
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from decimal import Context, Decimal
from hashlib import sha256
from json import JSONDecoder
from typing import Any, NamedTuple

HASH_CHARS, SHORT_CHARS = 43, 16
"""Those of a hash, and those of the part that is told where the rest is known."""

_EXACT = Context(prec=400)
_NUMBER = r"([0-9.]+)"
_SUMS = re.compile(
    rf',"trades":([0-9]+)(?:,"volume":{_NUMBER},"value":{_NUMBER}'
    rf'(?:,"high":{_NUMBER},"low":{_NUMBER})?)?(?:,"day":\{{[^{{}}]*\}})?\}}$'
)
_DATA = '"data":['


def hash_of(text: str) -> str:
    return urlsafe_b64encode(sha256(text.encode()).digest())[:HASH_CHARS].decode()


def lines_of(message: str) -> list[str]:
    """Return the line of each item of a message. Raises ValueError for a bad one."""
    lines, decode = list[str](), JSONDecoder().raw_decode
    at = message.index(_DATA) + len(_DATA)
    while message[at] != "]":
        _, end = decode(message, at)
        lines.append(line_of(message[at:end]))
        at = end + (message[end] == ",")
    return lines


def line_of(item: str) -> str:
    """Return the line of an item, given as its text. Raises ValueError."""
    sums = _SUMS.search(item)
    if sums is None:
        raise ValueError(f"{item:.80}: says no trades behind all else")
    texts = sums.groups() if sums[2] else sums.groups()[:1]
    return f"{item[: sums.start()]}}} {','.join(text or '' for text in texts)}"


def sums_of(item: dict[str, Any]) -> tuple[Any, ...]:
    """Return trades, volume and value of an item; None where it does not say them."""
    if "volume" in item:
        return item["trades"], item["volume"], item["value"]
    if item["trades"] == 1 and "updates" not in item:
        price, size = Decimal(item["price"]), Decimal(item["size"])
        return 1, size, _EXACT.multiply(price, size)
    return item["trades"], None, None


def totals_of(items: Iterable[dict[str, Any]]) -> str:
    """Return what a link says of all of these items: trades, volume and value."""
    totals: list[Decimal | None] = [Decimal(0)] * 3
    for item in items:
        pairs = zip(totals, sums_of(item), strict=True)
        totals = [
            None if a is None or b is None else _EXACT.add(a, Decimal(b))
            for a, b in pairs
        ]
    return " ".join(map(_text, totals))


def _text(number: Decimal | None) -> str:
    text = "-" if number is None else f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def added(totals: Iterable[str]) -> str:
    """Return the totals of several windows."""
    names = ("trades", "volume", "value")
    return totals_of(
        {
            name: None if n == "-" else Decimal(n)
            for name, n in zip(names, t, strict=True)
        }
        for t in map(str.split, totals)
    )


class ChainEnd(NamedTuple):
    """A window and its hash."""

    epoch: str
    offset: int
    hash: str

    def after(self, link: str) -> "ChainEnd":
        """Return the place of the next window, whose link says this."""
        here = f"{self.epoch} {self.offset + 1}"
        text = f"{self.epoch} {self.offset} {self.hash}\n{here} {link}"
        return ChainEnd(self.epoch, self.offset + 1, hash_of(text))


def link_of(window: int, lines: Iterable[str], items: Iterable[dict[str, Any]]) -> str:
    """Return what the link of a window with these rows says."""
    digest = hash_of("\n".join(sorted(lines, key=str.encode)))
    return f"{window} {totals_of(items)} {digest}"
