"""What a bar is: the trades of an instrument in a minute of the exchange's clock. Pure.

This module is a contract: the analytics job writes bars, gateways read them. A bar is
kept as one line of text (``Bar.encode``) and goes to clients as a JSON object
(``Bar.body``). Prices and sums are decimals without zeros at their end.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

import orjson

WHOLE_DIGITS, FRACTION_DIGITS = 20, 18
"""Digits of a sum, before and after the point: ``decimal(38, 18)`` in Spark."""

TOO_LARGE = Decimal(10) ** WHOLE_DIGITS
"""The least sum that does not fit."""

VWAP_DIGITS = 4
"""Digits that a VWAP has after the point, beyond those of the bar's prices."""

EXACT = Context(prec=96, rounding=ROUND_HALF_EVEN)
"""Computes every sum and product of what fits without rounding."""

CLOSE_AFTER_MS = 1_000
"""A bar closes so many milliseconds after its end, by the log's clock; so trades that
take that long on their way are no late ones. Batches end as long after their last bar.
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """The trades of one instrument in ``[start_ms, end_ms)`` of the exchange's clock.

    Trades count for what they say (``Updates``). ``open`` and ``close`` are the prices
    of the first and the last one, by (time, seq, position), that counts for the last
    price; ``high`` and ``low`` are of those that count for the range. A pair is None
    where there is no such trade. ``value`` is the exact sum of price x size. ``volume``
    and ``value`` are None if the sum does not fit (``WHOLE_DIGITS``): never a wrong
    one. ``closed`` says that the log's clock has passed the end; trades that come later
    still amend the bar, and so do those that are taken back (``taking_back_v1.py``):
    ``revision`` is how often that was. ``trades`` are those that stand.
    """

    isin: str
    start_ms: int
    end_ms: int
    open: Decimal | None
    high: Decimal | None
    low: Decimal | None
    close: Decimal | None
    volume: Decimal | None
    value: Decimal | None
    trades: int
    closed: bool
    revision: int

    @property
    def edition(self) -> tuple[int, int]:
        """Which of two states of a bar is newer: the greater one."""
        return self.revision, self.trades

    @property
    def vwap(self) -> Decimal | None:
        """Return value / volume; half even, ``VWAP_DIGITS`` more than the prices.

        None if one of them is not known, or no trade counts for the volume.
        """
        if self.value is None or not self.volume:
            return None
        prices = (self.open, self.high, self.low, self.close)
        known = (-_exponent(price) for price in prices if price is not None)
        digits = max([0, *known]) + VWAP_DIGITS
        exact = EXACT.divide(self.value, self.volume)
        return exact.quantize(Decimal(1).scaleb(-digits), context=EXACT)

    def encode(self) -> bytes:
        """Encode as one line, without the ISIN: ``decode`` gives back an equal bar."""
        amounts = self.open, self.high, self.low, self.close, self.volume, self.value
        texts = ("-" if amount is None else text(amount) for amount in amounts)
        rest = self.trades, int(self.closed), self.revision
        return " ".join(map(str, (self.start_ms, self.end_ms, *texts, *rest))).encode()

    @classmethod
    def decode(cls, isin: str, line: bytes) -> "Bar":
        """Decode what ``encode`` wrote. Raises ValueError."""
        try:
            start, end, *amounts, n, closed, rev = line.split(b" ")
            o, h, lo, c, volume, value = map(_decimal_of, amounts)
            return cls(
                *(isin, int(start), int(end), o, h, lo, c, volume, value),
                *(int(n), closed == b"1", int(rev)),
            )
        except (ArithmeticError, TypeError) as error:
            raise ValueError(f"bar of {isin}: {line!r}: {error!r}") from None

    def body(self) -> bytes:
        """Return the JSON object that clients get."""
        return orjson.dumps(self.to_object())

    def to_object(self) -> Mapping[str, Any]:
        """Return the fields clients get; a decimal as a number with its own digits."""
        decimals = ("open", "high", "low", "close", "volume", "value")
        return {
            "isin": self.isin,
            "start": self.start_ms,
            "end": self.end_ms,
            **{name: number(getattr(self, name)) for name in decimals},
            "trades": self.trades,
            "vwap": number(self.vwap),
            "closed": self.closed,
            "revision": self.revision,
        }


def newer(known: Bar | None, other: Bar) -> Bar:
    """Return which of two bars of an instrument and a start is to be kept.

    One of a lesser edition was computed from a log that no longer held all of its
    trades. What was closed stays closed.
    """
    if known is None:
        return other
    kept = other if other.edition >= known.edition else known
    return replace(kept, closed=known.closed or other.closed)


@dataclass(frozen=True, slots=True)
class BarsUpdate:
    """One message of the channel, or what is kept of a product: bars that changed.

    ``sequence`` counts the messages of an ``epoch`` without holes. ``clock_ms`` is how
    far the log's clock has come. ``bars`` are those that changed, closed or were
    amended; ``days`` the days that changed with them (``bar_intervals.DayBar``).
    """

    epoch: str
    sequence: int
    clock_ms: int
    bars: tuple[Bar, ...]
    days: tuple[tuple[str, bytes], ...] = ()

    def encode(self) -> bytes:
        """Encode as a line of JSON, a line per bar and one per day."""
        head = {
            "epoch": self.epoch,
            "sequence": self.sequence,
            "clock": self.clock_ms,
            "bars": len(self.bars),
        }
        bars = (b"%b %b" % (bar.isin.encode(), bar.encode()) for bar in self.bars)
        days = (b"%b %b" % (isin.encode(), line) for isin, line in self.days)
        return b"\n".join([orjson.dumps(head), *bars, *days])

    @classmethod
    def decode(cls, message: bytes) -> "BarsUpdate":
        """Decode a message of the channel ``AnalyticsKeys.updates("bars")``.

        Raises ValueError for anything the job would not have written.
        """
        head, *lines = message.split(b"\n")
        try:
            fields = orjson.loads(head)
            of_bars = fields["bars"]
            pairs = [line.partition(b" ")[::2] for line in lines]
            return cls(
                str(fields["epoch"]),
                int(fields["sequence"]),
                int(fields["clock"]),
                tuple(Bar.decode(i.decode(), line) for i, line in pairs[:of_bars]),
                tuple((i.decode(), line) for i, line in pairs[of_bars:]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"header {head[:200]!r}: {error!r}") from None


def add(numbers: Iterable[Decimal | None]) -> Decimal | None:
    """Return an exact sum; None if it does not fit, or one of its parts did not."""
    total = Decimal(0)
    for part in numbers:
        if part is None:
            return None
        total = EXACT.add(total, part)
    return total if total.adjusted() < WHOLE_DIGITS else None


def subtract(whole: Decimal, part: Decimal) -> Decimal:
    """Return an exact difference."""
    return EXACT.subtract(whole, part)


def text(decimal: Decimal) -> str:
    """Return a decimal in plain notation, without zeros at its end."""
    return format(decimal.normalize(EXACT), "f")


def number(decimal: Decimal | None) -> orjson.Fragment | None:
    """Return a decimal for orjson: a number with every digit."""
    return None if decimal is None else orjson.Fragment(text(decimal))


def _exponent(decimal: Decimal) -> int:
    exponent = decimal.normalize(EXACT).as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _decimal_of(part: bytes) -> Decimal | None:
    return None if part == b"-" else Decimal(part.decode())
