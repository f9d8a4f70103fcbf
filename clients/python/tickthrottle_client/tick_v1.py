"""What both ends of tick.v1 agree on: its name, its keys, how it may end. Pure."""

from decimal import Decimal
from enum import IntEnum
from typing import Any

PROTOCOL = "tick.v1"

ALL = "*"
"""The key of a client that wants every instrument, also those yet to come."""

GROUP = "group:"
"""What the keys begin with that stand for a group: the figures of a market or sector,
window by window. The market's or sector's own key follows."""

ALL_GROUPS = "group:*"
"""The key of a client that wants every group, also those yet to come."""


def is_instrument(key: str) -> bool:
    """Say whether a key is no series, as ``KR7005930003@NXT`` is; ``*`` has none."""
    return "@" not in key


def is_group(key: str) -> bool:
    """Say whether a key stands for figures of groups, and not for instruments."""
    return key.startswith(GROUP)


BARS = "bars:"
"""What the keys of bars begin with: ``bars:1m:KR7005930003``, ``bars:1d:*``."""


TRADES = "trades:"
"""What the keys begin with that ask for every trade: ``trades:KR7005930003``."""


class CloseCode(IntEnum):
    """Why a connection ended. 4000-4499: come back; 4500-4999: do not."""

    GOODBYE = 1000
    UNSUPPORTED = 1003  # a binary frame
    INVALID_TEXT = 1007  # not UTF-8
    POLICY = 1008
    TOO_LARGE = 1009
    INTERNAL = 1011  # a fault of the gateway, or no answer to a ping
    RESTART = 1012
    OVERLOADED = 1013
    TOKEN_EXPIRED = 4401
    SLOW = 4408
    TOO_MANY_MESSAGES = 4429
    BAD_MESSAGES = 4500
    TOKEN_REFUSED = 4501


_MOST_PLACES = 64


def read_decimal(value: Any) -> Decimal:
    """Return a number of a message with every digit.

    Raises ValueError, TypeError or ArithmeticError for what no gateway sends: text,
    NaN, or a number that would be endless when it is written out.
    """
    number = Decimal(value)
    if not number.is_finite() or abs(number.adjusted()) > _MOST_PLACES:
        raise ValueError(f"{value!r:.40} is no number of a message")
    return number


_FINAL_CODES = {
    CloseCode.GOODBYE,
    CloseCode.UNSUPPORTED,
    CloseCode.INVALID_TEXT,
    CloseCode.POLICY,
    CloseCode.TOO_LARGE,
}


def is_final(code: int) -> bool:
    """Say whether a close code means not to come back."""
    return code in _FINAL_CODES or 4_500 <= code < 5_000
