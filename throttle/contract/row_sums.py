"""What a row says of all trades that it stands for, and how two of them fold. Pure.

This module is a contract. A row of several trades says ``trades``, ``volume`` (the sum
of their sizes), ``value`` (the sum of price times size), ``high`` and ``low``, as text
with commas between them: ``37,9170,1829145000,199600,199300``. A row of one trade says
``1``, for its own ``size`` and ``price`` say the rest. A row whose trades nobody has
counted says ``0``. Every number is exact, a decimal without zeros at its end.
"""

import re
from typing import NamedTuple

from throttle.contract.group import FRACTION_DIGITS, decimal_text, units

ONE = b"1"
"""What a row says that stands for its own trade alone."""

UNCOUNTED = b"0"
"""What a row says of whose trades nothing is known."""

_HALF: int = 10 ** (FRACTION_DIGITS // 2)
_FORM = re.compile(rb"[0-9]+(?:(?:,[0-9]+(?:\.[0-9]+)?){4})?")
_OF_TRADE = re.compile(rb'"price":([0-9.]+),"size":([0-9.]+)')


class Amounts(NamedTuple):
    """Volume, value, highest and lowest price, in whole numbers of 10^-36."""

    volume: int
    value: int
    high: int
    low: int

    @classmethod
    def of_trade(cls, price: str, size: str) -> "Amounts":
        """Return those of one trade; price and size are decimal text."""
        paid, volume = units(price), units(size)
        # Both are whole numbers of 10^-18: no digit is lost.
        return cls(volume, paid // _HALF * (volume // _HALF), paid, paid)

    def fold(self, other: "Amounts") -> "Amounts":
        """Return those of the trades of both."""
        return Amounts(
            self.volume + other.volume,
            self.value + other.value,
            max(self.high, other.high),
            min(self.low, other.low),
        )


class RowSums(NamedTuple):
    """The sums of some trades of one issue; ``amounts`` are None if nobody knows them.

    That is so for trades that nobody has counted, and where a fold has such trades.
    """

    trades: int
    amounts: Amounts | None = None

    @classmethod
    def decode(cls, encoded: bytes, body: bytes) -> "RowSums":
        """Decode what a row says, of one trade from its body. Raises ValueError."""
        trades, *amounts = encoded.decode().split(",")
        if amounts:
            volume, value, high, low = map(units, amounts)
            return cls(int(trades), Amounts(volume, value, high, low))
        trade = _OF_TRADE.search(body) if encoded == ONE else None
        if trade is None:
            return cls(int(trades))
        return cls(1, Amounts.of_trade(trade[1].decode(), trade[2].decode()))

    def fold(self, other: "RowSums") -> "RowSums":
        """Return the sums of the trades of both."""
        trades, one, two = self.trades + other.trades, self.amounts, other.amounts
        if one is None or two is None:
            return RowSums(trades)
        return RowSums(trades, one.fold(two))

    def encode(self) -> bytes:
        """Return the text that says it in full, also of one trade."""
        if self.amounts is None:
            # Of one trade it would say that this is the row's own.
            return UNCOUNTED if self.trades == 1 else b"%d" % self.trades
        return b",".join([b"%d" % self.trades, *map(decimal_text, self.amounts)])


def checked(encoded: bytes) -> bytes:
    """Return what a row says if it has the form. Raises ValueError."""
    if not _FORM.fullmatch(encoded):
        raise ValueError(f"{encoded[:80]!r}: must be trades, and four sums of them")
    return encoded


def count_of(encoded: bytes) -> int:
    """Return for how many trades a row stands."""
    return int(encoded.partition(b",")[0])
