"""Which trades came before, and which are missing, by the exchange's numbers. Pure."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from ingest.adapters.adapter import Numbering

REMEMBERED = 256
"""Numbers remembered of a symbol; fewer where there are more than 2,000 symbols."""

LEAST_REMEMBERED = 16
OVER_ALL = REMEMBERED * 2_000
"""Numbers remembered of all symbols together, while each has more than the least."""

OPEN_GAPS = 32
"""Gaps of a symbol that a late trade may still fill."""


class Gap(NamedTuple):
    """Numbers that did not come, the first and the last of them."""

    symbol: str
    first: int
    last: int


@dataclass(slots=True)
class _Line:
    """The numbers of one symbol: from ``lowest`` to ``highest``, but for the gaps."""

    series: str
    lowest: int
    highest: int
    gaps: deque[tuple[int, int]] = field(
        default_factory=lambda: deque(maxlen=OPEN_GAPS)
    )


@dataclass(slots=True)
class _Recent:
    order: deque[tuple[str, int]] = field(default_factory=deque)
    known: set[tuple[str, int]] = field(default_factory=set)


class TradeNumbers:
    """The numbers seen of every symbol, over all connections.

    Memory is bounded by the number of symbols. ``missing`` and ``late`` count trades
    (``CUMULATIVE``: gaps); a late one was missing before. ``gap_count`` counts gaps,
    and ``last_gap`` is the newest.
    """

    def __init__(self, numbering: Numbering) -> None:
        self._numbering = numbering
        self._recent: dict[str, _Recent] = {}
        self._lines: dict[str, _Line] = {}
        self.repeated = self.missing = self.late = 0
        self.gap_count = 0
        self.last_gap: Gap | None = None

    def is_new(
        self, symbol: str, number: int | None, series: str = "", size: int = 0
    ) -> bool:
        """Tell whether a trade is new, and remember it.

        ``size`` is the trade's, for cumulative numbers; 0 if it is no whole number.
        """
        if number is None or self._numbering is Numbering.NONE:
            return True
        if self._numbering is Numbering.UNIQUE:
            is_new = self._is_unknown(symbol, series, number)
        elif self._numbering is Numbering.BY_ONE:
            is_new = self._is_next(symbol, series, number)
        else:
            is_new = self._is_above(symbol, series, number, size)
        self.repeated += not is_new
        return is_new

    def _is_unknown(self, symbol: str, series: str, number: int) -> bool:
        recent = self._recent.get(symbol)
        if recent is None:
            recent = self._recent[symbol] = _Recent()
        identity = (series, number)
        if identity in recent.known:
            return False
        recent.known.add(identity)
        recent.order.append(identity)
        most = min(REMEMBERED, max(LEAST_REMEMBERED, OVER_ALL // len(self._recent)))
        while len(recent.order) > most:
            recent.known.discard(recent.order.popleft())
        return True

    def _is_next(self, symbol: str, series: str, number: int) -> bool:
        line = self._lines.get(symbol)
        if line is None or line.series != series:
            self._lines[symbol] = _Line(series, number, number)
            return True
        if number == line.highest + 1:
            line.highest = number
            return True
        if number > line.highest:
            self._open_gap(symbol, line, line.highest + 1, number - 1)
            line.highest = number
            return True
        if number < line.lowest:
            # Older than the first one that came: late, not missing.
            if number + 1 < line.lowest:
                line.gaps.append((number + 1, line.lowest - 1))
            line.lowest = number
            return True
        return self._fills_a_gap(line, number)

    def _open_gap(self, symbol: str, line: _Line, first: int, last: int) -> None:
        line.gaps.append((first, last))
        self.missing += last - first + 1
        self.gap_count += 1
        self.last_gap = Gap(symbol, first, last)

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

    def _is_above(self, symbol: str, series: str, number: int, size: int) -> bool:
        line = self._lines.get(symbol)
        if line is None or line.series != series:
            self._lines[symbol] = _Line(series, number, number)
            return True
        if number <= line.highest:
            return False
        before = number - size
        if size and before > line.highest:
            # How many trades this volume was, nobody can tell.
            self.missing += 1
            self.gap_count += 1
            self.last_gap = Gap(symbol, line.highest, before)
        line.highest = number
        return True
