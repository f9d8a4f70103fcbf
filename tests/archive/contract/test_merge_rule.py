"""Segments of one size become one; a past day becomes one piece."""

from archive.contract.merge_rule import FAN_IN, MOST_MERGED, choose_merge
from archive.contract.segment import Segment
from tests.archive.contract.test_segment import make_segment


def run_of(*sizes: int, first: int = 1, epoch: str = "k3x9") -> list[Segment]:
    segments = []
    for size in sizes:
        segments.append(make_segment(first, first + size - 1, epoch))
        first += size
    return segments


def test_segments_of_one_size_that_follow_each_other_become_one() -> None:
    segments = run_of(120, 30, 30, 30, 30)
    assert choose_merge(segments, is_over=False) == segments[1:]
    assert choose_merge(segments[:-1], is_over=False) == []


def test_what_does_not_follow_is_not_merged() -> None:
    """Neither over a gap nor from one epoch to the next."""
    gap = [*run_of(30, 30), *run_of(30, 30, first=99)]
    assert choose_merge(gap, is_over=False) == []
    epochs = [*run_of(30, 30), *run_of(30, 30, first=61, epoch="next")]
    assert choose_merge(epochs, is_over=False) == []
    assert choose_merge(epochs, is_over=True) == epochs[:2]


def test_a_day_that_is_over_becomes_one() -> None:
    segments = run_of(480, 120, 30, 2)
    assert choose_merge(segments, is_over=True) == segments
    assert choose_merge(segments[:1], is_over=True) == []


def test_a_day_that_was_never_merged_becomes_one_in_steps() -> None:
    """A few files are open at a time, and each row is written a few times."""
    segments = run_of(*([30] * 700), 7, *([120] * 40))
    windows, written = sum(segment.windows for segment in segments), 0
    while chosen := choose_merge(segments, is_over=True):
        assert len(chosen) <= MOST_MERGED
        merged = chosen[0]
        for later in chosen[1:]:
            merged = merged.join(later)
        written += merged.windows
        segments = sorted([*(s for s in segments if s not in chosen), merged])
    assert [segment.windows for segment in segments] == [windows]
    assert written <= 8 * windows


def test_a_day_has_few_segments_and_rows_are_written_few_times() -> None:
    segments: list[Segment] = []
    written = 0
    for flush in range(390):
        segments.append(make_segment(flush * 30 + 1, flush * 30 + 30))
        while chosen := choose_merge(segments, is_over=False):
            merged = chosen[0]
            for later in chosen[1:]:
                merged = merged.join(later)
            written += merged.windows
            segments = [s for s in segments if s not in chosen] + [merged]
        assert len(segments) <= 16
    assert written <= 390 * 30 * (FAN_IN + 1)
    assert sum(segment.windows for segment in segments) == 390 * 30
