"""Reads a stream of Redis in pieces, in either order."""

from collections.abc import Iterator, Mapping
from typing import Any

import redis

Fields = Mapping[bytes, bytes]

_PIECE = 1_000


def scan(
    client: redis.Redis,
    key: str,
    newest_first: bool = False,
    low: str = "-",
    piece: int = _PIECE,
) -> Iterator[tuple[bytes, Fields]]:
    """Yield the entries from ``low`` on; memory is bounded by ``piece`` of them."""
    high = "+"
    while True:
        if newest_first:
            entries: Any = client.xrevrange(key, high, low, count=piece)
        else:
            entries = client.xrange(key, low, high, count=piece)
        yield from entries
        if len(entries) < piece:
            return
        edge = f"({entries[-1][0].decode()}"
        low, high = (low, edge) if newest_first else (edge, high)
