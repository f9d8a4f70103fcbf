"""Numbers as others write them, turned into the plain decimals of a trade. Pure."""

import re
from typing import Any

from tickthrottle_client.trade_v1 import InvalidTrade, JsonNumber

MAX_CHARS = 64
"""Longest text that is looked at."""

PLACES = 18
"""Most digits before the point, and most after it."""

_NOTATION = re.compile(
    r"\+?(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?:[eE](?P<exponent>[+-]?[0-9]{1,4}))?",
    re.ASCII,
)
_EXPONENT = re.compile(r"[0-9.]{1,40}[eE][+-]?[0-9]{1,4}", re.ASCII)
_PLAIN = re.compile(r"(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?", re.ASCII)


def plain_decimal(text: str) -> str:
    """Return a number without a sign, as JSON or Python writes it, as plain decimal.

    What is plain already stays, digit for digit: ``1.50`` is ``1.50``. Otherwise
    exponents are carried out and missing zeros added: ``6E-8`` is ``0.00000006``. No
    digit is lost or made up. Raises ValueError, with the rule, for
    anything else, and for over 18 digits before or after the point.
    """
    if _PLAIN.fullmatch(text):
        return text
    form = _NOTATION.fullmatch(text) if len(text) <= MAX_CHARS else None
    if form is None or not (form["whole"] or form["fraction"]):
        raise ValueError("must be a decimal above zero, such as 71900, 0.5 or 6E-8")
    digits = form["whole"] + (form["fraction"] or "")
    # Where the point stands among the digits.
    point = len(form["whole"]) + int(form["exponent"] or 0)
    if not digits.strip("0"):
        # Zero is zero, however it is written; a trade refuses it by its own rule.
        return "0"
    leading = len(digits) - len(digits.lstrip("0"))
    if point - leading > PLACES or len(digits.rstrip("0")) - point > PLACES:
        raise ValueError(
            f"must have at most {PLACES} digits before and after the point"
        )
    if point <= 0:
        whole, fraction = "0", "0" * -point + digits
    else:
        whole = digits[:point].ljust(point, "0").lstrip("0") or "0"
        fraction = digits[point:]
    # Beyond are only zeros: what counts was looked at above.
    fraction = fraction[:PLACES]
    return f"{whole}.{fraction}" if fraction else whole


def decimal_of(name: str, value: Any) -> Any:
    """Return a price or size as plain decimal text. Raises InvalidTrade.

    What is neither text nor a number stays as it is, for the trade's own rule.
    """
    if type(value) is str and _PLAIN.fullmatch(value):
        return value
    text = value.text if type(value) is JsonNumber else value
    if type(text) is int and text < 0:
        text = str(text)
    if type(text) is not str or not text or text.isspace():
        return value
    try:
        return plain_decimal(text.strip())
    except ValueError as error:
        shown = value if type(value) is int else text
        raise InvalidTrade(f"bad_{name}", name, shown, str(error)) from None


def whole_number(value: Any) -> Any:
    """Return a number without its empty fraction or its exponent, as text.

    ``2.0`` is 2, ``1.79e15`` is 1790000000000000. What is not a whole number stays as
    it is, for the trade's own rule.
    """
    text = value.text if type(value) is JsonNumber else value
    if type(text) is not str or (text.isdigit() and text[0] != "0"):
        return text
    text = text.strip()
    try:
        whole, _, fraction = plain_decimal(text).partition(".")
    except ValueError:
        return text
    return text if fraction.strip("0") else whole


def plain_time(text: str) -> str:
    """Return a time that is a number without its exponent; any other as it is."""
    if not _EXPONENT.fullmatch(text):
        return text
    try:
        return plain_decimal(text)
    except ValueError:
        return text
