"""Whether the trades of a tape stand in the order of time, and how to sort them. Pure.

A feed records trades that come a moment late, so a step back of up to a second is none.
A single one beyond that is a wrong clock. Three say that the tape is sorted by
something else: by instrument, as the daily files of exchanges are, or from its end.
"""

from collections.abc import Iterable
from operator import itemgetter

from ingest.trade import Trade

LATE_US = 1_000_000
"""A trade that is further behind the newest one is out of order."""

DISORDER = 3
"""So many trades out of order make a tape that is not in the order of time."""

SORTED_BYTES = 512 * 2**20
"""Most memory that sorting takes."""

LOOKED_AT = 200_000
"""So many trades are looked at, from the first one of a second instrument on."""

_MOST_LOOKED_AT = 2_000_000
_UNITS = (
    ("year", 31_557_600_000_000),
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
)
_TRADE_OVERHEAD_BYTES = 150


class TapeOrder:
    """Looks at the trades of a tape as they stand."""

    def __init__(self) -> None:
        self.first: str | None = None
        """What is known of the first trade that is older than one before it."""
        self.out_of_order = 0
        self.trades = 0
        self._newest_us = 0
        self._first_isin = ""
        self._mixed_from: int | None = None

    def add(self, trade: Trade) -> None:
        """Look at the next trade."""
        self.trades += 1
        if self.trades == 1:
            self._first_isin = trade.isin
        elif self._mixed_from is None and trade.isin != self._first_isin:
            self._mixed_from = self.trades
        behind_us = self._newest_us - trade.time_us
        if behind_us <= LATE_US:
            self._newest_us = max(self._newest_us, trade.time_us)
            return
        self.out_of_order += 1
        if self.first is None:
            self.first = (
                f"trade {self.trades:,} ({trade.isin}) is {span_words(behind_us)} "
                "older than one before it"
            )

    @property
    def is_broken(self) -> bool:
        """Whether the tape is not in the order of time."""
        return self.out_of_order >= DISORDER

    @property
    def is_clear(self) -> bool:
        """Whether enough was looked at: what comes is taken to be as what came."""
        if self._mixed_from is not None:
            return self.trades - self._mixed_from >= LOOKED_AT
        return self.trades >= _MOST_LOOKED_AT


class TooManyTrades(ValueError):
    """A tape does not fit into the memory that sorting may take."""


def sort_trades(
    trades: Iterable[Trade], most_bytes: int = SORTED_BYTES
) -> list[tuple[int, bytes]]:
    """Return times (us) and encoded trades in their order, equal ones as they stand.

    Raises TooManyTrades, and whatever reading them raises.
    """
    held: list[tuple[int, bytes]] = []
    size = 0
    for trade in trades:
        payload = trade.to_wire()
        size += len(payload) + _TRADE_OVERHEAD_BYTES
        if size > most_bytes:
            raise TooManyTrades
        held.append((trade.time_us, payload))
    held.sort(key=itemgetter(0))
    return held


def span_words(span_us: int) -> str:
    """Return a span of time in its largest fitting unit: ``2.5 minutes``."""
    for name, unit_us in _UNITS:
        if span_us >= unit_us:
            text = f"{span_us / unit_us:.1f}".removesuffix(".0")
            return f"{text} {name}" + ("" if text == "1" else "s")
    return f"{span_us / 1000:g} ms"
