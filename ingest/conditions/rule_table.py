"""What the sale conditions of a market say a trade counts for: one table. Pure.

A table is CSV with the columns ``code``, ``last``, ``range`` and ``volume``, and
``plan`` where the same code means different things on two tapes; other columns are for
people. The code ``*`` stands for all that are not listed. Lines that begin with ``#``
are comments, but for ``#time-zone: America/New_York``, the clock by which a day begins;
without it a day is one of UTC.
"""

import csv
from collections.abc import Iterable, Mapping
from datetime import UTC, tzinfo
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ingest.records.leave_out import codes_in

OTHER = "*"
"""The code of all that are not listed."""

TAPES = {"A": "CTA", "B": "CTA", "1": "CTA", "2": "CTA", "C": "UTP", "3": "UTP"}
"""The plans of US tapes, as letters and as the numbers that some vendors write."""

_TIME_ZONE = "#time-zone:"
_NEEDED = ("code", "last", "range", "volume")
_MOST_ROWS = 10_000
# A list that was written as text, as in `['@', 'T']` or `[12, 37]`.
_LIST_MARKS = str.maketrans("[]'\"", "    ")


class Last(IntEnum):
    """Whether a trade sets the last price; of several codes the least holds."""

    NO = 0
    FIRST_ONLY = 1
    """Only if no other trade of the instrument's day has set it."""
    OWN_MARKET = 2
    """As that, or if its market is the one that has set it last."""
    YES = 3


class ConditionRule(NamedTuple):
    """What the conditions of a trade allow. ``unknown`` are those in no table."""

    last: Last
    range: bool
    volume: bool
    unknown: tuple[str, ...] = ()

    def both(self, other: "ConditionRule") -> "ConditionRule":
        """Return the least that the two allow."""
        return ConditionRule(
            min(self.last, other.last),
            self.range and other.range,
            self.volume and other.volume,
            (*self.unknown, *other.unknown),
        )


_NO_CONDITION = ConditionRule(Last.YES, True, True)


def _unknown(code: str) -> ConditionRule:
    """Return the rule of a code in no table: in doubt it moves no price."""
    return ConditionRule(Last.NO, False, True, (code,))


class BadTable(ValueError):
    """A table that cannot be used; says which, and the rule."""


class RuleTable:
    """The rules of one market, by plan and code."""

    def __init__(
        self,
        name: str,
        rules: Mapping[tuple[str, str], ConditionRule],
        time_zone: tzinfo = UTC,
    ) -> None:
        """``rules`` are by plan and code; the plan is empty where there is none."""
        self.name = name
        self.rules = rules
        self.time_zone = time_zone
        self.plans = frozenset(plan for plan, _ in rules if plan)
        """Empty if a code means the same everywhere."""
        self._is_by_letter = all(len(code) == 1 for _, code in rules)
        needing = (Last.FIRST_ONLY, Last.OWN_MARKET)
        self.needs_memory = any(rule.last in needing for rule in rules.values())
        """Whether a rule depends on the trades before."""
        self._rule_of = lru_cache(maxsize=4_096)(self._look_up)

    def plan_of(self, tape: Any) -> str | None:
        """Return the plan that a tape's name stands for; None if it is none of them."""
        if not self.plans:
            return ""
        text = str(tape).strip().removesuffix(".0")
        plan = text if text in self.plans else TAPES.get(text, "")
        return plan if plan in self.plans else None

    @property
    def tape_rule(self) -> str:
        """What a tape must be, in words."""
        tapes = (tape for tape, plan in TAPES.items() if plan in self.plans)
        names = ", ".join(sorted({*self.plans, *tapes}))
        return f"must be a tape of the table {self.name}: one of {names}"

    def rule_of(self, codes: Any, tape: Any = "") -> ConditionRule:
        """Return what a trade's codes allow, all together.

        ``codes`` are a list, or text with blanks, commas or the like between them.
        Without any a trade counts for everything, with an unknown code or tape for its
        volume alone.
        """
        text = codes if type(codes) is str else " ".join(codes_in(codes))
        return self._rule_of(text, self.plan_of(tape))

    def _look_up(self, codes: str, plan: str | None) -> ConditionRule:
        rule = _NO_CONDITION
        for code in codes_in(codes.translate(_LIST_MARKS)):
            if plan is None:
                return _unknown(f"{code} of no known tape")
            for single in self._split(code):
                rule = rule.both(self._of(single, plan))
        return rule

    def _of(self, code: str, plan: str) -> ConditionRule:
        for key in ((plan, code), ("", code), (plan, OTHER), ("", OTHER)):
            if key in self.rules:
                return self.rules[key]
        return _unknown(code)

    def _split(self, text: str) -> Iterable[str]:
        """Return the codes of a text without separators, as in TAQ's ``@FTI``.

        A number is one code, and a whole one may be written as ``12.0``.
        """
        whole = text.removesuffix(".0")
        return [whole] if whole.isdigit() or not self._is_by_letter else text


def parse_table(name: str, text: str) -> RuleTable:
    """Read a table. Raises BadTable."""
    lines = enumerate(text.splitlines(), 1)
    rows = [(n, line) for n, line in lines if line.strip() and line[:1] != "#"]
    cells = list(csv.reader(line for _, line in rows))
    if len(rows) > _MOST_ROWS or len(cells) != len(rows):
        raise BadTable(f"has over {_MOST_ROWS} rows, or a line break in a value")
    header = [cell.strip() for cell in cells[0]] if cells else []
    for column in _NEEDED:
        if column not in header:
            raise BadTable(
                f"its header has no column {column!r}; a table needs "
                f"{', '.join(_NEEDED)}, and plan where tapes differ"
            )
    rules: dict[tuple[str, str], ConditionRule] = {}
    for (number, _), row in zip(rows[1:], cells[1:], strict=True):
        values = dict(zip(header, map(str.strip, row), strict=False))
        try:
            key, rule = _read_row(values)
            if key in rules:
                raise BadTable(f"code {key[1]!r}: is there twice")
        except BadTable as error:
            raise BadTable(f"line {number}: {error}") from None
        rules[key] = rule
    if not rules:
        raise BadTable("has no rules")
    return RuleTable(name, rules, _time_zone(text))


def _read_row(values: Mapping[str, str]) -> tuple[tuple[str, str], ConditionRule]:
    code = values.get("code", "")
    if not code or (code != OTHER and codes_in(code) != [code]):
        raise BadTable(f"code {code!r}: must be a code, without blanks or separators")
    last = values.get("last", "").upper()
    if last not in Last.__members__:
        allowed = ", ".join(name.lower() for name in Last.__members__)
        raise BadTable(f"last {values.get('last', '')!r}: must be one of {allowed}")
    rule = ConditionRule(Last[last], _yes(values, "range"), _yes(values, "volume"))
    return (values.get("plan", ""), code), rule


def _yes(values: Mapping[str, str], column: str) -> bool:
    value = values.get(column, "").lower()
    if value not in ("yes", "no"):
        raise BadTable(f"{column} {value!r}: must be yes or no")
    return value == "yes"


def _time_zone(text: str) -> tzinfo:
    for line in text.splitlines():
        if line.startswith(_TIME_ZONE):
            zone = line.removeprefix(_TIME_ZONE).strip()
            try:
                return ZoneInfo(zone)
            except (ZoneInfoNotFoundError, ValueError, OSError):
                rule = "must be a time zone such as America/New_York"
                raise BadTable(f"time-zone {zone!r}: {rule}") from None
    return UTC
