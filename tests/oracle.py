"""What must have been published, computed from the trade log in plain Python."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from tests.logged import Logged

Item = tuple[int, int, str, str, int]


def by_append_time(window_ms: int) -> Callable[[Logged], int]:
    """Return the rule that puts an entry into the window in which it was appended."""
    return lambda entry: (entry.append_ms // window_ms + 1) * window_ms


def expected_windows(
    entries: Iterable[Logged],
    upto_ms: int,
    window_ms: int = 2_000,
    window_of: Callable[[Logged], int] | None = None,
) -> dict[int, dict[str, Item]]:
    """Return {window end: {isin: (time, seq, price, size, trades)}} up to a window.

    ``entries`` are valid trades. ``window_of`` says by its end in which window an entry
    is, unless the time of its append does.
    """
    window_of = window_of or by_append_time(window_ms)
    windows: dict[int, dict[str, list[Any]]] = {}
    for entry in entries:
        trade = json.loads(entry.payload)
        order = (trade["time"], trade["seq"], entry.position, entry.partition)
        best = windows.setdefault(window_of(entry), {}).setdefault(
            trade["isin"], [None, 0]
        )
        best[1] += 1
        if best[0] is None or order > best[0][0]:
            best[0] = (order, trade["price"], trade["size"])
    published: dict[str, tuple[int, ...]] = {}
    expected: dict[int, dict[str, Item]] = {}
    for end in range(min(windows), upto_ms + 1, window_ms):
        expected[end] = {}
        for isin, (latest, trades) in windows.get(end, {}).items():
            order, price, size = latest
            if order[:3] > published.get(isin, ()):
                published[isin] = order[:3]
                expected[end][isin] = (*order[:2], price, size, trades)
    return expected
