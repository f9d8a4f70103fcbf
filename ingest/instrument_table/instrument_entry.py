"""One instrument of the instrument table: its fields and the rule of each. Pure."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property

import orjson

from ingest.trade import InvalidTrade, check_isin

MAX_CHARS = 200
"""Longest text of a field."""

HALTED = "halted"
"""The ``status`` of an instrument that is not traded for now. Others mean what their
market says."""

# Shorter than an ISIN, so that nothing is both; without what a list in an address uses.
_CODE_FORM = re.compile(r"[0-9A-Za-z._-]{1,11}", re.ASCII)
# The decimals that are also JSON numbers: the text leaves as it came.
_PRICE_FORM = re.compile(r"(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?", re.ASCII)
_CURRENCY_FORM = re.compile(r"[A-Z][A-Z0-9]{1,9}", re.ASCII)
_SHARES_FORM = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_STATUS_FORM = re.compile(r"[a-z][a-z0-9_]{0,19}", re.ASCII)
# Control and format characters (marks of direction, joiners, tags), halves of pairs,
# ends of lines; and what looks like nothing though it is a letter, mark or symbol.
_UNSEEN_KINDS = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)


class BadInstruments(ValueError):
    """Instruments that break a rule; says which field, value and rule, and where."""


@dataclass(frozen=True)
class InstrumentEntry:
    """One instrument. None is what nobody has said.

    ``prev_close`` is decimal text, ``listed_shares`` a whole number as text;
    ``tick_table`` names the market's price steps, or is the one step there is.
    """

    isin: str
    code: str | None = None
    name: str | None = None
    market: str | None = None
    sector: str | None = None
    prev_close: str | None = None
    english_name: str | None = None
    currency: str | None = None
    listed_shares: str | None = None
    tick_table: str | None = None
    status: str | None = None

    def to_fields(self) -> dict[str, str]:
        """Return what is known, as text; ``read_entry`` gives back an equal one."""
        return {name: text for name, text in asdict(self).items() if text is not None}

    @cached_property
    def encoded(self) -> bytes:
        """The JSON object that clients get; numbers keep their text."""
        return self.encode(FIELDS)

    def encode(self, names: Iterable[str]) -> bytes:
        """Encode some fields as clients get them."""
        shown = {name: getattr(self, name) for name in names}
        for name in NUMBERS.intersection(shown):
            if shown[name] is not None:
                shown[name] = orjson.Fragment(shown[name])
        return orjson.dumps(shown)


FIELDS = tuple(field.name for field in fields(InstrumentEntry))
"""The fields of an instrument, in the order in which they are shown."""

NUMBERS = frozenset({"prev_close", "listed_shares"})
"""Those that are numbers."""


def is_code(text: str) -> bool:
    """Tell whether a text may be an instrument's code."""
    return _CODE_FORM.fullmatch(text) is not None


def visible(text: str) -> str:
    """Return a text without the characters that are not seen, or turn others around.

    They could make one instrument look like another.
    """
    if text.isascii() and text.isprintable():
        return text
    kept = (c for c in text if unicodedata.category(c) not in _UNSEEN_KINDS)
    return _UNSEEN.sub("", "".join(kept))


def read_entry(values: Mapping[str, str]) -> InstrumentEntry:
    """Check an instrument's fields. Raises BadInstruments: the field, value and rule.

    Text is taken without spaces around it, and empty text as what nobody has said.
    """
    texts = {name: values[name].strip() or None for name in FIELDS if name in values}
    for name, text in texts.items():
        if text is not None and (broken := _broken_rule(name, text)):
            raise BadInstruments(f"{name} {_shown(text)}: {broken}")
    try:
        isin = check_isin(texts.pop("isin", None) or "")
    except InvalidTrade as error:
        raise BadInstruments(str(error)) from None
    return InstrumentEntry(isin, **texts)


def _shown(text: str) -> str:
    shown = repr(text) if text.isprintable() else ascii(text)
    return shown if len(shown) <= 60 else f"{shown[:40]}...'"


def _broken_rule(name: str, text: str) -> str | None:
    if len(text) > MAX_CHARS:
        return f"has over {MAX_CHARS} characters"
    rule, is_kept = _RULES.get(name, _TEXT_RULE)
    return None if is_kept(text) else rule


_Rule = tuple[str, Callable[[str], object]]
_TEXT_RULE: _Rule = (
    "must have no control characters, nor others that are not seen",
    lambda text: visible(text) == text,
)
_RULES: dict[str, _Rule] = {
    # By check_isin, which knows the check digit.
    "isin": ("", lambda _: True),
    "code": ("must be 1 to 11 letters, digits, . _ or -", _CODE_FORM.fullmatch),
    "prev_close": (
        "must be a plain decimal above zero, or empty",
        lambda text: _PRICE_FORM.fullmatch(text) and text.strip("0."),
    ),
    "currency": (
        "must be 2 to 10 capital letters and digits, or empty",
        _CURRENCY_FORM.fullmatch,
    ),
    "listed_shares": (
        "must be a whole number above zero of at most 18 digits, or empty",
        _SHARES_FORM.fullmatch,
    ),
    "status": (
        "must be 1 to 20 small letters, digits and _, or empty",
        _STATUS_FORM.fullmatch,
    ),
}
