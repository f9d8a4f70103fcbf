"""Reads what Redis and the log know of the pipeline, in two round trips."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from redis.asyncio import Redis

from gateway.jobs import JobState, decode_job, job_names
from gateway.log_ends import KafkaLog, LogEnds, decode_redis_ends
from ingest.kafka_address import KafkaTopic
from ingest.redis_keys import decode_info, info_key, stream_key
from throttle.snapshot import Keys

FRESH_S = 0.5
"""All who ask within so long get the same answer."""

T = TypeVar("T")


class Shared(Generic[T]):
    """What costs something to find out, found out once for all who ask at a time.

    An error is shared like an answer.
    """

    def __init__(self, find_out: Callable[[], Awaitable[T]]) -> None:
        self._find_out = find_out
        self._task: asyncio.Task[T] | None = None
        self._found_s = 0.0

    async def get(self, at_most_s: float = FRESH_S) -> T:
        """Return what is known, at most so old; raise what went wrong."""
        task = self._task
        age_s = time.monotonic() - self._found_s
        if task is None or (task.done() and age_s >= at_most_s):
            task = self._task = asyncio.create_task(self._ask())
            task.add_done_callback(_hear)
        # One that stops waiting must not spoil it for the others.
        return await asyncio.shield(task)

    async def _ask(self) -> T:
        try:
            return await self._find_out()
        finally:
            self._found_s = time.monotonic()


def _hear(task: "asyncio.Task[Any]") -> None:
    """Take note of an error that everybody has given up waiting for."""
    if not task.cancelled():
        task.exception()


@dataclass(frozen=True, slots=True)
class Seen:
    """What Redis said at one moment, ``clock_ms`` by its own clock."""

    clock_ms: int
    jobs: tuple[JobState, ...]
    log: LogEnds


class PipelineReader:
    """Asks for everything at once: what it says is of one moment.

    ``topic`` is the log where that is not in Redis.
    """

    def __init__(self, redis: Redis, keys: Keys, topic: KafkaTopic | None) -> None:
        self._redis = redis
        self._keys = keys
        self._kafka = None if topic is None else KafkaLog(topic)
        self._shared = Shared(self._look)

    async def look(self, at_most_s: float = FRESH_S) -> Seen:
        """Return what there is, at most so old.

        Raises RedisError when the server cannot be asked and ValueError for what the
        throttle would not have written. Of the log's brokers nothing is raised.
        """
        return await self._shared.get(at_most_s)

    async def log_ends(self, seen: Seen) -> LogEnds:
        """Return where the log ends; brokers are asked by whoever needs to know."""
        return seen.log if self._kafka is None else await self._kafka.ends()

    async def _look(self) -> Seen:
        clock, meta, log_fields = await self._ask_first()
        jobs, info = job_names(meta), None
        if self._kafka is None and log_fields:
            info = decode_info(log_fields)
        keys = self._keys
        async with self._redis.pipeline(transaction=True) as pipe:
            for job in jobs:
                pipe.get(keys.lease(job))
                pipe.hgetall(keys.ledger(job))
                pipe.xrevrange(keys.batches(job), count=1)
                pipe.hgetall(keys.stages(job))
            for partition in range(0 if info is None else info.partitions):
                pipe.xinfo_stream(stream_key(keys.namespace, partition))
            replies: list[Any] = await pipe.execute(raise_on_error=False)
        of_jobs, of_log = replies[: 4 * len(jobs)], replies[4 * len(jobs) :]
        for reply in of_jobs:
            if isinstance(reply, Exception):
                raise reply
        states = tuple(
            decode_job(job, meta, *of_jobs[4 * n : 4 * n + 4])
            for n, job in enumerate(jobs)
        )
        if info is not None:
            log = decode_redis_ends(info, of_log)
        else:
            log = LogEnds("redis", problem=self._no_log(states))
        return Seen(clock, states, log)

    async def _ask_first(
        self,
    ) -> tuple[int, Mapping[bytes, bytes], Mapping[bytes, bytes]]:
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.time()
            pipe.hgetall(self._keys.meta)
            pipe.hgetall(info_key(self._keys.namespace))
            (seconds, micros), meta, log_fields = await pipe.execute()
        return seconds * 1_000 + micros // 1_000, meta, log_fields

    def _no_log(self, jobs: tuple[JobState, ...]) -> str:
        problem = f"there is no trade log under {info_key(self._keys.namespace)}"
        others = sorted({job.log_id for job in jobs if job.log_id is not None})
        if not others:
            return problem
        return f"{problem}; jobs read {', '.join(others)}: see TICKTHROTTLE_LOG"
