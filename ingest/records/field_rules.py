"""What the values of a record become: constants, signs, scales. Pure."""

import re
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from typing import Any

from ingest.decimals import decimal_of, plain_decimal
from ingest.records.leave_out import Condition, LeftOut
from ingest.trade import InvalidTrade, JsonNumber

# Twice 36 digits, multiplied exactly.
_EXACT = Context(prec=72)


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
    ) -> None:
        """``names`` says what a field is called in the input, where they differ.

        A condition may call it by either name.
        """
        fields = {name: field for field, name in names.items()}
        self._constants = constants
        self._conditions = [c.renamed(fields) for c in conditions]
        self._scale = scale
        self._unsigned = tuple(unsigned)
        self.are_none = not (
            self._constants or self._conditions or self._scale or self._unsigned
        )

    @property
    def fields_looked_at(self) -> list[str]:
        """The fields that conditions are about, as a CSV header may have them."""
        return [".".join(condition.path) for condition in self._conditions]

    def apply(self, fields: dict[str, Any]) -> None:
        """Add the constants, carry out signs and scales. Raises LeftOut, InvalidTrade.

        A record is left out before its values are looked at.
        """
        fields.update(self._constants)
        for condition in self._conditions:
            if condition.is_met_by(fields):
                raise LeftOut(condition.text)
        for name in self._unsigned:
            fields[name] = _without_sign(fields.get(name))
        for name, factor in self._scale.items():
            fields[name] = _scaled(name, fields.get(name), factor)


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
