"""What was published, read from the window log."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

import redis

from ingest.redis_keys import Keys
from tests.oracle import Item, Sums, add_up
from throttle.contract.day_so_far import DayValue, day_object
from throttle.contract.snapshot import Row, WindowSnapshot


def read_snapshots(client: redis.Redis, namespace: str = "tt") -> list[WindowSnapshot]:
    """Return every snapshot of the window log, oldest first, ``without_days``."""
    entries = client.xrange(Keys(namespace).windows)
    return [without_days(fields[b"snapshot"]) for _, fields in entries]


def without_days(message: bytes) -> WindowSnapshot:
    """Decode a snapshot, and leave out what rows say of the day so far."""
    snapshot = WindowSnapshot.decode(message)
    rows = tuple(row._replace(day=b"") for row in snapshot.rows)
    return replace(snapshot, rows=rows)


def published_windows(
    client: redis.Redis, namespace: str = "tt"
) -> dict[int, dict[str, Item]]:
    """Return every window's items by its end.

    Fails if a window was published twice, one is missing or an offset is.
    """
    snapshots = read_snapshots(client, namespace)
    windows = {s.window: {r.isin: item_of(r) for r in s.rows} for s in snapshots}
    assert len(windows) == len(snapshots), "a window was published twice"
    assert [s.offset for s in snapshots] == list(range(1, len(snapshots) + 1))
    return windows


def sums_of_rows(snapshots: Iterable[WindowSnapshot]) -> dict[str, Sums]:
    """Return the sums of all rows by ISIN."""
    return add_up((r.isin, item_of(r).sums) for s in snapshots for r in s.rows)


def item_of(row: Row) -> Item:
    """Read a row as documented, with no code of the product."""
    body = json.loads(row.body, parse_float=str, parse_int=str)
    # After the revision, which is 0 where nothing was taken back.
    version, price, size = row.version[4:].decode(), body["price"], body["size"]
    trades, *amounts = row.sums.decode().split(",")
    if trades == "1" and not amounts:
        sums = Sums.of_trade(price, size)
    else:
        volume, value, *extremes = amounts
        high, low = (Decimal(text) if text else None for text in extremes)
        sums = Sums(int(trades), Decimal(volume), Decimal(value), high, low)
    order = int(version[:16]), int(version[16:35]), int(version[35:])
    assert order[:2] == (int(body["time"]), int(body["seq"]))
    revision = int(row.version[:4])
    assert int(body.get("revision", 0)) == revision
    return Item(order, price, size, sums, revision)


class Day(NamedTuple):
    """A day so far: when it began, its sums, and its first price."""

    start_ms: int
    sums: Sums
    open: Decimal | None


def read_day(text: bytes) -> Day:
    """Read the JSON object of a day as documented."""
    day = json.loads(day_object(text), parse_float=Decimal)
    numbers = (day.get(name) for name in ("volume", "value", "high", "low", "open"))
    volume, value, high, low, first = (
        None if number is None else Decimal(number) for number in numbers
    )
    assert volume is not None
    assert value is not None
    return Day(day["start"], Sums(day["trades"], volume, value, high, low), first)


def read_days(stored: Mapping[bytes, bytes]) -> dict[str, Day]:
    """Read the days of a Redis hash, by ISIN."""
    return {k.decode(): read_day(DayValue.decode(v).text) for k, v in stored.items()}


def stored_days(client: redis.Redis) -> dict[str, Day]:
    """Return the days that Redis has."""
    return read_days(client.hgetall(Keys("tt").days_so_far))
