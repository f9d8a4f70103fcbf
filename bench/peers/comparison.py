"""How rows that came compare with those that had to. Pure."""

from collections.abc import Mapping
from typing import TypeAlias

Version: TypeAlias = tuple[int, int]
"""A trade's time (us since 1970) and seq: the order of an instrument's trades."""

Rows: TypeAlias = dict[int, dict[str, Version]]
"""By window, named by its end in ms, and by ISIN: the trade that stands for it."""


def compare(
    expected: Mapping[int, Mapping[str, Version]],
    came: Mapping[int, Mapping[str, Version]],
) -> dict[str, str]:
    """Return how rows that came compare with those that had to, as cells of a table.

    Of the rows compared, some are *missing*, some are *wrong*: another trade than the
    window's newest, or a row nobody expected. A row is *backwards* if a newer trade of
    its instrument was shown in an earlier window; one that is kept back for that reason
    is not missing, and one that says the newer trade again instead is not wrong.
    """
    missing = wrong = backwards = 0
    shown: dict[str, Version] = {}
    for end_ms in sorted(expected):
        must, rows = expected[end_ms], came.get(end_ms, {})
        for isin in must.keys() | rows.keys():
            newest, row, last = must.get(isin), rows.get(isin), shown.get(isin)
            if row is None:
                missing += newest is not None and (last is None or last < newest)
                continue
            is_restated = newest is not None and row == last and newest < row
            wrong += row != newest and not is_restated
            if last is not None and row < last:
                backwards += 1
            else:
                shown[isin] = row
    counts = {"rows compared": sum(map(len, expected.values())), "missing": missing}
    counts |= {"wrong": wrong, "backwards": backwards}
    return {name: f"{count:,}" for name, count in counts.items()}
