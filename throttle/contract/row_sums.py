"""What a row says of all trades that it stands for, and how two of them fold. Pure.

This module is a contract. A row of several trades says ``trades``, ``volume`` (the sum
of their sizes), ``value`` (the sum of price times size), ``high`` and ``low``, as text
with commas between them: ``37,9170,1829145000,199600,199300``. A row of one trade says
``1``, for its own ``size`` and ``price`` say the rest. A row whose trades nobody has
counted says ``0``. Every number is exact, a decimal without zeros at its end.

Trades count for what their field ``updates`` says: others than those of ``volume`` are
in no volume and value, others than those of ``range`` in no high and low. Where none
counts for the range both are empty: ``2,40,7980000,,``.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from throttle.contract.group import FRACTION_DIGITS, decimal_text, units
from tickthrottle_client.updates_v1 import ALL, PATTERN, Updates

ONE = b"1"
"""What a row says that stands for its own trade alone."""

UNCOUNTED = b"0"
"""What a row says of whose trades nothing is known."""

_HALF: int = 10 ** (FRACTION_DIGITS // 2)
_NUMBER = rb",[0-9]+(?:\.[0-9]+)?"
_FORM = re.compile(rb"[0-9]+(?:(?:%b){2}(?:(?:%b){2}|,,))?" % (_NUMBER, _NUMBER))
_OF_TRADE = re.compile(rb'"price":([0-9.]+),"size":([0-9.]+)')
_UPDATES = re.compile(PATTERN.encode())


class Amounts(NamedTuple):
    """Volume, value, highest and lowest price, in whole numbers of 10^-36.

    ``high`` and ``low`` are None where no trade counts for the range.
    """

    volume: int
    value: int
    high: int | None
    low: int | None

    @classmethod
    def of_trade(cls, price: str, size: str, updates: Updates = ALL) -> "Amounts":
        """Return those of one trade; price and size are decimal text."""
        paid = units(price)
        volume = units(size) if updates.volume else 0
        extreme = paid if updates.range else None
        # Both are whole numbers of 10^-18: no digit is lost.
        return cls(volume, paid // _HALF * (volume // _HALF), extreme, extreme)

    @classmethod
    def of_body(cls, body: bytes) -> "Amounts | None":
        """Return those of a row's own trade, None if its body is none."""
        trade, says = _OF_TRADE.search(body), _UPDATES.search(body)
        if trade is None:
            return None
        updates = ALL if says is None else Updates.parse(says[1].decode())
        return cls.of_trade(trade[1].decode(), trade[2].decode(), updates)

    @property
    def are_partial(self) -> bool:
        """Whether a trade of these amounts does not count for all that it could."""
        return self.high is None or not self.volume

    def fold(self, other: "Amounts") -> "Amounts":
        """Return those of the trades of both."""
        return Amounts(
            self.volume + other.volume,
            self.value + other.value,
            _extreme(max, self.high, other.high),
            _extreme(min, self.low, other.low),
        )


def _extreme(
    which: Callable[[int, int], int], one: int | None, other: int | None
) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return which(one, other)


class RowSums(NamedTuple):
    """Sums of some trades of an instrument; ``amounts`` are None if nobody knows them.

    That is so for trades that nobody has counted, and where a fold has such trades.
    """

    trades: int
    amounts: Amounts | None = None

    @classmethod
    def decode(cls, encoded: bytes, body: bytes) -> "RowSums":
        """Decode what a row says, of one trade from its body. Raises ValueError."""
        trades, *amounts = encoded.decode().split(",")
        if amounts:
            volume, value, *extremes = amounts
            high, low = (units(text) if text else None for text in extremes)
            return cls(int(trades), Amounts(units(volume), units(value), high, low))
        return cls(int(trades), Amounts.of_body(body) if encoded == ONE else None)

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
        numbers = (b"" if n is None else decimal_text(n) for n in self.amounts)
        return b",".join([b"%d" % self.trades, *numbers])


def checked(encoded: bytes) -> bytes:
    """Return what a row says if it has the form. Raises ValueError."""
    if not _FORM.fullmatch(encoded):
        raise ValueError(f"{encoded[:80]!r}: must be trades, and four sums of them")
    return encoded


def count_of(encoded: bytes) -> int:
    """Return for how many trades a row stands."""
    return int(encoded.partition(b",")[0])
