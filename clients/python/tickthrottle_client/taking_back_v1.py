"""Entries that take a trade back, or put another in its place: the rules. Pure.

``cancels`` is the number (``seq``) of a trade of the same instrument that does not
stand any more. Such an entry is no trade: it has neither price nor size. A trade that
``corrects`` another one, which it names likewise, takes its place.
"""

from collections.abc import Mapping
from typing import Any

CANCELS = "cancels"
CORRECTS = "corrects"

REVISION = "revision"
"""What a row says once a trade that was shown was taken back: how often that was."""

_OF_A_TRADE = ("price", "size", CORRECTS, "updates")


def is_given(value: object) -> bool:
    """Tell whether a field has a value; empty text, as of a table's row, is none."""
    return value is not None and value != ""


def takes_back(fields: Mapping[str, Any]) -> bool:
    """Tell whether fields are those of an entry that cancels a trade."""
    return is_given(fields.get(CANCELS))


def too_much(fields: Mapping[str, Any]) -> str | None:
    """Return the name of a field that an entry with ``cancels`` may not have."""
    return next((n for n in _OF_A_TRADE if is_given(fields.get(n))), None)


RULE_ALONE = (
    f"an entry with {CANCELS} is no trade and has none of {', '.join(_OF_A_TRADE)}; a "
    f"trade that takes the place of another one names it in {CORRECTS}"
)
