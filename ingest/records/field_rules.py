"""What the values of a record become: constants, signs, scales. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Context, Decimal
from typing import Any

from ingest.decimals import decimal_of, plain_decimal
from ingest.records.leave_out import Condition, LeftOut
from ingest.trade import InvalidTrade, JsonNumber

# Twice 36 digits, multiplied exactly.
_EXACT = Context(prec=72)

MARKED = frozenset({"price", "size", "seq"})
"""The numbers that may have marks between their thousands."""


class FieldRules:
    """What becomes of a record's values, whatever form it came in."""

    def __init__(
        self,
        *,
        constants: Mapping[str, str],
        conditions: Iterable[Condition],
        scale: Mapping[str, Decimal],
        unsigned: Iterable[str],
        names: Mapping[str, str],
        clean: Callable[[str], str] | None = None,
    ) -> None:
        """``names`` says what a field is called in the input, where they differ.

        A condition may call it by either name. ``clean`` takes the marks out of a
        number, and raises ValueError.
        """
        fields = {name: field for field, name in names.items()}
        self._constants = constants
        self._conditions = [c.renamed(fields) for c in conditions]
        self._scale = scale
        self._unsigned = tuple(unsigned)
        self._clean = clean
        changes = (self._constants, self._conditions, scale, self._unsigned, clean)
        self.are_none = not any(changes)
        self.fields_looked_at = [".".join(c.path) for c in self._conditions]
        """The fields that conditions are about, as a CSV header may have them."""

    def apply(self, fields: dict[str, Any]) -> None:
        """Add the constants, carry out signs and scales. Raises LeftOut, InvalidTrade.

        A record is left out before its values are looked at.
        """
        fields.update(self._constants)
        for condition in self._conditions:
            if condition.is_met_by(fields):
                raise LeftOut(condition.text)
        if self._clean is not None:
            for name in MARKED & fields.keys():
                fields[name] = _with_plain_digits(name, fields[name], self._clean)
        for name in self._unsigned:
            fields[name] = _without_sign(fields.get(name))
        for name, factor in self._scale.items():
            fields[name] = _scaled(name, fields.get(name), factor)


def _with_plain_digits(name: str, value: Any, clean: Callable[[str], str]) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return clean(value.strip())
    except ValueError as error:
        raise InvalidTrade(f"bad_{name}", name, value, str(error)) from None


def _without_sign(value: Any) -> Any:
    if type(value) is int:
        return abs(value)
    text = value.text if isinstance(value, JsonNumber) else value
    return re.sub(r"\A\s*[+-]", "", text) if isinstance(text, str) else value


def _scaled(name: str, value: Any, factor: Decimal) -> Any:
    text = str(value) if type(value) is int else decimal_of(name, value)
    if not isinstance(text, str) or not text:
        return value
    try:
        product = _EXACT.multiply(Decimal(plain_decimal(text)), factor)
        # Places that are there by the factor alone say nothing.
        whole, _, fraction = format(product, "f").partition(".")
        return plain_decimal(f"{whole}.{fraction.rstrip('0')}".rstrip("."))
    except ValueError as error:
        rule = f"times {factor.normalize()}: {error}"
        raise InvalidTrade(f"bad_{name}", name, text, rule) from None
