"""The trade: what one execution is, when it is valid, how it is written. Pure.

This module is a contract: everything downstream may import it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from json import loads as exact_loads
from math import isfinite
from typing import Any

import orjson
from stdnum import isin as stdnum_isin

MAX_PAYLOAD_BYTES = 16_384
"""Largest encoded trade that is accepted, in bytes."""

MAX_ENTRY_BYTES = 65_536
"""Largest entry of a log that is looked at at all, in bytes, unless told otherwise."""

EARLIEST_TIME_US = 631_152_000_000_000  # 1990-01-01: catches seconds and milliseconds
LATEST_TIME_US = 4_102_444_800_000_000  # 2100-01-01: catches nanoseconds
MAX_SEQ = 2**63 - 1

ISIN_CHARS = 12
"""How long an ISIN is; codes of issues are shorter."""

REQUIRED = ("isin", "time", "seq", "price", "size")
RESERVED = frozenset({"trades"})
"""Field names the gateway adds to a row itself; a trade may not carry them."""

_ISIN_RULE = "must be 2 capitals, 9 capitals or digits, 1 check digit"
ISIN_PATTERN = "[A-Z]{2}[0-9A-Z]{9}[0-9]"
"""What an ISIN looks like, but for its check digit; Arrow's RE2 reads it, too."""

WHOLE_PATTERN = "[1-9][0-9]{0,17}"
"""What a decimal of one or more has before the point."""

FRACTION_PATTERN = r"\.[0-9]{1,18}"
"""What a decimal may have from the point on."""

_ISIN_FORM = re.compile(ISIN_PATTERN, re.ASCII)
# Exactly the decimals that are also JSON numbers, so that text leaves as it came.
_DECIMAL_FORM = re.compile(f"(?:0|{WHOLE_PATTERN})(?:{FRACTION_PATTERN})?", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_INTEGER_FORM = re.compile(r"(?:0|[1-9][0-9]{0,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class JsonNumber:
    """A JSON number as it was written: no type of Python keeps every digit."""

    text: str


class InvalidTrade(ValueError):
    """A trade that breaks a rule; says which field, which value and which rule.

    ``reason`` is a stable code for counters and dead letters, one of ``REASONS``.
    """

    def __init__(self, reason: str, field_name: str, value: object, rule: str) -> None:
        # A value may have megabytes: only what is shown is written out.
        shown = repr(value[:80] if isinstance(value, (bytes, str)) else value)
        if len(shown) > 80:
            shown = shown[:77] + "..."
        if len(field_name) > 80:
            field_name = field_name[:77] + "..."
        super().__init__(f"{field_name} {shown}: {rule}")
        self.reason = reason
        self.field = field_name


REASONS = (
    "empty",
    "too_large",
    "not_json",
    "not_object",
    "not_decoded",
    "missing_field",
    "bad_field",
    "bad_isin",
    "bad_time",
    "bad_seq",
    "bad_price",
    "bad_size",
    "future_time",
)


@dataclass(frozen=True, slots=True)
class Trade:
    """One execution.

    ``time_us`` is the exchange's clock, microseconds since 1970 UTC; ``seq`` is the
    feed's number of this trade within its issue. ``(time_us, seq)`` is the trade's
    version: the order of one issue's trades. ``price`` and ``size`` are positive
    decimals kept as the text that arrived. ``extra`` holds further fields, passed
    through unchanged: a number that a double or 64 bits might not keep is a
    ``JsonNumber``.
    """

    isin: str
    time_us: int
    seq: int
    price: str
    size: str
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> "Trade":
        """Check and build a trade from named fields (a tape's row, decoded JSON).

        Integers may come as ``int`` or as decimal text, ``price`` and ``size`` as
        ``int`` or decimal text; never as ``float``, which has already lost the text.
        Raises InvalidTrade for the first rule that is broken.
        """
        extra = dict(fields)
        required = [extra.pop(name, None) for name in REQUIRED]
        if None in required or "" in required:
            name = next(n for n in REQUIRED if fields.get(n) in (None, ""))
            raise InvalidTrade("missing_field", name, None, "is required")
        for name, value in extra.items():
            _check_extra(name, value)
            if type(value) is float:
                extra[name] = JsonNumber(repr(value))
        isin, time_us, seq, price, size = required
        return cls(
            check_isin(isin),
            _check_time(time_us),
            _check_integer("seq", seq),
            _check_decimal("price", price),
            _check_decimal("size", size),
            extra,
        )

    @classmethod
    def from_wire(cls, payload: bytes) -> "Trade":
        """Decode and check a trade as the trade log holds it.

        Raises InvalidTrade, never anything else, whatever the bytes are.
        """
        if not payload:
            raise InvalidTrade("empty", "trade", payload, "has no bytes")
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise InvalidTrade(
                "too_large", "trade", len(payload), f"over {MAX_PAYLOAD_BYTES} bytes"
            )
        try:
            fields = orjson.loads(payload)
            if isinstance(fields, dict) and _may_change(fields, payload):
                fields = _with_exact_numbers(fields, payload)
        except (ValueError, RecursionError) as error:
            raise InvalidTrade("not_json", "trade", payload, str(error)) from None
        if not isinstance(fields, dict):
            raise InvalidTrade("not_object", "trade", payload, "is not a JSON object")
        return cls.from_fields(fields)

    @property
    def version(self) -> tuple[int, int]:
        """Order of this issue's trades: the greater one is the newer one."""
        return (self.time_us, self.seq)

    def to_wire(self) -> bytes:
        """Encode for the trade log; ``from_wire`` gives back an equal trade."""
        return encode_fields(
            {
                "isin": self.isin,
                "time": self.time_us,
                "seq": self.seq,
                "price": self.price,
                "size": self.size,
                **self.extra,
            }
        )

    def to_row(self) -> bytes:
        """Encode for clients: a JSON object with price and size as JSON numbers.

        The numbers' text is exactly the decimal that arrived.
        """
        return encode_fields(
            {
                "isin": self.isin,
                "time": self.time_us,
                "seq": self.seq,
                "price": orjson.Fragment(self.price),
                "size": orjson.Fragment(self.size),
                **self.extra,
            }
        )


def encode_fields(fields: Mapping[str, Any]) -> bytes:
    """Encode fields as a JSON object; a ``JsonNumber`` leaves as its text."""
    return orjson.dumps(fields, _encode_number, orjson.OPT_PASSTHROUGH_DATACLASS)


def _encode_number(value: Any) -> orjson.Fragment:
    if type(value) is JsonNumber:
        return orjson.Fragment(value.text)
    raise TypeError(f"{type(value).__name__} is not JSON serializable")


def _may_change(fields: Mapping[str, Any], payload: bytes) -> bool:
    """Tell whether decoding may have lost a number's text.

    Fractions, exponents and more than 64 bits become floats, and -0 becomes 0.
    """
    if float in map(type, fields.values()):
        return True
    return b"-0" in payload and 0 in fields.values()


def _with_exact_numbers(fields: dict[str, Any], payload: bytes) -> dict[str, Any]:
    """Put the numbers' own text in their places, but for those of time and seq."""
    exact = exact_loads(payload, parse_float=str, parse_int=str)
    for name, value in fields.items():
        if name in ("price", "size") and type(value) in (float, int):
            fields[name] = exact[name]
        elif type(value) is float or (type(value) is int and exact[name] == "-0"):
            fields[name] = value if name in REQUIRED else JsonNumber(exact[name])
    return fields


def check_isin(value: Any) -> str:
    """Return ``value`` if it is an ISIN with the right check digit (ISO 6166).

    The country letters are not looked up, so stand-in prefixes pass.
    Raises InvalidTrade.
    """
    broken = _broken_isin_rule(value) if isinstance(value, str) else _ISIN_RULE
    if broken is not None:
        raise InvalidTrade("bad_isin", "isin", value, broken)
    return str(value)


# A check digit costs 20 to 30 us, an issue list has a few thousand entries.
@lru_cache(maxsize=65_536)
def _broken_isin_rule(text: str) -> str | None:
    if not _ISIN_FORM.fullmatch(text):
        return _ISIN_RULE
    digit = str(stdnum_isin.calc_check_digit(text[:-1]))
    return None if text[-1] == digit else f"check digit is {digit}"


def check_not_ahead(trade: Trade, append_time_us: int, max_ahead_us: int) -> None:
    """Refuse a trade stamped further than ``max_ahead_us`` after its append time.

    One stamp in the year 2099 would otherwise hold back its issue for ever. The
    rule looks at the record alone, so a re-run decides the same.
    Raises InvalidTrade.
    """
    if trade.time_us > append_time_us + max_ahead_us:
        raise InvalidTrade(
            "future_time",
            "time",
            trade.time_us,
            f"more than {max_ahead_us // 1000} ms ahead of the log's clock "
            f"({append_time_us})",
        )


def _check_extra(name: Any, value: Any) -> None:
    if type(name) is str and name.isascii() and name not in RESERVED:
        # Nearly every field, at a third of the cost of asking everything below.
        if type(value) is str and value.isascii():
            return
        if type(value) is int and -(2**63) <= value < 2**64:
            return
    if not isinstance(name, str):
        raise InvalidTrade("bad_field", "trade", value, "has a value without a name")
    if name in RESERVED:
        raise InvalidTrade(
            "bad_field", name, value, "is a name the gateway adds itself"
        )
    # Nothing that is accepted may fail to encode, or change, on its way out.
    if not _is_scalar(name) or not _is_scalar(value):
        raise InvalidTrade(
            "bad_field",
            name,
            value,
            "must be UTF-8 text, a 64-bit or finite number, a boolean or null",
        )


def _is_scalar(value: Any) -> bool:
    if isinstance(value, str):
        return value.isascii() or not _SURROGATE.search(value)
    if isinstance(value, float):
        return isfinite(value)
    if value is None or type(value) is JsonNumber:
        return True
    return isinstance(value, int) and -(2**63) <= value < 2**64


def _check_time(value: Any) -> int:
    if type(value) is int and EARLIEST_TIME_US <= value < LATEST_TIME_US:
        return value
    time_us = _check_integer("time", value)
    if not EARLIEST_TIME_US <= time_us < LATEST_TIME_US:
        raise InvalidTrade(
            "bad_time",
            "time",
            value,
            "must be microseconds since 1970, between the years 1990 and 2100",
        )
    return time_us


def _check_integer(name: str, value: Any) -> int:
    if type(value) is int and 0 <= value <= MAX_SEQ:
        return value
    if isinstance(value, str) and _INTEGER_FORM.fullmatch(value):
        value = int(value)
    if type(value) is not int or not 0 <= value <= MAX_SEQ:
        raise InvalidTrade(
            f"bad_{name}", name, value, "must be a whole number from 0 to 2^63 - 1"
        )
    return value


def _check_decimal(name: str, value: Any) -> str:
    text = str(value) if type(value) is int else value
    if not isinstance(text, str) or not _DECIMAL_FORM.fullmatch(text):
        raise InvalidTrade(
            f"bad_{name}",
            name,
            value,
            "must be a plain decimal: at most 18 digits before and after the point",
        )
    if not text.strip("0."):
        raise InvalidTrade(f"bad_{name}", name, value, "must be above zero")
    return text
