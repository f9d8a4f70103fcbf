"""What was published, read from the window log."""

import json

import redis

from ingest.redis_keys import Keys
from tests.oracle import Item
from throttle.contract.snapshot import WindowSnapshot


def read_snapshots(client: redis.Redis, namespace: str = "tt") -> list[WindowSnapshot]:
    """Return every snapshot of the window log, oldest first."""
    entries = client.xrange(Keys(namespace).windows)
    return [WindowSnapshot.decode(fields[b"snapshot"]) for _, fields in entries]


def published_windows(
    client: redis.Redis, namespace: str = "tt"
) -> dict[int, dict[str, Item]]:
    """Return {window end: {isin: (time, seq, price, size, trades)}}.

    Fails if a window was published twice, one is missing or an offset is.
    """
    snapshots = read_snapshots(client, namespace)
    windows = {
        s.window: {r.isin: _item(r.body, r.trades) for r in s.rows} for s in snapshots
    }
    assert len(windows) == len(snapshots), "a window was published twice"
    assert [s.offset for s in snapshots] == list(range(1, len(snapshots) + 1))
    return windows


def _item(body: bytes, trades: int) -> Item:
    row = json.loads(body, parse_float=str, parse_int=str)
    return (int(row["time"]), int(row["seq"]), row["price"], row["size"], trades)
