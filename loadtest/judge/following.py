"""Where a stream stands, and its window log, followed in a thread while a load runs."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
import redis

from ingest.process.redact import server_address
from ingest.redis_keys import Keys
from loadtest.judge.published_run import PublishedRun
from throttle.contract.cut import Cut
from throttle.contract.ledger import BatchEntry, Ledger
from throttle.contract.snapshot import LastValue
from tickthrottle_client.redis_primary import connect

_BLOCK_MS = 200
_PIECE = 20


class NoStream(RuntimeError):
    """There is no stream to follow; the message says why."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A job's stream between two publishes.

    ``last`` is what was published last of each instrument; ``others`` are further jobs
    that publish into the same stream. What follows this moment has offsets above
    ``offset`` and lies behind ``cut`` in the log.
    """

    epoch: str
    offset: int
    cut: Cut
    ledger: Ledger
    others: tuple[str, ...] = ()
    last: Mapping[str, LastValue] = field(default_factory=dict, repr=False)


def read_standing(client: redis.Redis, namespace: str, job: str) -> Standing:
    """Read it in one step. Raises NoStream if the job has never published."""
    keys = Keys(namespace)
    with client.pipeline(transaction=True) as pipe:
        pipe.hgetall(keys.meta)
        pipe.hgetall(keys.ledger(job))
        pipe.hgetall(keys.last)
        stored, books, last = pipe.execute()
    meta = {name.decode(): value for name, value in stored.items()}
    ledger = Ledger.decode(job, books)
    if ledger is None or f"cut:{job}" not in meta:
        raise NoStream(f"job {job}: has published nothing under {keys.meta}")
    cuts = (name.removeprefix("cut:") for name in meta if name.startswith("cut:"))
    return Standing(
        meta["epoch"].decode(),
        int(meta["offset"]),
        Cut.from_offset(orjson.loads(meta[f"cut:{job}"])),
        ledger,
        tuple(sorted(name for name in cuts if name != job)),
        {name.decode(): LastValue.decode(name, v) for name, v in last.items()},
    )


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
        self._has_news = threading.Condition()
        self._stop = threading.Event()
        self._away: redis.RedisError | None = None

    @property
    def faults(self) -> list[str]:
        away = [] if self._away is None else [f"redis_url: {self._away}"]
        return [*self.run.faults, *away]

    def wait_for(self, end_ms: float, within_s: float) -> bool:
        """Wait until a window that ends then or later was published."""
        with self._has_news:
            return self._has_news.wait_for(
                lambda: (self.run.end_ms or 0) >= end_ms, within_s
            )

    def wait_for_batch(self, end_ms: float, within_s: float) -> bool:
        """Wait until the batch that ends then or later was recorded."""
        with self._has_news:
            return self._has_news.wait_for(
                lambda: any(b.end.end_ms >= end_ms for b in self.batches[-1:]), within_s
            )

    def follow(self) -> None:
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
        streams: Any = self._client.xread(
            cast("dict[Any, Any]", self._ids), count=_PIECE, block=_BLOCK_MS
        )
        windows, _ = self._streams()
        if windows.encode() not in (name for name, _ in streams):
            self._check_epoch()
        with self._has_news:
            for name, entries in streams:
                self._ids[name.decode()] = entries[-1][0].decode()
                for entry_id, fields in entries:
                    if name.decode() == windows:
                        self.run.add(fields.get(b"snapshot", b""))
                    else:
                        try:
                            self.batches.append(BatchEntry.decode(entry_id, fields))
                        except ValueError as error:
                            self.run.faults.append(str(error))
            self._has_news.notify_all()

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
