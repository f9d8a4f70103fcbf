"""How rows that came compare with those that had to. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Version: TypeAlias = tuple[int, int]
"""A trade's time (us since 1970) and seq: the order of an instrument's trades."""

Rows: TypeAlias = dict[int, dict[str, Version]]
"""By window, named by its end in ms, and by ISIN: the trade that stands for it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How rows that came compare with those that had to.

    Of ``expected`` rows ``missing`` did not come, ``wrong`` came with another trade
    than the window's newest. ``backwards`` came although a newer trade of their
    instrument had been shown in an earlier window. A row that is kept back for that
    reason is not missing.
    """

    expected: int
    missing: int
    wrong: int
    backwards: int

    def cells(self) -> dict[str, str]:
        """Return it as columns of a table."""
        return {
            "rows compared": f"{self.expected:,}",
            "missing": f"{self.missing:,}",
            "wrong": f"{self.wrong:,}",
            "backwards": f"{self.backwards:,}",
        }


def compare(
    expected: Mapping[int, Mapping[str, Version]],
    came: Mapping[int, Mapping[str, Version]],
) -> Verdict:
    """Compare the rows of the expected windows; a row nobody expected is wrong."""
    missing = wrong = backwards = 0
    shown: dict[str, Version] = {}
    for end_ms in sorted(expected):
        must, rows = expected[end_ms], came.get(end_ms, {})
        for isin in must.keys() | rows.keys():
            newest, row, last = must.get(isin), rows.get(isin), shown.get(isin)
            if row is None:
                missing += newest is not None and (last is None or last < newest)
                continue
            wrong += row != newest
            if last is not None and row < last:
                backwards += 1
            else:
                shown[isin] = row
    return Verdict(sum(map(len, expected.values())), missing, wrong, backwards)
