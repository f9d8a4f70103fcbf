"""Trends: which minutes are told, and how they are written."""

import json

import pytest

from gateway.rest.minute_closes import (
    MOST_CLOSES,
    STEP_MS,
    newest_minutes,
    trend_objects,
    trends_object,
)

M = STEP_MS


@pytest.mark.parametrize(
    ("since_ms", "upto_ms", "ends"),
    [
        (None, 0, []),
        (None, 10 * M, []),
        (2_000, 2_000, []),
        (2_000, 2 * M - 1, []),
        (2_000, 2 * M, [2 * M]),
        (2_000, 3 * M + 59_999, [2 * M, 3 * M]),
        (M, 2 * M, [2 * M]),
        (M + 1, 2 * M, []),
        (2_000, 100 * M, [n * M for n in range(71, 101)]),
    ],
)
def test_only_whole_minutes_are_told(
    since_ms: int | None, upto_ms: int, ends: list[int]
) -> None:
    """The newest half hour of them, and none whose first windows may be forgotten."""
    first, last = newest_minutes(since_ms, upto_ms)
    assert list(range(first, last + 1, M)) == ends
    assert len(ends) <= MOST_CLOSES


def test_a_trend_ends_with_the_last_minute() -> None:
    """It begins with its first close; whoever has none is left out; text stays."""
    minutes = [{"A": b"1.50"}, {"B": b"7"}, {"A": b"1.60"}, {"B": b"8.0"}]
    bodies = list(trend_objects(iter(["A", "B", "C"]), minutes))
    assert bodies == [
        b'{"isin":"A","closes":[1.50,null,1.60,null]}',
        b'{"isin":"B","closes":[7,null,8.0]}',
    ]
    answer = json.loads(trends_object(4 * M, bodies, 3))
    assert (answer["end"], answer["step"]) == (4 * M, M)
    assert (answer["count"], answer["left_out"], len(answer["data"])) == (2, 3, 2)
    assert json.loads(trends_object(None, (), 0))["end"] is None
