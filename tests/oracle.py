"""What must have been published, computed from the trade log in plain Python."""

import json
from typing import Any

import redis

Item = tuple[int, int, str, str, int]


def expected_windows(
    client: redis.Redis, upto_ms: int, window_ms: int = 2_000, namespace: str = "tt"
) -> dict[int, dict[str, Item]]:
    """Return {window end: {isin: (time, seq, price, size, trades)}} up to a window."""
    windows: dict[int, dict[str, list[Any]]] = {}
    for key in client.scan_iter(f"{namespace}:log:*", _type="stream"):
        for entry_id, fields in client.xrange(key):
            ms, n = map(int, entry_id.split(b"-"))
            trade = json.loads(fields[b"trade"])
            version = (trade["time"], trade["seq"], ms, n)
            end = (ms // window_ms + 1) * window_ms
            best = windows.setdefault(end, {}).setdefault(trade["isin"], [None, 0])
            best[1] += 1
            if best[0] is None or version > best[0][0]:
                best[0] = (version, trade["price"], trade["size"])
    published: dict[str, tuple[int, ...]] = {}
    expected: dict[int, dict[str, Item]] = {}
    for end in range(min(windows), upto_ms + 1, window_ms):
        expected[end] = {}
        for isin, (latest, trades) in windows.get(end, {}).items():
            version, price, size = latest
            if version > published.get(isin, ()):
                published[isin] = version
                expected[end][isin] = (*version[:2], price, size, trades)
    return expected
