"""Size and value of trades as columns that can be summed, and never overflow. Pure.

A size has at most 18 digits before the point and 18 behind it, and so does a price: the
value of a trade may have 72. Nearly every trade needs far less. Sizes and prices below
10^9 with 8 places, and values below 10^10, are a few whole numbers of 64 bits: what is
before the point, and each eight digits behind it. A window would have to hold 9 * 10^8
of them for a sum to overflow. The others are whole numbers of Python, and travel as
text beside the columns.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.group import FRACTION_DIGITS, units, value_of

VOLUME = ("volume", "volume_e8")
VALUE = ("value", "value_e8", "value_e16")
"""The columns of a volume and of a value: the whole, 10^-8ths and 10^-16ths."""

SUMS = (*VOLUME, *VALUE)

_NUMBER = pa.decimal128(17, 8)
_FORM = r"^[0-9]{1,9}(?:\.[0-9]{1,8})?$"
_ALWAYS_FITS = 9
_LIMIT = 10**10
_STEP = 10**8
_WHOLE = 10**FRACTION_DIGITS
_UNITS = tuple(10 ** (FRACTION_DIGITS - places) for places in (0, 8, 16))
_ZERO = pa.scalar(0, pa.int64())
_MOST = pa.scalar(_LIMIT, pa.int64())
_DECIMAL_STEP = pa.scalar(Decimal(_STEP), pa.decimal128(9, 0))

Columns = dict[str, pa.Array]


def of_columns(prices: pa.Array, sizes: pa.Array) -> tuple[Columns, pa.Array | None]:
    """Return the columns ``SUMS`` of trades, and which of them fit; None: all do.

    Prices and sizes are decimal text. Of those that do not fit all is null.
    """
    fits = None
    if not _are_short(prices, sizes):
        fits = pc.and_(
            pc.match_substring_regex(prices, _FORM),
            pc.match_substring_regex(sizes, _FORM),
        )
        prices, sizes = (pc.if_else(fits, c, None) for c in (prices, sizes))
    if _are_whole(prices) and _are_whole(sizes):
        volume = [sizes.cast(pa.int64()), *_zeros(len(sizes), 1)]
        product = pc.multiply(prices.cast(pa.int64()), volume[0])
        value = [product, *_zeros(len(sizes), 2)]
    else:
        size = sizes.cast(_NUMBER)
        volume = _split(size, 1)
        value = _split(pc.multiply(prices.cast(_NUMBER), size), 2)
    small = pc.less(value[0], _MOST)
    if not pc.all(small, min_count=0).as_py():
        fits = small if fits is None else pc.and_kleene(fits, small)
    columns = dict(zip(SUMS, [*volume, *value], strict=True))
    if fits is None or pc.all(fits, min_count=0).as_py():
        return columns, None
    return {n: pc.if_else(fits, column, None) for n, column in columns.items()}, fits


def units_of(price: str, size: str) -> tuple[int, int]:
    """Return the volume and the value of one trade as whole numbers of 10^-36."""
    return units(size), value_of(price, size)


def of_units(pairs: Sequence[tuple[int, int] | None]) -> tuple[Columns, list[int]]:
    """Return the columns ``SUMS``, and the places of those that do not fit."""
    rows: list[Sequence[int | None]] = []
    odd = []
    for place, pair in enumerate(pairs):
        parts = None if pair is None else _parts(*pair)
        if pair is not None and parts is None:
            odd.append(place)
        rows.append(parts or (None,) * len(SUMS))
    columns: Any = zip(*rows, strict=True) if rows else ((),) * len(SUMS)
    return {n: pa.array(c, pa.int64()) for n, c in zip(SUMS, columns, strict=True)}, odd


def to_units(parts: Sequence[int]) -> tuple[int, int]:
    """Return volume and value, in whole numbers of 10^-36, of sums of ``SUMS``."""
    volume, value = parts[: len(VOLUME)], parts[len(VOLUME) :]
    return (
        sum(n * unit for n, unit in zip(volume, _UNITS, strict=False)),
        sum(n * unit for n, unit in zip(value, _UNITS, strict=True)),
    )


def _are_short(prices: pa.Array, sizes: pa.Array) -> bool:
    lengths = (
        pc.max(pc.binary_length(column)).as_py() or 0 for column in (prices, sizes)
    )
    return max(lengths) <= _ALWAYS_FITS


def _are_whole(column: pa.Array) -> bool:
    return not pc.any(pc.match_substring(column, ".")).as_py()


def _zeros(size: int, columns: int) -> list[pa.Array]:
    return [pa.repeat(_ZERO, size)] * columns


def _split(column: pa.Array, steps: int) -> list[pa.Array]:
    """Return the whole of decimals, then each eight digits behind the point."""
    parts = []
    for _ in range(steps + 1):
        whole = pc.floor(column)
        parts.append(whole.cast(pa.int64()))
        if len(parts) <= steps:
            rest = pc.subtract(column, whole).cast(pa.decimal128(17, 16))
            column = pc.multiply(rest, _DECIMAL_STEP)
    return parts


def _parts(volume: int, value: int) -> tuple[int, ...] | None:
    """Return the columns of a volume and a value, None if they do not fit."""
    too_fine = volume % _UNITS[1] or value % _UNITS[2]
    if too_fine or volume >= 10**9 * _WHOLE or value >= _LIMIT * _WHOLE:
        return None
    return (
        volume // _WHOLE,
        volume // _UNITS[1] % _STEP,
        value // _WHOLE,
        value // _UNITS[1] % _STEP,
        value // _UNITS[2] % _STEP,
    )
