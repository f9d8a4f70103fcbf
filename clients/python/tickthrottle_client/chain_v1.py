"""The chain of windows: what its hashes are over, and how a window is checked. Pure.

This module is a contract (``docs/spec/tick-v1-parts.md``). Each window has a *link*:
its end, the totals of its rows, the digest of its rows, and a hash over all of these
and the place and hash of the window before. A row's *line* is the JSON object of its
trade, a space, and its sums: ``{"isin":…} 37,9170,1829145000,199600,199300``. Series
are not in it. Hashes and digests are SHA-256, base64 of URLs without padding. Where
there is a key, a hash has its HMAC-SHA-256 behind it, where the link is stored.
"""

import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal, localcontext
from hashlib import sha256
from json import JSONDecoder
from typing import NamedTuple

from tickthrottle_client.updates_v1 import PATTERN, Updates

UNKNOWN = "-"
"""The volume and the value of rows of which one does not say it."""

BEGINS = "-"
"""What a link comes after that is the first ever."""

SHORT_CHARS = 16
"""So much of a hash is sent where a client knows the rest."""

_DIGITS = Context(prec=400)
_TRADE = re.compile(rb'"price":([0-9.]+),"size":([0-9.]+)')
_UPDATES = re.compile(PATTERN.encode())
_NUMBER = r"([0-9.]+)"
_ITEM = re.compile(
    rf'(?s)(.*),"trades":([0-9]+)(?:,"volume":{_NUMBER},"value":{_NUMBER}'
    rf'(?:,"high":{_NUMBER},"low":{_NUMBER})?)?(?:,"day":\{{[^{{}}]*\}})?\}}'
)
_DATA = '"data":['


def digest_of(lines: Iterable[bytes]) -> str:
    """Return the digest of rows' lines, in whatever order they come."""
    return _hash(b"\n".join(sorted(lines)))


def _hash(text: bytes) -> str:
    return _text_of(sha256(text).digest())


def _text_of(digest: bytes) -> str:
    return urlsafe_b64encode(digest)[:-1].decode()


def sign(key: bytes, digest: str) -> str:
    """Return the signature of a window's hash."""
    return _text_of(hmac.digest(key, digest.encode(), "sha256"))


class Totals(NamedTuple):
    """Trades, volume and value of rows; the latter as decimal text or ``UNKNOWN``."""

    trades: int
    volume: str
    value: str

    @classmethod
    def of(cls, lines: Iterable[bytes]) -> "Totals":
        """Add up rows' lines. Raises ValueError or IndexError for what is none."""
        trades, volume, value, is_known = 0, Decimal(0), Decimal(0), True
        with localcontext(_DIGITS):
            for line in lines:
                sums = line[line.rindex(b" ") + 1 :].decode().split(",")
                trades += int(sums[0])
                if len(sums) > 1:
                    volume += Decimal(sums[1])
                    value += Decimal(sums[2])
                elif sums[0] == "1" and (trade := _TRADE.search(line)) is not None:
                    says = _UPDATES.search(line) if b'"updates"' in line else None
                    if says is None or Updates.parse(says[1].decode()).volume:
                        size = Decimal(trade[2].decode())
                        volume += size
                        value += Decimal(trade[1].decode()) * size
                else:
                    is_known = False
            if not is_known:
                return cls(trades, UNKNOWN, UNKNOWN)
            return cls(trades, _text(volume), _text(value))

    def plus(self, other: "Totals") -> "Totals":
        """Return those of the rows of both."""
        trades = self.trades + other.trades
        if UNKNOWN in (*self, *other):
            return Totals(trades, UNKNOWN, UNKNOWN)
        with localcontext(_DIGITS):
            pairs = zip(self[1:], other[1:], strict=True)
            sums = (_text(Decimal(one) + Decimal(two)) for one, two in pairs)
            return Totals(trades, *sums)


NO_TRADES = Totals(0, "0", "0")


def _text(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class ChainPlace(NamedTuple):
    """A window in the stream, and its hash."""

    epoch: str
    offset: int
    hash: str

    @property
    def text(self) -> str:
        """What the hash of the next window begins with."""
        return f"{self.epoch} {self.offset} {self.hash}"

    @classmethod
    def parse(cls, text: str) -> "ChainPlace | None":
        """Return the place of ``text``, None for the beginning. Raises ValueError."""
        if text in ("", BEGINS):
            return None
        epoch, offset, digest = text.split(" ")
        return cls(epoch, int(offset), digest)


class Link(NamedTuple):
    """What a window says of itself (``says``), and its hash.

    ``after`` is the place it comes after where that is not the offset before, None if
    it is; ``BEGINS`` if nothing is before it. ``signature`` is empty without a key.
    """

    hash: str
    window: int
    totals: Totals
    digest: str
    after: str | None = None
    signature: str = ""

    @property
    def says(self) -> str:
        """What clients are sent of it, and what the hash is over."""
        return " ".join((str(self.window), *map(str, self.totals), self.digest))

    @property
    def text(self) -> str:
        """How a window's header has it; ``parse`` gives back an equal one."""
        signed = f".{self.signature}" if self.signature else ""
        text = f"{self.hash}{signed} {self.says}"
        return text if self.after is None else f"{text} {self.after}"

    @classmethod
    def parse(cls, text: str) -> "Link":
        """Parse what ``text`` is. Raises ValueError."""
        parts = text.split(" ", 6)
        if len(parts) < 6:
            raise ValueError(f"link {text[:200]!r}: must have six parts or more")
        totals = Totals(int(parts[2]), parts[3], parts[4])
        after = parts[6] if len(parts) > 6 else None
        digest, _, signature = parts[0].partition(".")
        return cls(digest, int(parts[1]), totals, parts[5], after, signature)

    def hash_after(self, before: ChainPlace | None, epoch: str, offset: int) -> str:
        """Return the hash that it must have, behind this place and at that one."""
        text = "" if before is None else before.text
        return _hash(f"{text}\n{epoch} {offset} {self.says}".encode())

    @classmethod
    def make(
        cls,
        before: ChainPlace | None,
        epoch: str,
        offset: int,
        window: int,
        *rows: bytes,
    ) -> "Link":
        """Return the link of a window with these rows' lines."""
        after = None if before is None else before.text
        if before is None:
            after = BEGINS
        elif (before.epoch, before.offset + 1) == (epoch, offset):
            after = None
        link = cls("", window, Totals.of(rows), digest_of(rows), after)
        return link._replace(hash=link.hash_after(before, epoch, offset))


def lines_of_items(frame: str) -> list[bytes]:
    """Return the lines of a message's items, which are objects.

    Raises ValueError or TypeError for what is no message with items.
    """
    lines, decode = list[bytes](), JSONDecoder().raw_decode
    at = frame.index(_DATA) + len(_DATA)
    while frame[at] != "]":
        _, end = decode(frame, at)
        item = _ITEM.fullmatch(frame, at, end)
        if item is None:
            raise ValueError(f"item {frame[at : at + 80]!r}: says no trades")
        body, *sums = item.groups()
        if sums[1] is None:
            sums = sums[:1]
        lines.append(f"{body}}} {','.join(text or '' for text in sums)}".encode())
        at = end + (frame[end] == ",")
    return lines


class Verdict(NamedTuple):
    """What a check says: ``holds``, ``begins`` (nothing was known before), ``broken``.

    It is of the windows behind ``after`` up to ``offset`` of an epoch.
    ``has_rows``: their rows were compared, not their links alone. ``reason`` says what
    is wrong; of what begins, why.
    """

    state: str
    epoch: str
    after: int
    offset: int
    has_rows: bool = False
    reason: str = ""


class ChainCheck:
    """Checks the chain that a client is sent, message by message.

    ``takes_all``: it takes each row of the stream (``*``), so rows and totals are
    checked as well.
    """

    def __init__(self) -> None:
        self.takes_all = False
        self._at: ChainPlace | None = None
        self._window: int | None = None
        # Rows that came since the links that were checked last.
        self._rows = NO_TRADES
        self._is_whole = False

    @property
    def place(self) -> ChainPlace | None:
        """The newest window that was checked."""
        return self._at

    def take(
        self,
        kind: str,
        where: tuple[str, int, int | None],
        windows: int,
        chain: Sequence[str],
        lines: Sequence[bytes],
    ) -> Verdict | None:
        """Take a message in: its type, position, ``merged``, ``chain`` and rows.

        None if it has nothing to be checked. Nothing in it is trusted.
        """
        epoch, offset, window = where
        is_update = kind == "update"
        if is_update:
            self._rows = self._rows.plus(Totals.of(lines))
        if not chain:
            return None
        at, (told, *said) = self._at, chain
        if at is None or at.epoch != epoch or not said:
            return self._begin(ChainPlace(epoch, offset, told), window)
        if offset <= at.offset:
            return None
        # Who came back may have asked from before what it has had meanwhile.
        said = said[at.offset - offset :]
        # What waited before a snapshot may have come in it, without its trades.
        has_rows = self.takes_all and self._is_whole and kind != "snapshot"
        is_one = is_update and windows == 1 and len(said) == 1
        try:
            place, links = _follow(at, offset, told, said)
            if has_rows:
                _compare(self._rows, links, lines if is_one else None)
            newest = max(self._window or 0, *(link.window for link in links))
            if is_one and window != newest:
                raise ValueError(f"it says the window {window}, its link {newest}")
        except ValueError as error:
            self._at = None
            self.lose()
            return Verdict("broken", epoch, at.offset, offset, has_rows, str(error))
        self._at, self._rows, self._window = place, NO_TRADES, newest
        self._is_whole = kind != "snapshot" and (
            self._is_whole or (is_update and windows <= len(links))
        )
        return Verdict("holds", epoch, at.offset, offset, has_rows and is_one)

    def lose(self) -> None:
        """Rows of before may be missing from what comes: another connection."""
        self._rows, self._is_whole = NO_TRADES, False

    def _begin(self, place: ChainPlace, window: int | None) -> Verdict | None:
        # A part of a hash is nothing to go on from.
        is_whole = len(place.hash) > SHORT_CHARS
        before, self._at, self._window = self._at, place if is_whole else None, window
        self.lose()
        if before == place or not is_whole:
            return None
        state, reason = "begins", "nothing was known before"
        if before is not None:
            reason = f"what was known ends at {before.offset} of epoch {before.epoch}"
            if before[:2] == place[:2]:
                state, reason = "broken", "its hash is another one than before"
        return Verdict(state, *place[:2], place.offset, reason=reason)


def _follow(
    at: ChainPlace, offset: int, told: str, said: Sequence[str]
) -> tuple[ChainPlace, list[Link]]:
    """Return the place behind some links. Raises ValueError where they break."""
    if len(said) < offset - at.offset:
        raise ValueError(f"{offset - at.offset} windows went by, {len(said)} are told")
    links, place = [Link.parse(f" {says}") for says in said], at
    for number, link in enumerate(links, at.offset + 1):
        hashed = link.hash_after(place, at.epoch, number)
        place = ChainPlace(at.epoch, number, hashed)
    if len(told) < SHORT_CHARS or place.hash[: len(told)] != told:
        raise ValueError("its links do not give its hash: one is missing or altered")
    return place, links


def _compare(
    rows: Totals, links: Sequence[Link], lines: Sequence[bytes] | None
) -> None:
    """Raise ValueError where rows are not what links say; ``lines`` of one window."""
    totals = NO_TRADES
    for link in links:
        totals = totals.plus(link.totals)
    if rows != totals:
        ours, books = (" ".join(map(str, one)) for one in (rows, totals))
        raise ValueError(
            f"its rows come to {ours} (trades, volume, value), not {books}"
        )
    if lines is not None and digest_of(lines) != links[0].digest:
        raise ValueError("its rows are not those that were published")
