"""Keys of bars, ``bars:<interval>:<instrument>``, and of trades, ``trades:…``. Pure.

An instrument is an ISIN, or a code of the instrument table. Of bars it may be ``*``,
for every instrument, and have the name of a series behind it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from gateway.protocol.market_instruments import MarketInstruments, refusal_of
from gateway.protocol.messages import Rejection, check_key
from ingest.instrument_table.known_instruments import Instruments
from ingest.series import code_of, is_series
from ingest.trade import ISIN_CHARS
from throttle.contract.bar_intervals import DAY, INTERVALS, INTERVALS_MS
from tickthrottle_client.tick_v1 import ALL, BARS, TRADES

MAX_SHOWN_CHARS = 40

MINUTE_MS, LONGEST_DAY_MS = 60_000, 90_000_000
"""A day has 25 hours where clocks are set back."""

MOST_READ = 100_000
"""This many bars one question reads at most; it then gets fewer longer ones."""

MOST_FOLLOWED = 5
"""So many instruments' trades one connection may follow."""


class BarKey(NamedTuple):
    """Which bars a client watches: their interval, and an ISIN or ``*``."""

    interval: str
    isin: str

    def __str__(self) -> str:
        """Return the key as clients write it."""
        return f"{BARS}{self.interval}:{self.isin}"


class TradesKey(NamedTuple):
    """Whose every trade a client follows: an ISIN."""

    isin: str

    def __str__(self) -> str:
        """Return the key as clients write it."""
        return TRADES + self.isin


def split_kinds(keys: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Return the keys without a prefix, those of bars and those of trades, in order."""
    plain = [key for key in keys if not key.startswith((BARS, TRADES))]
    bars = [key for key in keys if key.startswith(BARS)]
    return plain, bars, [key for key in keys if key.startswith(TRADES)]


def read_bar_key(text: str, instruments: Instruments) -> BarKey | Rejection:
    """Read the key of bars, or say why there are no such bars."""
    interval, _, name = text.removeprefix(BARS).partition(":")
    shown = interval[:MAX_SHOWN_CHARS]
    if interval not in INTERVALS:
        rule = f"interval {shown!r}: must be one of {', '.join(INTERVALS)}"
        return Rejection(text, "unknown_key", rule)
    if not name:
        rule = f"must name an instrument, as in {BARS}{interval}:KR7005930003"
        return Rejection(text, "unknown_key", rule)
    # The job makes bars of all markets: those of one are asked for one by one.
    if name == ALL and isinstance(instruments, MarketInstruments):
        market = instruments.market
        rule = f"the market {market} alone is served here: name its instruments"
        return Rejection(text, "not_served", rule)
    isin = _read_name(text, name, instruments)
    return isin if isinstance(isin, Rejection) else BarKey(interval, isin)


def read_trades_key(text: str, instruments: Instruments) -> TradesKey | Rejection:
    """Read the key of an instrument's trades, or say why there are none."""
    name = text.removeprefix(TRADES)
    if name == ALL or is_series(name):
        rule = f"must name one instrument, as in {TRADES}KR7005930003"
        return Rejection(text, "unknown_key", rule)
    isin = _read_name(text, name, instruments)
    return isin if isinstance(isin, Rejection) else TradesKey(isin)


def parts_of(interval: str, bars_ms: int = MINUTE_MS) -> int:
    """Return how many of the published bars a longer one has at most."""
    return max(1, INTERVALS_MS.get(interval, LONGEST_DAY_MS) // bars_ms)


def bars_read(key: BarKey, last: int) -> int:
    """Return how many bars are read for an instrument's newest ``last`` ones.

    A longer bar is folded from those of a minute; the newest day is kept as it is.
    """
    if key.interval == DAY and last == 1:
        return 1
    return min(last * parts_of(key.interval), MOST_READ)


def _read_name(text: str, name: str, instruments: Instruments) -> str | Rejection:
    refusal = refusal_of(name, instruments)
    if refusal is not None:
        return Rejection(text, "not_served", refusal)
    isin = instruments.isin_of(name) if len(code_of(name)) < ISIN_CHARS else None
    rejection = None if isin else check_key(name)
    return isin or name if rejection is None else replace(rejection, key=text)
