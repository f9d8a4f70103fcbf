"""Size and value of trades as columns that can be summed, and never overflow. Pure.

A size has at most 18 digits before the point and 18 behind it, and so does a price: the
value of a trade may have 72. Nearly every trade needs far less, and those are decimals
of 128 bits: sizes and prices below 10^10 with 8 places, values below 10^13. Of so many
a window would have to hold 10^9 for a sum to overflow. The others are whole numbers of
Python, and travel as text beside the columns.
"""

from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.group import FRACTION_DIGITS, units, value_of

VOLUME, VALUE = pa.decimal128(38, 8), pa.decimal128(38, 16)
"""Types of the columns of volumes and values."""

_NUMBER = pa.decimal128(18, 8)
_FORM = r"^[0-9]{1,10}(?:\.[0-9]{1,8})?$"
_ALWAYS_FITS = 10
_LIMIT = Decimal(10**13)
_MOST = pa.scalar(_LIMIT, pa.decimal128(37, 16))
_VOLUME_UNIT, _VALUE_UNIT = 10 ** (FRACTION_DIGITS - 8), 10 ** (FRACTION_DIGITS - 16)
_MOST_SIZE, _MOST_VALUE = 10 ** (FRACTION_DIGITS + 10), 10 ** (FRACTION_DIGITS + 13)


def of_columns(
    prices: pa.Array, sizes: pa.Array
) -> tuple[pa.Array, pa.Array, pa.Array | None]:
    """Return the volume and the value of trades, and which of them fit; None: all do.

    Prices and sizes are decimal text. Of those that do not fit both are null.
    """
    short = pc.less_equal(
        pc.max_element_wise(pc.binary_length(prices), pc.binary_length(sizes)),
        _ALWAYS_FITS,
    )
    fits = None
    if not pc.all(short).as_py():
        fits = pc.and_(
            pc.match_substring_regex(prices, _FORM),
            pc.match_substring_regex(sizes, _FORM),
        )
        prices, sizes = (pc.if_else(fits, c, None) for c in (prices, sizes))
    volumes = sizes.cast(_NUMBER)
    values = pc.multiply(prices.cast(_NUMBER), volumes)
    small = pc.less(values, _MOST)
    if not pc.all(small).as_py():
        fits = small if fits is None else pc.and_kleene(fits, small)
        volumes, values = (pc.if_else(fits, c, None) for c in (volumes, values))
    if fits is not None and pc.all(fits).as_py():
        fits = None
    return volumes.cast(VOLUME), values.cast(VALUE), fits


def units_of(price: str, size: str) -> tuple[int, int]:
    """Return the volume and the value of one trade as whole numbers of 10^-36."""
    return units(size), value_of(price, size)


def of_units(
    pairs: Sequence[tuple[int, int] | None],
) -> tuple[pa.Array, pa.Array, list[int]]:
    """Return columns of volumes and values, and the places of those that do not fit."""
    volumes: list[Decimal | None] = []
    values: list[Decimal | None] = []
    odd = []
    for place, pair in enumerate(pairs):
        fits = pair is not None and _fits(*pair)
        if pair is None or not fits:
            volumes.append(None)
            values.append(None)
            if pair is not None:
                odd.append(place)
            continue
        volumes.append(_decimal(pair[0] // _VOLUME_UNIT, 8))
        values.append(_decimal(pair[1] // _VALUE_UNIT, 16))
    return pa.array(volumes, VOLUME), pa.array(values, VALUE), odd


def _fits(volume: int, value: int) -> bool:
    is_small = volume < _MOST_SIZE and value < _MOST_VALUE
    return is_small and not volume % _VOLUME_UNIT and not value % _VALUE_UNIT


def _decimal(number: int, places: int) -> Decimal:
    # Without arithmetic, which would round to 28 digits.
    return Decimal((0, tuple(map(int, str(number))), -places))
