"""What a trade is: its fields, its rules, how it is written in a log. Pure.

Whoever appends checks by these rules, and whoever reads does.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import lru_cache
from json import JSONEncoder
from math import isfinite
from typing import Any, Literal

from tickthrottle_client import taking_back_v1, updates_v1
from tickthrottle_client.taking_back_v1 import CANCELS, CORRECTS, REVISION

MAX_PAYLOAD_BYTES = 16_384
"""Largest encoded trade that is accepted, in bytes."""

EARLIEST_TIME_US = 631_152_000_000_000  # 1990-01-01: catches seconds and milliseconds
LATEST_TIME_US = 4_102_444_800_000_000  # 2100-01-01: catches nanoseconds
MAX_SEQ = 2**63 - 1

ISIN_CHARS = 12
"""How long an ISIN is; codes of instruments are shorter."""

REQUIRED = ("isin", "time", "seq", "price", "size")
RESERVED = frozenset({"trades", "volume", "value", "high", "low", "day", REVISION})
"""Field names the gateway adds to a row itself; a trade may not carry them."""

_ISIN_RULE = "must be 2 capitals, 9 capitals or digits, 1 check digit"
ISIN_PATTERN = "[A-Z]{2}[0-9A-Z]{9}[0-9]"
"""What an ISIN looks like, but for its check digit; Arrow's RE2 reads it, too."""

WHOLE_PATTERN = "[1-9][0-9]{0,17}"
"""What a decimal of one or more has before the point."""

FRACTION_PATTERN = r"\.[0-9]{1,18}"
"""What a decimal may have from the point on."""

_ISIN_FORM = re.compile(ISIN_PATTERN, re.ASCII)
_ISIN_NUMBER = re.compile(r"[A-Z]{2}[0-9A-Z]{9}(?=.?\Z)", re.ASCII)
# Exactly the decimals that are also JSON numbers, so that text leaves as it came.
_DECIMAL_FORM = re.compile(f"(?:0|{WHOLE_PATTERN})(?:{FRACTION_PATTERN})?", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_INTEGER_FORM = re.compile(r"(?:0|[1-9][0-9]{0,18})", re.ASCII)
_ISO_8601 = re.compile(r"\d{4}-?\d{2}-?\d{2}[T ]", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FLOAT_RULE = "is a float, which may have lost digits: give text, int or Decimal"
# A decimal with a greater exponent has too many digits, however it is written.
_MOST_PLACES = 64
_encode = JSONEncoder(ensure_ascii=False, allow_nan=False).encode


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
        self.rule = rule


def isin_check_digit(number: str) -> str:
    """Return the check digit of an ISIN's first eleven characters (ISO 6166).

    Letters count as 10 to 35; of all these digits every second one, from the last, is
    doubled, and the digits are added up.
    """
    digits = "".join(str(int(character, 36)) for character in number)
    doubled = "".join(str(2 * int(digit)) for digit in digits[::-2])
    return str(-sum(map(int, doubled + digits[-2::-2])) % 10)


def check_isin(value: Any) -> str:
    """Return ``value`` if it is an ISIN with the right check digit (ISO 6166).

    The country letters are not looked up, so stand-in prefixes pass.
    Raises InvalidTrade.
    """
    broken = _broken_isin_rule(value) if isinstance(value, str) else _ISIN_RULE
    if broken is not None:
        raise InvalidTrade("bad_isin", "isin", value, broken)
    return str(value)


# A check digit costs some us, an instrument list has a few thousand entries.
@lru_cache(maxsize=65_536)
def _broken_isin_rule(text: str) -> str | None:
    if _ISIN_FORM.fullmatch(text):
        digit = isin_check_digit(text[:-1])
        return None if text[-1] == digit else f"check digit is {digit}"
    if number := _ISIN_NUMBER.match(text):
        return f"{_ISIN_RULE}, which is {isin_check_digit(number[0])} here"
    if text != text.upper() and _ISIN_FORM.fullmatch(text.upper()):
        return f"{_ISIN_RULE}; it has small letters"
    return _ISIN_RULE


def check_extra(name: Any, value: Any) -> None:
    """Raise InvalidTrade unless a further field may go along with a trade."""
    if name == updates_v1.FIELD:
        try:
            updates_v1.Updates.parse(value)
        except ValueError as error:
            raise InvalidTrade("bad_field", name, value, str(error)) from None
    if name in (CANCELS, CORRECTS):
        check_number_of(name, value)
        return
    if type(name) is str and name.isascii() and name not in RESERVED:
        # Nearly every field, at a third of the cost of asking everything below.
        if type(value) is str and value.isascii():
            return
        if type(value) is int and -(2**63) <= value < 2**64:
            return
    if not isinstance(name, str):
        raise InvalidTrade("bad_field", "trade", value, "has a value without a name")
    if name in RESERVED:
        rule = "is a name that rows have themselves: use another "
        raise InvalidTrade("bad_field", name, value, rule + f"(--map my_{name}={name})")
    # Nothing that is accepted may fail to encode, or change, on its way out.
    if not _is_scalar(name) or not _is_scalar(value):
        rule = "must be UTF-8 text, a 64-bit or finite number, a boolean or null"
        raise InvalidTrade("bad_field", name, value, rule)


def check_number_of(name: str, value: Any) -> int:
    """Return the number of the trade that a field names. Raises InvalidTrade."""
    try:
        return check_integer(name, value)
    except InvalidTrade as error:
        rule = f"names a trade by its seq, and {error.rule}"
        raise InvalidTrade("bad_field", name, value, rule) from None


def check_taking_back(fields: Mapping[str, Any]) -> tuple[str, int, int, int]:
    """Return ISIN, time, ``seq`` and what it cancels of an entry with ``cancels``.

    It may leave out ``seq``, and has that of the other trade then. Raises InvalidTrade.
    """
    _check_alone(fields)
    for name in ("isin", "time"):
        if not taking_back_v1.is_given(fields.get(name)):
            raise InvalidTrade("missing_field", name, None, "is required")
    target = check_number_of(CANCELS, fields[CANCELS])
    seq = fields.get("seq")
    number = check_integer("seq", seq) if taking_back_v1.is_given(seq) else target
    return check_isin(fields["isin"]), check_time(fields["time"]), number, target


def _check_alone(fields: Mapping[str, Any]) -> None:
    if (name := taking_back_v1.too_much(fields)) is not None:
        rule = taking_back_v1.RULE_ALONE
        raise InvalidTrade("bad_field", name, fields[name], rule)


def _is_scalar(value: Any) -> bool:
    if isinstance(value, str):
        return value.isascii() or not _SURROGATE.search(value)
    if isinstance(value, float):
        return isfinite(value)
    if value is None or type(value) is JsonNumber:
        return True
    return isinstance(value, int) and -(2**63) <= value < 2**64


def check_time(value: Any) -> int:
    """Return a time in microseconds since 1970. Raises InvalidTrade."""
    if type(value) is int and EARLIEST_TIME_US <= value < LATEST_TIME_US:
        return value
    time_us = check_integer("time", value)
    if not EARLIEST_TIME_US <= time_us < LATEST_TIME_US:
        rule = "must be microseconds since 1970, between the years 1990 and 2100"
        raise InvalidTrade("bad_time", "time", value, rule)
    return time_us


def check_integer(name: str, value: Any) -> int:
    """Return a whole number, given as one or as decimal text. Raises InvalidTrade."""
    if type(value) is int and 0 <= value <= MAX_SEQ:
        return value
    if isinstance(value, str) and _INTEGER_FORM.fullmatch(value):
        value = int(value)
    if type(value) is not int or not 0 <= value <= MAX_SEQ:
        rule = "must be a whole number from 0 to 2^63 - 1"
        raise InvalidTrade(f"bad_{name}", name, value, rule)
    return value


def check_decimal(name: str, value: Any) -> str:
    """Return a decimal above zero, text or ``int``, as text. Raises InvalidTrade."""
    text = str(value) if type(value) is int else value
    if not isinstance(text, str) or not _DECIMAL_FORM.fullmatch(text):
        rule = "must be a plain decimal: at most 18 digits before and after the point"
        raise InvalidTrade(f"bad_{name}", name, value, rule)
    if not text.strip("0."):
        raise InvalidTrade(f"bad_{name}", name, value, "must be above zero")
    return text


Fold = Literal["earlier", "later"]
"""Which of two moments a local time is that the clocks show twice."""


def as_microseconds(
    time: str, zone: tzinfo | None = None, fold: Fold | None = None
) -> str:
    """Return a time as in ISO 8601 as microseconds since 1970; any other text as is.

    It has to say its offset from UTC, or Z, unless a ``zone`` is given, as for
    ``in_zone``. Digits beyond microseconds are cut. Raises InvalidTrade.
    """
    if _ISO_8601.match(time) is None:
        return time
    try:
        moment = datetime.fromisoformat(time)
    except ValueError as error:
        raise InvalidTrade("bad_time", "time", time, str(error)) from None
    if moment.tzinfo is None and zone is not None:
        moment = in_zone(moment, zone, fold)
    if moment.tzinfo is None:
        rule = "needs its offset from UTC, such as +09:00, or Z"
        raise InvalidTrade("bad_time", "time", time, rule)
    return str(microseconds_of(moment))


def in_zone(moment: datetime, zone: tzinfo, fold: Fold | None = None) -> datetime:
    """Return a local time, which has no offset, as the moment it is in ``zone``.

    Where the clocks are set back an hour comes twice: ``fold`` says which one is meant,
    and without it the time is refused. Where they are set forward an hour is left out:
    its times are refused. Raises InvalidTrade.
    """
    earlier = moment.replace(tzinfo=zone, fold=0)
    later = moment.replace(tzinfo=zone, fold=1)
    if earlier.utcoffset() == later.utcoffset():
        return earlier
    _check_is_shown(earlier)
    if fold is None:
        rule = (
            f"comes twice on the clocks of {zone}: give its offset from UTC, or say "
            "--form fold=earlier or fold=later"
        )
        raise InvalidTrade("bad_time", "time", str(moment), rule)
    return earlier if fold == "earlier" else later


def _check_is_shown(moment: datetime) -> None:
    """Raise InvalidTrade for a moment that the clocks of its zone leave out."""
    try:
        local = moment.astimezone(UTC).astimezone(moment.tzinfo)
    except OverflowError:
        # The first or the last day of all: refused for its year.
        return
    if local.replace(tzinfo=None, fold=0) != moment.replace(tzinfo=None, fold=0):
        rule = f"is a time that the clocks of {moment.tzinfo} leave out"
        raise InvalidTrade("bad_time", "time", str(moment), rule)


def microseconds_of(moment: datetime) -> int:
    """Return a time with its offset from UTC as microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def encode_trade(
    fields: Mapping[str, Any], next_seq: Callable[[], int]
) -> tuple[str, bytes]:
    """Return the ISIN of a trade that is given by its fields, and how a log holds it.

    ``time`` is microseconds since 1970, text as in ISO 8601 with an offset, or a
    datetime with one. ``price`` and ``size`` are text, ``int`` or Decimal; a float is
    refused. ``seq`` is ``next_seq()`` if there is none. Further fields are carried
    along; one that is a Decimal becomes a number with the same digits. With ``cancels``
    it is no trade, but takes one back (``taking_back_v1.py``). Raises InvalidTrade for
    the first rule that is broken.
    """
    if not isinstance(fields, Mapping):
        raise InvalidTrade("not_object", "trade", fields, "is no mapping of fields")
    isin, time, price, size = map(fields.get, ("isin", "time", "price", "size"))
    if not (isin and time and price and size):
        if taking_back_v1.takes_back(fields):
            return _encode_taking_back(fields)
        _check_required(fields)
    seq = fields.get("seq")
    if seq is None or (type(seq) is str and not seq):
        seq = next_seq()
    isin = check_isin(isin)
    head = (
        f'{{"isin":"{isin}","time":{check_time(_as_time(time))}'
        f',"seq":{check_integer("seq", seq)}'
        f',"price":"{check_decimal("price", _as_decimal("price", price))}"'
        f',"size":"{check_decimal("size", _as_decimal("size", size))}"'
    )
    return isin, _with_extras(head, fields, _REQUIRED)


def _encode_taking_back(fields: Mapping[str, Any]) -> tuple[str, bytes]:
    known = {**fields, "time": _as_time(fields.get("time"))}
    isin, time_us, seq, target = check_taking_back(known)
    head = f'{{"isin":"{isin}","time":{time_us},"seq":{seq},"{CANCELS}":{target}'
    return isin, _with_extras(head, fields, _NOT_EXTRA)


def _with_extras(head: str, fields: Mapping[str, Any], known: frozenset[str]) -> bytes:
    for name, value in fields.items():
        if name in known:
            continue
        if name in _TARGETS and not taking_back_v1.is_given(value):
            # A column of a table that says something of other rows.
            continue
        if name == CANCELS:
            # It has a price, too, and is refused.
            _check_alone(fields)
        head += f",{_encode(name)}:{_encode_extra(name, value)}"
    payload = f"{head}}}".encode()
    if len(payload) > MAX_PAYLOAD_BYTES:
        rule = f"over {MAX_PAYLOAD_BYTES} bytes"
        raise InvalidTrade("too_large", "trade", len(payload), rule)
    return payload


_REQUIRED = frozenset(REQUIRED)
_TARGETS = frozenset({CANCELS, CORRECTS})
_NOT_EXTRA = _REQUIRED | _TARGETS | {updates_v1.FIELD}


def _check_required(fields: Mapping[str, Any]) -> None:
    for name in REQUIRED:
        value = fields.get(name)
        if name != "seq" and (value is None or (type(value) is str and not value)):
            raise InvalidTrade("missing_field", name, None, "is required")


def _encode_extra(name: Any, value: Any) -> str:
    if type(value) is Decimal and value.is_finite():
        check_extra(name, None)
        return str(value)
    check_extra(name, value)
    # The encoder is slow with anything but text.
    return str(value) if type(value) is int else _encode(value)


def _as_time(value: Any) -> Any:
    if type(value) is int:
        return value
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            rule = "needs its offset from UTC: datetime.now(UTC), for instance"
            raise InvalidTrade("bad_time", "time", str(value), rule)
        # A zone with a fixed offset leaves out nothing.
        if type(value.tzinfo) is not timezone:
            _check_is_shown(value)
        return microseconds_of(value)
    return as_microseconds(value) if isinstance(value, str) else value


def _as_decimal(name: str, value: Any) -> Any:
    kind = type(value)
    if kind is str or kind is int:
        return value
    if isinstance(value, float):
        raise InvalidTrade(f"bad_{name}", name, value, _FLOAT_RULE)
    if not isinstance(value, Decimal):
        return value
    if not value.is_finite() or abs(value.adjusted()) > _MOST_PLACES:
        return str(value)
    return format(value, "f")
