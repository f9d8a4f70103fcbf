"""Which records of a source are left out, by a condition on one of their fields. Pure.

| written | leaves out a record whose field |
| --- | --- |
| ``correction=8|10`` | is one of these texts |
| ``conditions~T|U`` | has one of these codes: in a list, or in text that is parted by
blanks, commas, semicolons, slashes or bars |
| ``sale~~TU`` | has one of these characters, wherever it stands |
| ``cancels`` | says anything but zero and false |
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ingest.trade import InvalidTrade, JsonNumber

_FORM = re.compile(
    r"(?P<field>[^=~\s][^=~]{0,99})(?:(?P<operator>=|~~|~)(?P<values>.{1,300}))?"
)
_SEPARATORS = re.compile(r"[\s,;/|]+")


class LeftOut(InvalidTrade):
    """A record that is left out on purpose; ``condition`` is the one that it meets."""

    def __init__(self, condition: str) -> None:
        super().__init__("left_out", "trade", condition, "is left out")
        self.condition = condition


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a field; ``text`` is how it was written, and its name."""

    text: str
    path: tuple[str, ...]
    operator: str
    values: frozenset[str]

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Read a condition. Raises ValueError."""
        form = _FORM.fullmatch(text.strip())
        if form is None:
            raise ValueError(
                f"{text[:40]!r}: must be like correction=8, conditions~T|U, sale~~TU "
                "or cancels"
            )
        written = form["values"] or ""
        values = written if form["operator"] == "~~" else written.split("|")
        path = tuple(form["field"].rstrip().split("."))
        return cls(form[0], path, form["operator"] or "", frozenset(values))

    def __str__(self) -> str:
        return self.text

    def renamed(self, fields: Mapping[str, str]) -> "Condition":
        """Return the same about a field that is called otherwise now, if it is."""
        field = fields.get(".".join(self.path))
        return self if field is None else replace(self, path=(field,))

    def is_met_by(self, fields: Mapping[str, Any]) -> bool:
        """Tell whether a record meets it; one without the field never does."""
        value = value_at(fields, self.path)
        if value is None:
            return False
        if self.operator == "=":
            return _text(value) in self.values
        if self.operator == "~":
            return not self.values.isdisjoint(codes_in(value))
        if self.operator == "~~":
            return not self.values.isdisjoint("".join(codes_in(value)))
        return any(code.strip("0.+-") not in ("", "false") for code in codes_in(value))


def value_at(fields: Mapping[str, Any], path: Sequence[str]) -> Any:
    """Return what lies at a path; a name with points in it is looked up whole, too."""
    if len(path) == 1:
        return fields.get(path[0])
    whole = ".".join(path)
    if whole in fields:
        return fields[whole]
    value: Any = fields
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def codes_in(value: Any) -> list[str]:
    """Return the codes of a list, or of text that has separators between them."""
    if isinstance(value, list):
        return [_text(code) for code in value]
    return [code for code in _SEPARATORS.split(_text(value)) if code]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return ""
    return value.text if isinstance(value, JsonNumber) else str(value).strip()
