"""What a played server tells of the chain of windows, right or with a fault. Pure."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from conformance.client.transcript import FIRST_WINDOW, WINDOW_MS, encode
from conformance.specified_chain import SHORT_CHARS, ChainEnd, hash_of, line_of, link_of

FAULTS: dict[str, Callable[[list[str]], list[str]]] = {
    "flipped": lambda links: [*links[:-1], _flipped(links[-1])],
    "one missing": lambda links: links[1:],
    "older as well": lambda links: ["0 0 0 0 of-before", *links],
}
"""What becomes of links on their way."""

MADE: dict[str, Callable[[list[str]], list[str]]] = {
    "lost totals": lambda links: [*links[:-1], _with(links[-1], 1, "77")],
    "other rows": lambda links: [*links[:-1], _with(links[-1], 4, hash_of("others"))],
}
"""What links say otherwise, under a hash that is made over it."""


class ToldChain:
    """Makes ``chain`` of the messages of a transcript, one after the other.

    The word of a transcript is ``begins`` (a whole hash), ``part`` (of one),
    ``links`` (of each window since), ``elsewhere`` (links behind another window), or a
    fault of links. Windows before a message's own have no rows.
    """

    def __init__(self) -> None:
        self._place: ChainEnd | None = None

    def told(self, word: str, message: dict[str, Any]) -> list[str]:
        """Return the texts of a message. Raises KeyError for another word."""
        epoch, offset = message["epoch"], message["offset"]
        if word in ("begins", "part"):
            self._place = ChainEnd(epoch, offset, hash_of(f"{epoch} {offset} {word}"))
            return [self._place.hash if word == "begins" else self._short]
        before = self._place or ChainEnd(epoch, offset - 1, hash_of(""))
        links = self._links(before.offset + 1, message)
        if word not in ("links", "elsewhere", *FAULTS):
            links = MADE[word](links)
        if word == "elsewhere":
            before = before._replace(hash=hash_of(word))
        self._place = before._replace(epoch=epoch)
        for link in links:
            self._place = self._place.after(link)
        return [self._short, *FAULTS.get(word, list)(links)]

    @property
    def _short(self) -> str:
        return "" if self._place is None else self._place.hash[:SHORT_CHARS]

    @staticmethod
    def _links(first: int, message: dict[str, Any]) -> list[str]:
        ends = [
            FIRST_WINDOW + n * WINDOW_MS for n in range(first, message["offset"] + 1)
        ]
        is_update = message["type"] == "update"
        items: Sequence[Any] = message["data"] if is_update else ()
        lines = [line_of(encode(item)) for item in items]
        plain = [json.loads(encode(item), parse_float=str) for item in items]
        quiet = [link_of(end, (), ()) for end in ends[:-1]]
        return [*quiet, link_of(ends[-1], lines, plain)]


def _with(link: str, at: int, text: str) -> str:
    parts = link.split(" ")
    parts[at] = text
    return " ".join(parts)


def _flipped(link: str) -> str:
    return link[:-1] + ("A" if link[-1] != "A" else "B")
