"""Numbers with marks between their thousands, or a decimal comma. Pure."""

import re
from collections.abc import Callable
from functools import cache

_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " "})


@cache
def number_cleaner(thousands: str, decimal_mark: str) -> Callable[[str], str] | None:
    """Return what writes a number with plain digits and a point; None: nothing does.

    Text without any of the marks stays as it is. Others that are not written with them,
    as ``71,9`` with commas between thousands, raise ValueError with the rule.
    """
    if not thousands and decimal_mark == ".":
        return None
    mark = re.escape(thousands)
    # The last group has three digits; those before it two in India, three elsewhere.
    grouped = rf"[0-9]{{1,3}}(?:{mark}[0-9]{{2,3}})*{mark}[0-9]{{3}}"
    whole = rf"(?:{grouped}|[0-9]+)" if thousands else "[0-9]+"
    form = re.compile(
        rf"([+-]?)({whole})(?:{re.escape(decimal_mark)}([0-9]+))?", re.ASCII
    )

    def clean(text: str) -> str:
        parts = form.fullmatch(text.translate(_SPACES) if thousands == " " else text)
        if parts is None:
            if thousands and thousands in text:
                raise ValueError(f"has {thousands!r} elsewhere than between thousands")
            if decimal_mark == "," and "." in text:
                raise ValueError("has a point where the decimal mark is a comma")
            return text
        sign, digits, fraction = parts.groups()
        if thousands:
            digits = digits.replace(thousands, "")
        return f"{sign}{digits}" + (f".{fraction}" if fraction else "")

    return clean
