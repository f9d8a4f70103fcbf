"""Which segments of a day are merged, so that files stay few. Pure."""

from collections.abc import Sequence

from archive.contract.segment import Segment, in_runs

FAN_IN = 4
"""This many segments of about one size become one: each row is written anew some five
times in a day, and a day has a dozen segments at most.
"""


MOST_MERGED = 32
"""This many segments become one at a time: each has its files open meanwhile."""


def choose_merge(segments: Sequence[Segment], *, is_over: bool) -> list[Segment]:
    """Return segments of one day that shall become one, in their order; none at all.

    Of a day that ``is_over`` all that follow each other; where those are more than
    ``MOST_MERGED``, segments of about one size come first.
    """
    for run in in_runs(sorted(segments), Segment.is_followed_by):
        if is_over and 2 <= len(run) <= MOST_MERGED:
            return run
        for begin in range(len(run) - FAN_IN + 1):
            chosen = run[begin : begin + FAN_IN]
            if len({_tier(segment) for segment in chosen}) == 1:
                return chosen
        if is_over and len(run) > MOST_MERGED:
            return run[:MOST_MERGED]
    return []


def _tier(segment: Segment) -> int:
    tier, windows = 0, segment.windows
    while windows >= FAN_IN:
        tier, windows = tier + 1, windows // FAN_IN
    return tier
