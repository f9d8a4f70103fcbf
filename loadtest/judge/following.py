"""Follows the window log while a load runs, in a thread."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import redis

from ingest.process.redact import server_address
from ingest.redis_keys import Keys
from loadtest.judge.published_run import PublishedRun
from loadtest.judge.standing import Standing, read_standing
from throttle.contract.ledger import BatchEntry
from tickthrottle_client.redis_primary import connect

_BLOCK_MS = 200
_PIECE = 20


class Follower:
    """What was published since ``start``, and the batches it was published in.

    What it has is safe to read from other threads; a Redis that is away is asked again
    and again.
    """

    def __init__(
        self, client: redis.Redis, namespace: str, start: Standing, window_ms: int
    ) -> None:
        self.start = start
        self.run = PublishedRun(start.epoch, start.offset, window_ms)
        self.batches: list[BatchEntry] = []
        self._client = client
        self._keys = Keys(namespace)
        self._ids = dict.fromkeys(self._streams(), f"{start.offset}-0")
        self._told = threading.Condition()
        self._stop = threading.Event()
        self._away: redis.RedisError | None = None

    @property
    def faults(self) -> list[str]:
        """Broken promises of the stream, in words."""
        away = [] if self._away is None else [f"redis_url: {self._away}"]
        return [*self.run.faults, *away]

    def wait_for(self, end_ms: float, within_s: float) -> bool:
        """Wait until a window that ends then or later was published."""
        return self._wait(lambda: (self.run.end_ms or 0) >= end_ms, within_s)

    def wait_for_batch(self, end_ms: float, within_s: float) -> bool:
        """Wait until the batch that ends then or later was recorded."""
        return self._wait(
            lambda: bool(self.batches) and self.batches[-1].end.end_ms >= end_ms,
            within_s,
        )

    def _wait(self, is_there: Callable[[], bool], within_s: float) -> bool:
        with self._told:
            return self._told.wait_for(is_there, within_s)

    def follow(self) -> None:
        """Follow until told to stop."""
        while not self._stop.is_set():
            try:
                self._read()
                self._away = None
            except redis.RedisError as error:
                self._away = error
                self._stop.wait(_BLOCK_MS / 1_000)

    def stop(self) -> None:
        """Have ``follow`` return soon."""
        self._stop.set()

    def _streams(self) -> Sequence[str]:
        return self._keys.windows, self._keys.batches(self.start.ledger.job)

    def _read(self) -> None:
        found: Any = self._client.xread(
            cast("dict[Any, Any]", self._ids), count=_PIECE, block=_BLOCK_MS
        )
        windows, _ = self._streams()
        if windows.encode() not in (name for name, _ in found):
            self._check_epoch()
        with self._told:
            for name, entries in found:
                self._ids[name.decode()] = entries[-1][0].decode()
                for entry_id, fields in entries:
                    if name.decode() == windows:
                        self.run.add(fields.get(b"snapshot", b""))
                    else:
                        self._add_batch(entry_id, fields)
            self._told.notify_all()

    def _add_batch(self, entry_id: bytes, fields: Mapping[bytes, bytes]) -> None:
        try:
            self.batches.append(BatchEntry.decode(entry_id, fields))
        except ValueError as error:
            self.run.faults.append(str(error))

    def _check_epoch(self) -> None:
        # A stream that began anew counts from 1 again: nothing would ever come.
        epoch = cast("bytes | None", self._client.hget(self._keys.meta, "epoch"))
        if epoch is None or epoch.decode() != self.run.epoch:
            self.run.begin_anew(None if epoch is None else epoch.decode())


@contextmanager
def following(
    redis_url: str, namespace: str, job: str, window_ms: int
) -> Iterator[Follower]:
    """Follow a stream from now on. Raises NoStream, and redis.RedisError at the start.

    Whoever needs what was published up to a moment waits for it (``wait_for``).
    """
    with connect(redis_url, socket_timeout=5) as client:
        start = read_standing(client, namespace, job)
        follower = Follower(client, namespace, start, window_ms)
        name = f"windows of {server_address(redis_url)}"
        thread = threading.Thread(target=follower.follow, name=name, daemon=True)
        thread.start()
        try:
            yield follower
        finally:
            follower.stop()
            thread.join()
