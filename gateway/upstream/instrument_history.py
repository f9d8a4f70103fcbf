"""The history: what each instrument did, window by window. Pure.

A ring of published windows, bounded in bytes: a row is kept as the five numbers a chart
needs, in some 45 bytes, its text unchanged. Finding an instrument's points touches the
windows in which it traded, and no others: a weekend costs nobody anything.
"""

import json
import re
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from sys import intern

from throttle.contract.snapshot import Row, WindowSnapshot

# How rows begin (Trade.to_row); whatever else is read as any JSON.
_ROW = re.compile(
    rb'\{"isin":"[0-9A-Z]*","time":([0-9]+),"seq":[0-9]+,'
    rb'"price":([0-9.]+),"size":([0-9.]+)[,}]'
)

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)

BLOCK_BYTES = 500
"""About what a window takes beside its rows."""

POINTER_BYTES = 8

REACH = 16
"""Parts of a window are looked for in so many windows of the instrument around it."""


@dataclass(frozen=True, slots=True)
class Point:
    """An instrument's latest trade of a window, and how many trades that stands for.

    ``price`` and ``size`` are decimal text.
    """

    window: int
    price: str
    size: str
    trades: int
    time_us: int

    def encode(self) -> bytes:
        """Encode for clients."""
        return b'{"window":%d,"price":%b,"size":%b,"trades":%d,"time":%d}' % (
            self.window,
            self.price.encode(),
            self.size.encode(),
            self.trades,
            self.time_us,
        )


class _Block:
    """The rows of one window, in the order of ISINs; ``size`` is about its bytes.

    ``unreadable`` counts rows that were left out.
    """

    __slots__ = ("_ends", "_texts", "isins", "size", "unreadable", "window")

    def __init__(self, snapshot: WindowSnapshot) -> None:
        self.window = snapshot.window
        isins: list[str] = []
        texts: list[bytes] = []
        for row in sorted(snapshot.rows, key=attrgetter("isin")):
            match = _ROW.match(row.body)
            if match is not None:
                # Nearly every row; a window has a few thousand.
                time_us, price, size = match.groups()
                text = b"%b %b %d %b" % (price, size, row.trades, time_us)
            elif (text := _shorten(row)) == b"":
                continue
            # Every block names the same few thousand.
            isins.append(intern(row.isin))
            texts.append(text)
        self.isins, self._texts = tuple(isins), b"".join(texts)
        self._ends = array("I", accumulate(map(len, texts)))
        self.unreadable = len(snapshot.rows) - len(isins)
        # Its name here, and this block where the instrument's blocks are.
        row_bytes = 2 * POINTER_BYTES + self._ends.itemsize
        self.size = BLOCK_BYTES + len(self._texts) + row_bytes * len(isins)

    def find(self, isin: str) -> Point | None:
        """Return the instrument's point, None if it did not trade in the window."""
        at = bisect_left(self.isins, isin)
        if at == len(self.isins) or self.isins[at] != isin:
            return None
        price, size, trades, time_us = self._text(at).decode().split(" ")
        return Point(self.window, price, size, int(trades), int(time_us))

    def fill_prices(self, known: dict[str, bytes]) -> None:
        """Add the price of each instrument that is not ``known``."""
        for at, isin in enumerate(self.isins):
            if isin not in known:
                known[isin] = self._text(at).partition(b" ")[0]

    def _text(self, at: int) -> bytes:
        return self._texts[self._ends[at - 1] if at else 0 : self._ends[at]]


class InstrumentHistory:
    """The newest windows that fit into ``max_bytes``; 0 keeps none.

    Windows are of one epoch and come in the order of their offsets: newer ones to
    ``append``, older ones to ``prepend``. Both return how many rows were unreadable.
    A window without rows takes no place. ``upto_ms`` is the end of the newest window
    that has been taken in, 0 before any, and where none is kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._blocks: deque[_Block] = deque()
        self._of_instrument: dict[str, deque[_Block]] = {}
        self.size_bytes = self.upto_ms = 0

    def __len__(self) -> int:
        return len(self._blocks)

    @property
    def since_ms(self) -> int | None:
        """The end of the oldest window that is kept, None without one."""
        return self._blocks[0].window if self._blocks else None

    def clear(self) -> None:
        """Forget everything."""
        self._blocks.clear()
        self._of_instrument.clear()
        self.size_bytes = self.upto_ms = 0

    def append(self, snapshot: WindowSnapshot) -> int:
        """Take the newest window in; the oldest make room for it."""
        block = _Block(snapshot)
        if block.isins:
            self._blocks.append(block)
            self.size_bytes += block.size
            for isin in block.isins:
                self._of_instrument.setdefault(isin, deque()).append(block)
        while self.size_bytes > self._max_bytes:
            self._forget_oldest()
        self._come_to(block)
        return block.unreadable

    def prepend(self, snapshot: WindowSnapshot) -> int | None:
        """Take an older window in; None if there is no room for it."""
        block = _Block(snapshot)
        if self.size_bytes + block.size > self._max_bytes:
            return None
        if block.isins:
            self._blocks.appendleft(block)
            self.size_bytes += block.size
            for isin in block.isins:
                self._of_instrument.setdefault(isin, deque()).appendleft(block)
        self._come_to(block)
        return block.unreadable

    def newest_first(self, isin: str, until_ms: int | None = None) -> Iterator[Point]:
        """Yield an instrument's points of windows that end by ``until_ms``, as of now.

        What several jobs have published of one window is one point: the newer trade,
        and the sum of their trades. A part that came more than ``REACH`` of the
        instrument's windows too late is left out.
        """
        points: dict[int, Point] = {}
        yielded: int | None = None
        for block in reversed(tuple(self._of_instrument.get(isin, ()))):
            point = block.find(isin)
            is_over = yielded is not None and block.window >= yielded
            if point is None or is_over or block.window > (until_ms or block.window):
                continue
            newer = points.get(block.window)
            points[block.window] = point if newer is None else _merge(point, newer)
            if len(points) > REACH:
                yielded = max(points)
                yield points.pop(yielded)
        for window in sorted(points, reverse=True):
            yield points[window]

    def fill_closes(
        self, closes: Sequence[dict[str, bytes]], begin_ms: int, step_ms: int
    ) -> Iterator[None]:
        """Fill in each instrument's newest price of each step, a window at a time.

        The first step begins at ``begin_ms``; a window is of the step that it ends in.
        """
        for block in reversed(tuple(self._blocks)):
            at = (block.window - begin_ms - 1) // step_ms
            if at < -1:
                # A part may have come late, but not that late.
                return
            if 0 <= at < len(closes):
                block.fill_prices(closes[at])
            yield

    def _come_to(self, block: _Block) -> None:
        if self._max_bytes:
            self.upto_ms = max(self.upto_ms, block.window)

    def _forget_oldest(self) -> None:
        block = self._blocks.popleft()
        self.size_bytes -= block.size
        for isin in block.isins:
            blocks = self._of_instrument[isin]
            blocks.popleft()
            if not blocks:
                del self._of_instrument[isin]


def points_object(isin: str, points: Iterable[Point]) -> bytes:
    """Encode an instrument's history for REST."""
    encoded = [point.encode() for point in points]
    return b'{"isin":"%b","count":%d,"data":[%b]}' % (
        isin.encode(),
        len(encoded),
        b",".join(encoded),
    )


def _merge(older: Point, newer: Point) -> Point:
    trades = older.trades + newer.trades
    return Point(newer.window, newer.price, newer.size, trades, newer.time_us)


def _shorten(row: Row) -> bytes:
    """Return price, size, trades and time of any row, nothing if one is missing."""
    try:
        fields = json.loads(row.body, parse_float=str, parse_int=str)
        price, size, time_us = (fields[name] for name in ("price", "size", "time"))
    except (ValueError, KeyError, TypeError):
        return b""
    are_numbers = all(map(_is_number, (price, size, time_us)))
    if not are_numbers or not time_us.isdigit():
        return b""
    return f"{price} {size} {row.trades} {time_us}".encode()


def _is_number(text: object) -> bool:
    return isinstance(text, str) and _NUMBER.fullmatch(text) is not None
