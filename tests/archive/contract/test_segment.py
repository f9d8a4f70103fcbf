"""A segment's name says which windows it holds; gaps follow from the names."""

from datetime import date

import pytest

from archive.contract.archive_gap import find_gaps
from archive.contract.segment import (
    BadEpoch,
    Coverage,
    Segment,
    check_epoch,
    day_of,
    span_of,
)

NOON_MS = 1_774_008_000_000


def make_segment(
    first: int, last: int, epoch: str = "k3x9", published_ms: int | None = None
) -> Segment:
    published = NOON_MS + first * 2_000 if published_ms is None else published_ms
    ends = NOON_MS + first * 2_000, NOON_MS + last * 2_000
    return Segment(published, first, last, epoch, *ends)


def test_a_name_comes_back() -> None:
    segment = make_segment(3, 7)
    assert Segment.parse(segment.name) == segment
    assert segment.windows == 5


@pytest.mark.parametrize(
    "name",
    [
        "",
        "rows.parquet",
        "1_k3x9_7-3_1-2",
        "1_k3x9_3-7_2-1",
        "1_k/9_3-7_1-2",
        "1_a_3-7",
    ],
)
def test_another_name_is_no_segment(name: str) -> None:
    assert Segment.parse(name) is None


def test_an_epoch_that_no_file_can_have_is_refused() -> None:
    assert check_epoch("0a1b-2c") == "0a1b-2c"
    with pytest.raises(BadEpoch, match=r"'\.\./x': must be 1 to 64 letters"):
        check_epoch("../x")


@pytest.mark.parametrize(
    ("others", "left"),
    [
        ([], [(4, 9)]),
        ([(1, 3), (10, 12)], [(4, 9)]),
        ([(1, 5)], [(6, 9)]),
        ([(8, 20)], [(4, 7)]),
        ([(5, 6)], [(4, 4), (7, 9)]),
        ([(1, 20)], []),
        ([(4, 4), (6, 6), (8, 9)], [(5, 5), (7, 7)]),
    ],
)
def test_what_others_do_not_hold_is_left(
    others: list[tuple[int, int]], left: list[tuple[int, int]]
) -> None:
    """Those of another epoch hold nothing of it."""
    segments = [make_segment(*other) for other in others]
    segments.append(make_segment(1, 99, "next"))
    pieces = make_segment(4, 9).without(segments)
    assert [(piece.first, piece.last) for piece in pieces] == left


def test_a_leap_second_is_of_the_day_that_the_clock_says() -> None:
    """Milliseconds since 1970 have none: the second after 23:59:59 is midnight."""
    leap_ms = 1_483_228_800_000
    assert day_of(leap_ms) == date(2016, 12, 31)
    assert day_of(leap_ms + 1) == date(2017, 1, 1)


def test_a_window_that_ends_at_midnight_is_of_the_day_before() -> None:
    day = date(2026, 3, 20)
    first_ms, last_ms = span_of(day)
    assert (day_of(first_ms), day_of(last_ms)) == (day, day)
    assert day_of(last_ms + 1) == date(2026, 3, 21)
    assert day_of(first_ms - 1) == date(2026, 3, 19)


def test_what_is_stored_is_known_by_epoch() -> None:
    coverage = Coverage([make_segment(4, 6), make_segment(1, 3), make_segment(9, 9)])
    coverage.add("next", 10, 12)
    assert [o for o in range(14) if coverage.has("k3x9", o)] == [1, 2, 3, 4, 5, 6, 9]
    assert [o for o in range(14) if coverage.has("next", o)] == [10, 11, 12]
    assert dict(coverage.ends()) == {"k3x9": 9, "next": 12}
    assert not coverage.has("other", 1)


@pytest.mark.parametrize(
    ("segments", "gaps"),
    [
        ([], []),
        ([make_segment(1, 3), make_segment(4, 6)], []),
        ([make_segment(5, 6)], [("before", 4)]),
        ([make_segment(1, 3), make_segment(6, 7)], [("trimmed", 2)]),
        ([make_segment(1, 3), make_segment(4, 7, "next")], []),
        ([make_segment(1, 3), make_segment(7, 8, "next")], [("epoch", 3)]),
        (
            [make_segment(1, 9), make_segment(6, 8, "next", NOON_MS + 99_000)],
            [("taken_back", 4)],
        ),
        (
            [make_segment(1, 9), make_segment(1, 2, "next", NOON_MS + 99_000)],
            [("epoch", None)],
        ),
    ],
)
def test_every_gap_has_a_name(
    segments: list[Segment], gaps: list[tuple[str, int | None]]
) -> None:
    found = find_gaps(reversed(segments))
    assert [(gap.kind, gap.windows) for gap in found] == gaps
    assert all(gap.text and gap.epoch in gap.text for gap in found)


def test_of_bars_the_oldest_day_may_have_holes() -> None:
    """What was amended of a day that is gone; after that day a hole is a loss."""
    # Two seconds each: the next day begins some 21,600 later.
    late = 40_000
    segments = [
        *(make_segment(5, 6), make_segment(8, 9)),
        *(make_segment(late, late + 1), make_segment(late + 3, late + 3)),
    ]
    of_bars = find_gaps(segments, "bars")
    assert [gap.kind for gap in of_bars] == ["before", "before", "before", "trimmed"]
    assert all("batches of bars" in gap.text for gap in of_bars)
    of_windows = find_gaps(segments)
    assert [gap.kind for gap in of_windows] == ["before", *["trimmed"] * 3]
    # An archive that has all from the first on has lost what it lacks.
    whole = [make_segment(1, 6), make_segment(8, 9)]
    assert [gap.kind for gap in find_gaps(whole, "bars")] == ["trimmed"]
