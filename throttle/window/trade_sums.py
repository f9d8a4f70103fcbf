"""Sizes, values and prices of trades as columns that fold, and never overflow. Pure.

A size has at most 18 digits before the point and 18 behind it, and so does a price: the
value of a trade may have 72. Nearly every trade needs far less. Sizes and prices below
10^9 with 8 places, and values below 10^10, are a few whole numbers of 64 bits: what is
before the point, and each eight digits behind it. A window would have to hold 9 * 10^8
of them for a sum to overflow. Their highest and lowest price are whole numbers of
10^-8. The others are whole numbers of Python, and travel as text beside the columns.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.group import FRACTION_DIGITS
from throttle.contract.row_sums import Amounts
from throttle.window.vector_check import CountsFor

VOLUME = ("volume", "volume_e8")
VALUE = ("value", "value_e8", "value_e16")
"""The columns of a volume and of a value: the whole, 10^-8ths and 10^-16ths."""

SUMS = (*VOLUME, *VALUE)

HIGH, LOW = "high_e8", "low_e8"
"""The columns of the highest and the lowest price, 10^-8ths."""

FOLDS = {**dict.fromkeys(SUMS, "sum"), HIGH: "max", LOW: "min"}
"""How each column folds.

Those of a row are all null if its trades are in no column, and the last two where none
of its trades counts for the range.
"""

_NUMBER = pa.decimal128(17, 8)
_FORM = r"^[0-9]{1,9}(?:\.[0-9]{1,8})?$"
_ALWAYS_FITS = 9
_LIMIT = 10**10
_STEP = 10**8
_WHOLE = 10**FRACTION_DIGITS
_UNITS = tuple(10 ** (FRACTION_DIGITS - places) for places in (0, 8, 16))
_ZERO = pa.scalar(0, pa.int64())
_MOST = pa.scalar(_LIMIT, pa.int64())
_INT_STEP = pa.scalar(_STEP, pa.int64())
_DECIMAL_STEP = pa.scalar(Decimal(_STEP), pa.decimal128(9, 0))

Columns = dict[str, pa.Array]


def of_columns(
    prices: pa.Array, sizes: pa.Array, counts: CountsFor | None = None
) -> tuple[Columns, pa.Array | None]:
    """Return the columns ``FOLDS`` of trades, and which of them fit; None: all do.

    Prices and sizes are decimal text; ``counts`` says what trades count for, None that
    all count for everything. Of those that do not fit all is null.
    """
    fits = None
    if not _are_short(prices, sizes):
        fits = pc.and_(
            pc.match_substring_regex(prices, _FORM),
            pc.match_substring_regex(sizes, _FORM),
        )
        prices, sizes = (pc.if_else(fits, c, None) for c in (prices, sizes))
    if _are_whole(prices) and _are_whole(sizes):
        size, price = sizes.cast(pa.int64()), prices.cast(pa.int64())
        none = pa.repeat(_ZERO, len(sizes))
        volume, value = [size, none], [pc.multiply(price, size), none, none]
        paid = pc.multiply(price, _INT_STEP)
    else:
        size, price = sizes.cast(_NUMBER), prices.cast(_NUMBER)
        volume = _split(size, 1)
        value = _split(pc.multiply(price, size), 2)
        paid = pc.multiply(price, _DECIMAL_STEP).cast(pa.int64())
    small = pc.less(value[0], _MOST)
    if not pc.all(small, min_count=0).as_py():
        fits = small if fits is None else pc.and_kleene(fits, small)
    if counts is not None:
        # Not a constant: what is null, since it does not fit, stays so.
        adds = counts.volume.cast(pa.int64())
        volume, value = ([pc.multiply(c, adds) for c in of] for of in (volume, value))
        paid = pc.if_else(counts.range, paid, None)
    columns = dict(zip(FOLDS, [*volume, *value, paid, paid], strict=True))
    if fits is None or pc.all(fits, min_count=0).as_py():
        return columns, None
    return {n: pc.if_else(fits, column, None) for n, column in columns.items()}, fits


def of_amounts(every: Sequence[Amounts | None]) -> tuple[Columns, list[int]]:
    """Return the columns ``FOLDS``, and the places of those that do not fit."""
    rows: list[Sequence[int | None]] = []
    odd = []
    for place, amounts in enumerate(every):
        parts = None if amounts is None else _parts(amounts)
        if amounts is not None and parts is None:
            odd.append(place)
        rows.append(parts or (None,) * len(FOLDS))
    columns: Any = zip(*rows, strict=True) if rows else ((),) * len(FOLDS)
    named = zip(FOLDS, columns, strict=True)
    return {name: pa.array(column, pa.int64()) for name, column in named}, odd


def to_units(parts: Sequence[int]) -> tuple[int, int]:
    """Return volume and value, in whole numbers of 10^-36, of sums of ``SUMS``."""
    volume, value = parts[: len(VOLUME)], parts[len(VOLUME) : len(SUMS)]
    return (
        sum(n * unit for n, unit in zip(volume, _UNITS, strict=False)),
        sum(n * unit for n, unit in zip(value, _UNITS, strict=True)),
    )


def to_amounts(parts: Sequence[int | None]) -> Amounts:
    """Return what is in the columns ``FOLDS`` of a row."""
    sums, extremes = [n or 0 for n in parts[: len(SUMS)]], parts[len(SUMS) :]
    high, low = (None if n is None else n * _UNITS[1] for n in extremes)
    return Amounts(*to_units(sums), high, low)


def pack(amounts: Amounts) -> bytes:
    """Encode amounts as the payload of a row of ``SUM_PREFIX``."""
    return " ".join("-" if n is None else str(n) for n in amounts).encode()


def unpack(payload: bytes) -> Amounts:
    """Decode what ``pack`` wrote."""
    volume, value, *extremes = payload.split(b" ")
    high, low = (None if text == b"-" else int(text) for text in extremes)
    return Amounts(int(volume), int(value), high, low)


def texts(columns: Columns) -> pa.Array:
    """Return columns as a row says them, ``<volume>,<value>,<high>,<low>``.

    Both latter are empty where no trade counts for the range; null: in no column.
    """
    prices = []
    for name in (HIGH, LOW):
        whole = pc.divide(columns[name], _INT_STEP)
        part = pc.subtract(columns[name], pc.multiply(whole, _INT_STEP))
        prices.append(_decimal_texts(whole, part).fill_null(""))
    sums = [_decimal_texts(*(columns[n] for n in names)) for names in (VOLUME, VALUE)]
    return pc.binary_join_element_wise(*sums, *prices, ",")


def _decimal_texts(whole: pa.Array, *parts: pa.Array) -> pa.Array:
    """Return decimals without zeros at their end; each part has eight digits of them.

    A part that is a sum may be more than eight digits hold.
    """
    digits: list[pa.Array] = []
    carry = pc.multiply(whole, _ZERO)
    for part in reversed(parts):
        exact = pc.add(part, carry)
        carry = pc.divide(exact, _INT_STEP)
        digits.insert(0, pc.subtract(exact, pc.multiply(carry, _INT_STEP)))
    whole = pc.add(whole, carry)
    text = whole.cast(pa.string())
    if not any(pc.any(pc.not_equal(part, _ZERO)).as_py() for part in digits):
        return text
    eight = (
        pc.utf8_lpad(p.cast(pa.string()), len(str(_STEP)) - 1, "0") for p in digits
    )
    exact = pc.binary_join_element_wise(
        text, pc.binary_join_element_wise(*eight, ""), "."
    )
    return pc.ascii_rtrim(pc.ascii_rtrim(exact, "0"), ".")


def _are_short(prices: pa.Array, sizes: pa.Array) -> bool:
    lengths = (pc.max(pc.binary_length(c)).as_py() or 0 for c in (prices, sizes))
    return max(lengths) <= _ALWAYS_FITS


def _are_whole(column: pa.Array) -> bool:
    return not pc.any(pc.match_substring(column, ".")).as_py()


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


def _parts(amounts: Amounts) -> tuple[int | None, ...] | None:
    """Return what columns have of the amounts of trades, None if they do not fit."""
    volume, value, *extremes = amounts
    prices = [n for n in extremes if n is not None]
    too_large = volume >= 10**9 * _WHOLE or max(value, *prices, 0) >= _LIMIT * _WHOLE
    return None if too_large else split(amounts)


def split(amounts: Amounts) -> tuple[int | None, ...] | None:
    """Return amounts in parts, as in columns; None if they have finer digits.

    How large they may be is for the caller to say.
    """
    volume, value, *extremes = amounts
    prices = [n for n in extremes if n is not None]
    if any(n % _UNITS[1] for n in (volume, *prices)) or value % _UNITS[2]:
        return None
    return (
        volume // _WHOLE,
        volume // _UNITS[1] % _STEP,
        value // _WHOLE,
        value // _UNITS[1] % _STEP,
        value // _UNITS[2] % _STEP,
        *(None if n is None else n // _UNITS[1] for n in extremes),
    )
