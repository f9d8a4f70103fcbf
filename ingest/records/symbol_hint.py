"""What a symbol that is not on the instrument list may be meant as. Pure."""

import re
from collections.abc import Callable, Iterator

_CODE_DIGITS = 6
_WITH_LETTER = re.compile(r"[A-Z]([0-9A-Z]{6})", re.ASCII)


def hint_of(symbol: str, is_listed: Callable[[str], bool]) -> str:
    """Return the code of the list that a symbol looks like, in words; or no text."""
    for code, what in _guesses(symbol):
        if code != symbol and is_listed(code):
            return f"; {what}: {code!r} is on the list"
    return ""


def _guesses(symbol: str) -> Iterator[tuple[str, str]]:
    if symbol.isascii() and symbol.isdigit():
        yield symbol.zfill(_CODE_DIGITS), "it looks like a code without its zeros"
    if form := _WITH_LETTER.fullmatch(symbol):
        yield form[1], "it looks like a code with a letter in front"
    for separator in ".:/ ":
        before, _, after = symbol.partition(separator)
        yield before, "it looks like a code with its market"
        yield after, "it looks like a code with its market"
    yield symbol.upper(), "it has small letters"
    yield symbol.lower(), "it has capitals"
    yield re.sub(r"[-_./\s]", "", symbol), "it has a separator"
