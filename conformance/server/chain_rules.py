"""What a server says of the chain, message by message (S-51 to S-54). Pure."""

from collections.abc import Iterator
from typing import Any

from conformance.specified_chain import (
    HASH_CHARS,
    SHORT_CHARS,
    ChainEnd,
    added,
    hash_of,
    lines_of,
    totals_of,
)

KEPT_LEAST = 16


class ChainRules:
    """Takes all messages of a connection behind the ``ack``; yields what they break.

    ``place`` is the newest window whose hash is known. With ``has_all`` the connection
    is sent every row of the stream: then totals and digests are compared, too (C-31).
    """

    def __init__(self, place: ChainEnd | None = None, *, has_all: bool = True) -> None:
        self.place = place
        self._has_all = has_all
        self._items: list[dict[str, Any]] = []
        self._is_whole = False

    def take(self, text: str, frame: dict[str, Any]) -> Iterator[tuple[str, str]]:
        kind, place = frame["type"], self.place
        if kind not in ("snapshot", "update", "heartbeat") or frame["epoch"] is None:
            return
        if kind == "update":
            self._items += frame["data"]
        if kind == "snapshot" and not frame["final"]:
            return
        where = f"{kind} at {frame['offset']}"
        chain = frame.get("chain")
        if chain is None:
            if place is not None and frame["offset"] > place.offset:
                yield "S-52", f"{where} says nothing of the chain since {place.offset}"
        elif (
            place is None
            or place.epoch != frame["epoch"]
            or [len(text) for text in chain] == [HASH_CHARS]
        ):
            yield from self._begin(frame, chain, where)
        else:
            yield from self._go_on(place, text, frame, where)

    def _begin(
        self, frame: dict[str, Any], chain: list[str], where: str
    ) -> Iterator[tuple[str, str]]:
        place, told = self.place, len(chain[0]) if chain else 0
        if len(chain) != 1 or told != HASH_CHARS:
            yield "S-53", f"{where}: {chain} is no whole hash alone"
        elif place is not None and place.epoch == frame["epoch"]:
            behind = frame["offset"] - place.offset
            if behind <= KEPT_LEAST:
                yield "S-54", f"{where} begins anew, {behind} windows on"
        self.place = ChainEnd(frame["epoch"], frame["offset"], (chain or [""])[0])
        self._items, self._is_whole = [], False

    def _go_on(
        self, place: ChainEnd, text: str, frame: dict[str, Any], where: str
    ) -> Iterator[tuple[str, str]]:
        told, *links = frame["chain"]
        windows = frame["offset"] - place.offset
        if len(links) != windows:
            yield "S-52", f"{where}: {len(links)} links for {windows} windows"
        for link in links:
            place = place.after(link)
        if told not in (place.hash, place.hash[:SHORT_CHARS]):
            yield "S-52", f"{where}: its links make the hash {place.hash}, not {told}"
        is_update = frame["type"] == "update"
        merged = frame.get("merged", 1)
        if self._has_all and self._is_whole and frame["type"] != "snapshot":
            parts = [link.split(" ") for link in links]
            books = added(" ".join(part[1:4]) for part in parts)
            if (rows := totals_of(self._items)) != books:
                yield "S-52", f"{where}: its rows make {rows}, its links {books}"
            if is_update and merged == len(links) == 1:
                lines = sorted(lines_of(text), key=str.encode)
                if hash_of("\n".join(lines)) != parts[0][4]:
                    yield "S-52", f"{where}: its link has the digest of other rows"
        is_settled = is_update and merged <= len(links)
        self._is_whole = frame["type"] != "snapshot" and (self._is_whole or is_settled)
        self.place, self._items = place, []
