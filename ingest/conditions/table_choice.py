"""Options by which a source's sale conditions say what its trades count for."""

from dataclasses import dataclass
from itertools import zip_longest
from typing import Annotated

from pydantic import InstanceOf

from ingest.conditions.known_tables import find_table
from ingest.conditions.rule_table import RuleTable
from ingest.files.file_form import read_by

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
        """Read ``TABLE:CODES:TAPE:MARKET``, not all of it. Raises ValueError."""
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


ChoiceOption = Annotated[InstanceOf[TableChoice], read_by(TableChoice.parse)]
"""A choice, or its text."""

TableOption = Annotated[InstanceOf[RuleTable], read_by(find_table)]
"""A table, or its name."""
