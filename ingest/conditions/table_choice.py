"""The option that has a source's sale conditions say what its trades count for."""

from dataclasses import dataclass
from itertools import zip_longest
from typing import Annotated

from pydantic import BeforeValidator, InstanceOf

from ingest.conditions.known_tables import find_table
from ingest.conditions.rule_table import RuleTable

_FIELDS = ("conditions", "tape", "exchange")


@dataclass(frozen=True, slots=True)
class TableChoice:
    """A table, and the fields that hold a trade's codes, its tape and its market."""

    text: str
    table: RuleTable
    codes: str
    tape: str
    market: str
    names_market: bool
    """Whether the market's field was named, and so has to be there."""

    @classmethod
    def parse(cls, text: str) -> "TableChoice":
        """Read ``TABLE:CODES:TAPE:MARKET``; the last ones may be left out.

        Raises ValueError.
        """
        table, *names = (part.strip() for part in text.split(":"))
        if not table or len(names) > len(_FIELDS):
            raise ValueError(
                f"{text[:80]!r}: must be a table and the fields of codes, tape and "
                "market, such as us_equities:conditions:tape"
            )
        pairs = zip_longest(names, _FIELDS, fillvalue="")
        codes, tape, market = (name or usual for name, usual in pairs)
        return cls(text, find_table(table), codes, tape, market, len(names) > 2)

    def __str__(self) -> str:
        return self.text


def _parse_choice(value: object) -> object:
    return TableChoice.parse(value) if isinstance(value, str) else value


def _find(value: object) -> object:
    return find_table(value) if isinstance(value, str) else value


ChoiceOption = Annotated[InstanceOf[TableChoice], BeforeValidator(_parse_choice)]
"""A choice, or its text."""

TableOption = Annotated[InstanceOf[RuleTable], BeforeValidator(_find)]
"""A table, or its name."""
