"""Which trades came before, and which are missing, by the exchange's numbers. Pure."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from ingest.adapters.adapter import Numbering

Version = tuple[int, int]
"""Time and number of a trade in the log: ``Trade.version``."""

REMEMBERED = 131_072
"""Trades remembered of all symbols together; they share them equally."""

LEAST_REMEMBERED = 16
"""Trades remembered of a symbol at least, however many symbols there are."""

OPEN_GAPS = 32
"""Gaps of a symbol that a late trade may still fill."""

LINES = 16
"""Series of a symbol whose numbers are followed: boards that alternate, days."""

MOST_MISSING = 10_000_000
"""A step over more numbers than these is no gap but a jump."""

ANEW_AFTER_US = 60_000_000
"""A number that came before, on a trade so much newer than all, is of a new count."""


class NumberStep(NamedTuple):
    """A symbol's step from one number to another: over a gap, far off, or back."""

    symbol: str
    first: int
    last: int


@dataclass(slots=True)
class _Line:
    """The numbers of one series: from ``lowest`` to ``highest``, but for the gaps.

    ``aside`` is a number far off both: the last that came of them. ``newest_us`` is the
    time of the newest trade.
    """

    lowest: int
    highest: int
    gaps: deque[tuple[int, int]] = field(
        default_factory=lambda: deque(maxlen=OPEN_GAPS)
    )
    aside: int | None = None
    newest_us: int = -1


@dataclass(slots=True)
class _Memory:
    """The trades of one symbol that came last, each as what it is known by.

    What is forgotten has times up to ``horizon_us`` and numbers up to ``highest``. A
    trade as old as that is not remembered: played again, old trades do not push out
    those that come again after them.
    """

    versions: dict[object, Version] = field(default_factory=dict)
    order: deque[tuple[object, int, int]] = field(default_factory=deque)
    taken_back: set[object] = field(default_factory=set)
    horizon_us: int = -1
    highest: int = -1

    def add(
        self,
        identity: object,
        number: int,
        time_us: int,
        version: Version,
        room: int,
    ) -> None:
        """Remember a trade in place of the oldest; ``time_us`` is when it was seen."""
        self.versions[identity] = version
        self.order.append((identity, number, time_us))
        if len(self.order) > room:
            forgotten, number, time_us = self.order.popleft()
            self.horizon_us = max(self.horizon_us, time_us)
            self.highest = max(self.highest, number)
            del self.versions[forgotten]
            self.taken_back.discard(forgotten)


class TradeNumbers:
    """The numbers seen of every symbol, over all connections.

    ``symbols`` is how many there are: memory is bounded by it and ``REMEMBERED``.
    ``missing`` and ``late`` count trades (``CUMULATIVE``: gaps); a late one was missing
    before. ``gap_count`` counts gaps, and ``last_gap`` is the newest; ``jumps`` and
    ``last_jump`` are steps too far for a gap, and volumes that went back.
    ``unremembered`` counts trades older than what is remembered: whether they came
    before is not known.
    """

    def __init__(self, numbering: Numbering, symbols: int = 1) -> None:
        self._numbering = numbering
        self._room = max(LEAST_REMEMBERED, REMEMBERED // max(symbols, 1))
        self._memories: dict[str, _Memory] = {}
        self._lines: dict[str, dict[str, _Line]] = {}
        # Of each symbol the series and the volume that came last.
        self._volumes: dict[str, tuple[str, int]] = {}
        self.repeated = self.missing = self.late = self.unremembered = 0
        self.gap_count = self.jumps = 0
        self.last_gap: NumberStep | None = None
        self.last_jump: NumberStep | None = None

    def is_new(
        self,
        symbol: str,
        number: int | None,
        series: str = "",
        size: int = 0,
        time_us: int = 0,
        price: str = "",
        now_us: int | None = None,
        seq: int = 0,
    ) -> bool:
        """Tell whether a trade is new, and remember it.

        ``size`` is the trade's, for cumulative numbers; 0 if it is no whole number.
        ``time_us`` and ``price`` are the trade's, ``now_us`` is when it came, ``seq``
        its number in the log.
        """
        if number is None or self._numbering is Numbering.NONE:
            return True
        # A stamp of next year would make all later trades old.
        seen_us = time_us if now_us is None else min(time_us, now_us)
        if self._numbering is Numbering.BY_ONE:
            is_new = self._is_next(symbol, series, number, seen_us)
            self.repeated += not is_new
            return is_new
        if self._numbering is Numbering.UNIQUE:
            identity = _unique(number, series)
        else:
            identity = (number, time_us, price, size)
        version = time_us, seq
        is_new = self._is_unknown(symbol, identity, number, seen_us, version)
        if is_new and self._numbering is Numbering.CUMULATIVE:
            self._note_volume(symbol, series, number, size)
        self.repeated += not is_new
        return is_new

    def version_of(self, symbol: str, number: int, series: str = "") -> Version | None:
        """Return what a trade is in the log; None if it is not known.

        Numbers that go up by one are those of the log: the time of such a trade is 0.
        """
        if self._numbering is Numbering.BY_ONE:
            return 0, number
        memory = self._memories.get(symbol)
        if memory is None or self._numbering is not Numbering.UNIQUE:
            return None
        return memory.versions.get(_unique(number, series))

    def take_back(self, symbol: str, number: int, series: str = "") -> bool:
        """Note that a trade does not stand any more; False if that was known."""
        memory = self._memories.get(symbol)
        if memory is None:
            return True
        identity = _unique(number, series)
        if identity in memory.taken_back:
            return False
        if identity in memory.versions:
            memory.taken_back.add(identity)
        return True

    def put_in_place(
        self, symbol: str, number: int, series: str, by: int, version: Version
    ) -> bool | None:
        """Note that trade ``by`` stands in the place of another one, as ``version``.

        Return whether that one stood until now; None if ``by`` is known.
        """
        if self._numbering is Numbering.BY_ONE:
            is_new = by == number or self._is_next(symbol, series, by, version[0])
            self.repeated += not is_new
            return is_new or None
        identity = _unique(by, series)
        if by != number and not self._is_unknown(
            symbol, identity, by, version[0], version
        ):
            self.repeated += 1
            return None
        stood = self.take_back(symbol, number, series)
        self._memories[symbol].taken_back.discard(identity)
        return stood

    def _is_unknown(
        self,
        symbol: str,
        identity: object,
        number: int,
        time_us: int,
        version: Version,
    ) -> bool:
        memory = self._memories.get(symbol)
        if memory is None:
            memory = self._memories[symbol] = _Memory()
        if identity in memory.versions:
            return False
        if time_us > memory.horizon_us:
            memory.add(identity, number, time_us, version, self._room)
            return True
        if self._numbering is Numbering.CUMULATIVE and number <= memory.highest:
            # Its volume was passed when that time was.
            return False
        self.unremembered += 1
        return True

    def _is_next(self, symbol: str, series: str, number: int, time_us: int) -> bool:
        line = self._line_of(symbol, series)
        if line is None:
            self._begin(symbol, series, _Line(number, number, newest_us=time_us))
            return True
        if number <= line.highest and time_us > line.newest_us + ANEW_AFTER_US:
            # What comes again is no newer than it was.
            self._note_jump(symbol, line.highest, number)
            self._begin(symbol, series, _Line(number, number, newest_us=time_us))
            return True
        line.newest_us = max(line.newest_us, time_us)
        if number == line.highest + 1:
            line.highest = number
            return True
        if not line.lowest - MOST_MISSING <= number <= line.highest + MOST_MISSING:
            return self._jumps(symbol, series, line, number)
        if number > line.highest:
            gap = NumberStep(symbol, line.highest + 1, number - 1)
            line.gaps.append((gap.first, gap.last))
            self.missing += number - gap.first
            self.gap_count += 1
            self.last_gap = gap
            line.highest = number
            return True
        if number < line.lowest:
            # Older than the first one that came: late, not missing.
            if number + 1 < line.lowest:
                line.gaps.append((number + 1, line.lowest - 1))
            line.lowest = number
            return True
        return self._fills_a_gap(line, number)

    def _line_of(self, symbol: str, series: str) -> _Line | None:
        lines = self._lines.get(symbol)
        return None if lines is None else lines.get(series)

    def _begin(self, symbol: str, series: str, line: _Line) -> None:
        """Begin a series, perhaps anew; the one that began first makes room for it."""
        lines = self._lines.setdefault(symbol, {})
        lines.pop(series, None)
        if len(lines) == LINES:
            del lines[next(iter(lines))]
        lines[series] = line

    def _jumps(self, symbol: str, series: str, line: _Line, number: int) -> bool:
        """Put a number aside that is far off; its successor begins the line anew."""
        aside, line.aside = line.aside, number
        if number == aside:
            return False
        if aside is not None and number == aside + 1:
            anew = _Line(aside, number, newest_us=line.newest_us)
            self._begin(symbol, series, anew)
            return True
        self._note_jump(symbol, line.highest, number)
        return True

    def _note_jump(self, symbol: str, first: int, last: int) -> None:
        self.jumps += 1
        self.last_jump = NumberStep(symbol, first, last)

    def _fills_a_gap(self, line: _Line, number: int) -> bool:
        for place, (first, last) in enumerate(line.gaps):
            if first <= number <= last:
                rest = [(first, number - 1), (number + 1, last)]
                left = [gap for gap in rest if gap[0] <= gap[1]]
                others = [gap for at, gap in enumerate(line.gaps) if at != place]
                line.gaps = deque(others + left, maxlen=OPEN_GAPS)
                self.late += 1
                return True
        return False

    def _note_volume(self, symbol: str, series: str, number: int, size: int) -> None:
        """Compare a volume with the one before; wherever it is, the next goes on there.

        In another series, a day or a board, it may begin anew.
        """
        before = self._volumes.get(symbol)
        self._volumes[symbol] = series, number
        if before is None or before[0] != series:
            return
        highest = before[1]
        if number < highest:
            self._note_jump(symbol, highest, number)
        elif size and number - size > highest:
            # How many trades this volume was, nobody can tell.
            self.missing += 1
            self.gap_count += 1
            self.last_gap = NumberStep(symbol, highest, number - size)


def _unique(number: int, series: str) -> object:
    """Return what a trade is known by where no number comes twice in a series."""
    return (series, number) if series else number
