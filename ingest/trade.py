"""The trade: what one execution is, when it is valid, how it is written. Pure.

This module is a contract: everything downstream may import it. The rules, which those
who append share, are stated in ``tickthrottle_client/trade_v1.py``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from json import loads as exact_loads
from typing import Any

import orjson

from tickthrottle_client.taking_back_v1 import CANCELS, CORRECTS, is_given, takes_back
from tickthrottle_client.trade_v1 import (
    EARLIEST_TIME_US,
    FRACTION_PATTERN,
    ISIN_CHARS,
    ISIN_PATTERN,
    LATEST_TIME_US,
    MAX_PAYLOAD_BYTES,
    MAX_SEQ,
    REQUIRED,
    RESERVED,
    WHOLE_PATTERN,
    InvalidTrade,
    JsonNumber,
    check_decimal,
    check_extra,
    check_integer,
    check_isin,
    check_taking_back,
    check_time,
)
from tickthrottle_client.updates_v1 import ALL, FIELD, PATTERN, Updates

__all__ = [
    "EARLIEST_TIME_US",
    "FRACTION_PATTERN",
    "ISIN_CHARS",
    "ISIN_PATTERN",
    "LATEST_TIME_US",
    "MAX_PAYLOAD_BYTES",
    "MAX_SEQ",
    "REQUIRED",
    "RESERVED",
    "WHOLE_PATTERN",
    "InvalidTrade",
    "JsonNumber",
    "check_isin",
]

MAX_ENTRY_BYTES = 65_536
"""Largest entry of a log that is looked at at all, in bytes, unless told otherwise."""

REASONS = (
    *("empty", "too_large", "not_json", "not_object", "not_decoded", "missing_field"),
    *("bad_field", "bad_isin", "bad_time", "bad_seq", "bad_price", "bad_size"),
    *("future_time", "old_stamp"),
)


@dataclass(frozen=True, slots=True)
class Trade:
    """One execution, or an entry that takes one back.

    ``time_us`` is the exchange's clock, microseconds since 1970 UTC; ``seq`` is the
    feed's number of this trade within its instrument. ``(time_us, seq)`` is the trade's
    version: the order of one instrument's trades. ``price`` and ``size`` are positive
    decimals kept as the text that arrived. ``extra`` holds further fields, passed
    through unchanged: a number that a double or 64 bits might not keep is a
    ``JsonNumber``. An entry that ``cancels`` a trade has no price and no size, which
    are empty, and counts for nothing (``taking_back_v1.py``).
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
        if takes_back(fields):
            return cls._taking_back(fields)
        extra = dict(fields)
        required = [extra.pop(name, None) for name in REQUIRED]
        if None in required or "" in required:
            name = next(n for n in REQUIRED if fields.get(n) in (None, ""))
            raise InvalidTrade("missing_field", name, None, "is required")
        _check_extras(extra)
        isin, time_us, seq, price, size = required
        return cls(
            check_isin(isin),
            check_time(time_us),
            check_integer("seq", seq),
            check_decimal("price", price),
            check_decimal("size", size),
            extra,
        )

    @classmethod
    def _taking_back(cls, fields: Mapping[str, Any]) -> "Trade":
        isin, time_us, seq, target = check_taking_back(fields)
        extra = {n: v for n, v in fields.items() if n not in _OF_TRADE}
        _check_extras(extra)
        return cls(isin, time_us, seq, "", "", {CANCELS: target, **extra})

    @classmethod
    def from_wire(cls, payload: bytes) -> "Trade":
        """Decode and check a trade as the trade log holds it.

        Raises InvalidTrade, never anything else, whatever the bytes are.
        """
        if not payload:
            raise InvalidTrade("empty", "trade", payload, "has no bytes")
        if len(payload) > MAX_PAYLOAD_BYTES:
            rule = f"over {MAX_PAYLOAD_BYTES} bytes"
            raise InvalidTrade("too_large", "trade", len(payload), rule)
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
        """Order of this instrument's trades: the greater one is the newer one."""
        return (self.time_us, self.seq)

    @property
    def updates(self) -> Updates:
        """What it counts for."""
        return Updates.parse(self.extra[FIELD]) if FIELD in self.extra else ALL

    @property
    def is_trade(self) -> bool:
        """Whether it is one, and takes none back without being one."""
        return bool(self.price)

    @property
    def takes_back(self) -> int | None:
        """The number of the trade that it cancels or corrects, None if it does not."""
        target = self.extra.get(CORRECTS if self.is_trade else CANCELS)
        return None if target is None else int(target)

    def to_wire(self) -> bytes:
        """Encode for the trade log; ``from_wire`` gives back an equal trade."""
        numbers = {"price": self.price, "size": self.size} if self.is_trade else {}
        return encode_fields(self._fields(numbers))

    def to_row(self) -> bytes:
        """Encode for clients: a JSON object with price and size as JSON numbers.

        The numbers' text is exactly the decimal that arrived.
        """
        price, size = orjson.Fragment(self.price), orjson.Fragment(self.size)
        return encode_fields(self._fields({"price": price, "size": size}))

    def _fields(self, numbers: Mapping[str, Any]) -> dict[str, Any]:
        head = {"isin": self.isin, "time": self.time_us, "seq": self.seq}
        return {**head, **numbers, **self.extra}


_OF_TRADE = frozenset({*REQUIRED, CANCELS, CORRECTS, FIELD})


def _check_extras(extra: dict[str, Any]) -> None:
    """Check further fields; numbers that are floats keep their text."""
    for name in (CANCELS, CORRECTS):
        if name in extra and not is_given(extra[name]):
            # A column of a table that says something of other rows.
            del extra[name]
    for name, value in extra.items():
        check_extra(name, value)
        if type(value) is float:
            extra[name] = JsonNumber(repr(value))
    if CORRECTS in extra:
        extra[CORRECTS] = int(extra[CORRECTS])


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
    values = fields.values()
    return float in map(type, values) or (b"-0" in payload and 0 in values)


def _with_exact_numbers(fields: dict[str, Any], payload: bytes) -> dict[str, Any]:
    """Put the numbers' own text in their places, but for those of time and seq."""
    exact = exact_loads(payload, parse_float=str, parse_int=str)
    for name, value in fields.items():
        if name in ("price", "size") and type(value) in (float, int):
            fields[name] = exact[name]
        elif type(value) is float or (type(value) is int and exact[name] == "-0"):
            fields[name] = value if name in REQUIRED else JsonNumber(exact[name])
    return fields


def check_not_ahead(
    trade: Trade,
    stamp_us: int,
    max_ahead_us: int,
    cuts_us: tuple[int, int] | None = None,
) -> None:
    """Refuse a trade that is further than ``max_ahead_us`` after its entry's stamp.

    One stamp in the year 2099 would otherwise hold back its instrument for ever. The
    rule looks at the record, and at the two cuts it stands between if they are told, so
    a re-run decides the same. Where it is the entry that was stamped before the first
    cut, and the trade is not ahead of the second one, the stamp is wrong.
    Raises InvalidTrade.
    """
    if trade.time_us <= stamp_us + max_ahead_us:
        return
    ahead = f"more than {max_ahead_us // 1000} ms ahead of its entry's stamp"
    if cuts_us is not None:
        after_us, before_us = cuts_us
        if stamp_us < after_us and trade.time_us <= before_us + max_ahead_us:
            rule = (
                f"{ahead} ({stamp_us}), which is older than the window it came in "
                f"({after_us} on): whoever stamped it, with CreateTime the producer, "
                "has a wrong clock or unit"
            )
            raise InvalidTrade("old_stamp", "time", trade.time_us, rule)
    raise InvalidTrade("future_time", "time", trade.time_us, f"{ahead} ({stamp_us})")


_DECIMAL = f"{WHOLE_PATTERN}(?:{FRACTION_PATTERN})?"
_RULED = (*REQUIRED, *RESERVED, FIELD, CANCELS, CORRECTS)
_OTHER_NAME = rf"(?!(?:{'|'.join(_RULED)})\")[a-z0-9_]++"
_TEXT_OR_INTEGER = rf'(?:"[ !#-\[\]-~]*+"|0|-?{WHOLE_PATTERN})'
_WIRE_FORM = re.compile(
    rf'\{{"isin":"({ISIN_PATTERN})","time":([1-9][0-9]{{15}}),'
    rf'"seq":(0|{WHOLE_PATTERN}),"price":"{_DECIMAL}","size":"{_DECIMAL}"'
    rf'(?:,(?:"{_OTHER_NAME}":{_TEXT_OR_INTEGER}|{PATTERN}))*+\}}'.encode()
)


def read_wire(
    payload: bytes, max_bytes: int = MAX_PAYLOAD_BYTES
) -> tuple[str, int, int] | None:
    """Return ISIN, time (us) and seq of a trade that is surely valid, else None.

    The form in which nearly all are written is known at a glance, in a third of the
    time. Of any other ``Trade.from_wire`` has to be asked.
    """
    form = _WIRE_FORM.fullmatch(payload)
    if form is None or len(payload) > min(max_bytes, MAX_PAYLOAD_BYTES):
        return None
    isin, time_us, seq = form[1].decode(), int(form[2]), int(form[3])
    if time_us >= LATEST_TIME_US:
        return None
    try:
        return check_isin(isin), time_us, seq
    except InvalidTrade:
        return None
