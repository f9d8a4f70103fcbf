"""Plays windows of an archive again: published as they were, without a throttle.

Into a namespace of its own, which gateways follow as any other. Offsets, windows and
rows are those that were published; epochs have new names, so that no client takes a
position of one playback for one of another.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Any

import redis

from archive.parquet.archive_reader import ArchiveReader
from ingest.redis_keys import FORM, Keys
from throttle.contract.snapshot import WindowSnapshot
from throttle.lease.retry import Stopped, pause

WINDOW_LOG = 450
"""Windows kept in the window log, as a throttle keeps them."""

LONG_WAIT_S = 60
"""A longer wait for the next window is told."""

_OWN = "playback"


class PlaybackRefused(RuntimeError):
    """Nothing can be played there; the message says why."""


@dataclass(frozen=True, slots=True)
class Played:
    """How much was played."""

    windows: int
    rows: int


def play(
    reader: ArchiveReader,
    client: redis.Redis,
    namespace: str,
    bounds_ms: tuple[int, int],
    speed: float,
    max_gap_s: float | None,
    stop: threading.Event,
    begun: Callable[[], None] = lambda: None,
    told_wait: Callable[[float], None] = lambda _: None,
) -> Played:
    """Publish the windows that end within ``bounds_ms``, ``speed`` times as fast.

    No pause is longer than ``max_gap_s`` of the windows' time. ``begun`` is called
    when the namespace is ready, ``told_wait`` with the seconds of a wait over a minute
    when it begins. Raises PlaybackRefused, redis.RedisError and OSError.
    """
    keys = Keys(namespace)
    window_ms = reader.window_ms(*bounds_ms)
    if window_ms is None:
        raise PlaybackRefused("the archive has no window of this day")
    _clear(client, keys, window_ms)
    begun()
    epochs: dict[str, str] = {}
    due_s, before_ms, windows, rows = time.monotonic(), None, 0, 0
    for window in reader.windows(*bounds_ms):
        if before_ms is not None:
            gap_s = max(0, window.window - before_ms) / 1_000
            wait_s = min(gap_s, max_gap_s or gap_s) / speed
            due_s += wait_s
            if wait_s > LONG_WAIT_S:
                told_wait(wait_s)
        before_ms = window.window
        with suppress(Stopped):
            pause(due_s - time.monotonic(), stop)
        if stop.is_set():
            break
        epoch = epochs.setdefault(window.epoch, token_hex(4))
        _publish(client, keys, window, epoch)
        windows, rows = windows + 1, rows + len(window.rows)
    return Played(windows, rows)


def _clear(client: redis.Redis, keys: Keys, window_ms: int) -> None:
    """Empty a namespace that is nobody else's."""
    meta: Any = client.hgetall(keys.meta)
    if meta and _OWN.encode() not in meta:
        raise PlaybackRefused(
            f"namespace {keys.namespace}: has a stream already; name another one"
        )
    with client.pipeline(transaction=True) as pipe:
        pipe.delete(keys.meta, keys.last, keys.windows)
        pipe.hset(keys.meta, mapping={_OWN: 1, "form": FORM, "window_ms": window_ms})
        pipe.execute()


def _publish(
    client: redis.Redis, keys: Keys, window: WindowSnapshot, epoch: str
) -> None:
    # Whatever else a window says goes along.
    told = replace(window, epoch=epoch).encode()
    newest: Any = client.hget(keys.meta, "offset")
    with client.pipeline(transaction=True) as pipe:
        # Of an epoch in which Redis had come back older, offsets come again.
        if window.offset <= int(newest or 0):
            pipe.delete(keys.windows, keys.last)
        entry_id = f"{window.offset}-0"
        pipe.xadd(keys.windows, {"snapshot": told}, entry_id, maxlen=WINDOW_LOG)
        if window.rows:
            values: dict[Any, Any] = {
                row.isin: b"%b %d %b" % (row.version, window.offset, row.body)
                for row in window.rows
            }
            pipe.hset(keys.last, mapping=values)
        position: dict[Any, Any] = {
            "epoch": epoch,
            "offset": window.offset,
            "window": window.window,
        }
        pipe.hset(keys.meta, mapping=position)
        pipe.publish(keys.updates, told)
        pipe.execute()
