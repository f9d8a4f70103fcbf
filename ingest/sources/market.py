"""A made-up market in the Korean manner: instruments, price grid, limits. Pure."""

import csv
import io
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from ingest.sources.company_names import SECTORS, create_names
from tickthrottle_client.trade_v1 import isin_check_digit

# KRX price steps since 2023-01-25: below 2,000 won the step is 1 won, and so on.
_STEP_BOUNDS = (2_000, 5_000, 20_000, 50_000, 200_000, 500_000)
_STEPS = (1, 5, 10, 50, 100, 500, 1_000)
_LIMIT_PERCENT = 30

# Zipf-Mandelbrot, fitted to the value traded per instrument on an ordinary day: the
# first 10 instruments have 36 % of the trades, the first 100 have 69 %; 1,200 trades
# touch 400 of 2,879 instruments, 1,800 touch 520.
_POPULARITY_EXPONENT = 1.2
_POPULARITY_OFFSET = 3

_MEDIAN_PRICE = 12_000
_PRICE_SPREAD = 1.3
_LOWEST_BASE, _HIGHEST_BASE = 200, 1_500_000

# As on 2026-03-20: 33 % KOSPI, 63 % KOSDAQ, 4 % KONEX, which hardly trades at all.
_MARKETS = ("KOSPI", "KOSDAQ", "KONEX")
_MARKET_WEIGHTS, _QUIET_MARKET_WEIGHTS = (35, 65, 0), (16, 50, 34)
_QUIET_FROM = 2_591
_PREFERRED = "우"
_MEDIAN_LISTED = 20_000_000

_OF_DOCUMENTS = ((593, "삼성전자"), (66, "SK하이닉스"))
"""The two that examples name are the most traded: codes 005930 and 000660."""


@dataclass(frozen=True, slots=True)
class SimulatedInstrument:
    """One simulated share; its base price, in won, is yesterday's closing price."""

    isin: str
    code: str
    name: str
    market: str
    sector: str
    base_price: int
    listed_shares: int


COLUMNS = (
    *("isin", "code", "name", "market", "sector", "prev_close"),
    *("currency", "listed_shares", "tick_table"),
)
"""Of the file with what is known of instruments besides their trades."""


def encode_instruments(instruments: Iterable[SimulatedInstrument]) -> str:
    """Return the instruments as CSV with a header, one a line."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(
        (
            *(i.isin, i.code, i.name, i.market, i.sector, i.base_price),
            *("KRW", i.listed_shares, "krx"),
        )
        for i in instruments
    )
    return text.getvalue()


def price_step(price: int) -> int:
    """Return the price step in won at a price: neighbours up are one step apart."""
    return _STEPS[bisect_right(_STEP_BOUNDS, price)]


def step_up(price: int) -> int:
    """Return the next higher price on the grid."""
    return price + price_step(price)


def step_down(price: int) -> int:
    """Return the next lower price on the grid."""
    return price - price_step(price - 1)


def daily_limits(base_price: int) -> tuple[int, int]:
    """Return the lowest and highest price of a day: 30 % from its base price.

    The width is cut to the base price's step, the upper limit to that at its own level.
    """
    step = price_step(base_price)
    width = base_price * _LIMIT_PERCENT // 100 // step * step
    upper = base_price + width
    return base_price - width, upper - upper % price_step(upper)


def popularity(count: int) -> list[float]:
    """Return a heavy-tailed weight of each of ``count`` instruments, greatest first."""
    return [
        (rank + _POPULARITY_OFFSET) ** -_POPULARITY_EXPONENT for rank in range(count)
    ]


def create_instruments(seed: str, count: int) -> tuple[SimulatedInstrument, ...]:
    """Return the first ``count`` instruments of a market, the most traded first.

    An instrument is the same however many there are; ISINs and names are distinct.
    Mostly ``KR7`` + code + ``00`` + check digit; every 25th is a preferred share
    whose code and ISIN differ in one character, with the name, market and sector of the
    share before it; every 80th code holds a letter. The first two are those of the
    documents; all else is made up. ``count`` is at most 20,000.
    """
    stems = _with_documents(Random(seed).sample(range(100, 100_000), count))
    # Each kind by chances of its own: drawing more of one changes no other.
    chances = Random(f"{seed}/shares")
    shares = [_create_share(chances, rank, stem) for rank, stem in enumerate(stems)]
    chances = Random(f"{seed}/markets")
    markets: list[str] = []
    for rank in range(count):
        is_quiet = rank >= _QUIET_FROM
        weights = _QUIET_MARKET_WEIGHTS if is_quiet else _MARKET_WEIGHTS
        markets += chances.choices(_MARKETS, weights)
    sectors = Random(f"{seed}/sectors").choices(SECTORS, k=count)
    chances = Random(f"{seed}/listed")
    listed = [int(chances.lognormvariate(0, 1) * _MEDIAN_LISTED) for _ in stems]
    names = create_names(seed, sectors)
    for rank, (_, name) in enumerate(_OF_DOCUMENTS[:count]):
        names[rank], markets[rank], sectors[rank] = name, _MARKETS[0], SECTORS[0]
    instruments: list[SimulatedInstrument] = []
    rows = zip(shares, names, markets, sectors, listed, strict=True)
    for (isin, code, is_preferred, price), name, market, sector, of_it in rows:
        if is_preferred:
            common = instruments[-1]
            name = common.name + _PREFERRED
            market, sector = common.market, common.sector
        instruments.append(
            SimulatedInstrument(isin, code, name, market, sector, price, of_it)
        )
    return tuple(instruments)


def _with_documents(drawn: list[int]) -> list[int]:
    """Return the stems with those of the documents first, each of them once."""
    stems = [stem for stem, _ in _OF_DOCUMENTS][: len(drawn)]
    displaced = dict(zip(stems, drawn, strict=False))
    return stems + [displaced.get(stem, stem) for stem in drawn[len(stems) :]]


def _create_share(rng: Random, rank: int, stem: int) -> tuple[str, str, bool, int]:
    code = code_in_isin = f"{stem:05}0"
    is_preferred = rank % 25 == 20 and rank % 80 != 40
    if rank % 80 == 40:
        code = code_in_isin = f"{stem:05}"[:4] + rng.choice("VWXYZ") + f"{stem % 10}"
    elif is_preferred:
        code, code_in_isin = f"{stem:05}5", f"{stem:05}1"
    number = f"KR7{code_in_isin}00"
    price = int(rng.lognormvariate(0, _PRICE_SPREAD) * _MEDIAN_PRICE)
    price = min(max(price, _LOWEST_BASE), _HIGHEST_BASE)
    isin = number + isin_check_digit(number)
    return isin, code, is_preferred, price - price % price_step(price)


class Book:
    """An instrument while it trades: its price walks on the grid, its totals add up."""

    __slots__ = (
        *("_head", "_high", "_low", "_price", "_seq", "_value", "_volume", "isin"),
    )

    def __init__(self, instrument: SimulatedInstrument) -> None:
        self.isin = instrument.isin
        self._head = f'{{"isin":"{instrument.isin}","time":'
        self._low, self._high = daily_limits(instrument.base_price)
        self._price = instrument.base_price
        self._seq = self._volume = self._value = 0

    def trade(self, time_us: int, bits: int, sizes: list[int]) -> bytes:
        """Execute one trade and return it as ``Trade.to_wire`` would encode it.

        Of the 20 random bits, the upper 12 pick one of 4,096 ``sizes``.
        """
        move = bits & 7
        price = self._price
        buys = bits & 8
        if move == 0 and price < self._high:
            price = self._price = step_up(price)
            buys = 1
        elif move == 1 and price > self._low:
            price = self._price = step_down(price)
            buys = 0
        size = sizes[bits >> 8]
        self._seq += 1
        self._volume += size
        self._value += price * size
        return self._encode(time_us, size, "B" if buys else "S")

    def peek(self, time_us: int) -> bytes:
        """Return a trade that is not executed: the instrument does not change."""
        return self._encode(time_us, 1, "B")

    def _encode(self, time_us: int, size: int, side: str) -> bytes:
        # A text is formatted a third faster than bytes are.
        return (
            f'{self._head}{time_us},"seq":{self._seq},"price":"{self._price}",'
            f'"size":"{size}","side":"{side}","cum_volume":{self._volume},'
            f'"cum_value":{self._value}}}'
        ).encode()
