"""Whether what a client says is what a transcript expects. Pure."""

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from conformance.client.transcript import Digits

SUMS = {"volume", "value", "high", "low", "open", "close", "vwap", "mean_change_pct"}
"""Decimals that are compared by their value; all others by their text."""


def differences(expected: Any, got: Any, where: str = "") -> Iterator[str]:
    """Yield what is not as expected: a sentence each.

    An object may have more fields, a list may not be longer. Null stands for what is
    null or not there. Numbers are compared by their text, sums by their value.
    """
    if expected is None:
        if got is not None:
            yield f"{where} is {_shown(got)}, must not be there"
    elif isinstance(expected, dict):
        if not isinstance(got, dict):
            yield f"{where} is {_shown(got)}, must be {_shown(expected)}"
            return
        for name, value in expected.items():
            inner = f"{where}.{name}" if where else name
            yield from differences(value, got.get(name), inner)
    elif isinstance(expected, list):
        if not isinstance(got, list) or len(got) != len(expected):
            yield f"{where} is {_shown(got)}, must be {_shown(expected)}"
            return
        for at, (value, one) in enumerate(zip(expected, got, strict=True)):
            yield from differences(value, one, f"{where}[{at}]")
    elif not _is_same(expected, got, where.rpartition(".")[2]):
        yield f"{where} is {_shown(got)}, must be {_shown(expected)}"


def _is_same(expected: Any, got: Any, name: str) -> bool:
    if isinstance(expected, bool) or isinstance(got, bool | dict | list):
        return bool(expected is got)
    if got is None:
        return False
    if name in SUMS:
        try:
            return Decimal(str(expected)) == Decimal(str(got))
        except InvalidOperation:
            return False
    return str(expected) == str(got)


def _shown(value: Any) -> str:
    if value is None:
        return "not there"
    return str(value) if isinstance(value, Digits) else f"{value!r:.160}"
