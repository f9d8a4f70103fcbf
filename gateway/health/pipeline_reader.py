"""Reads what Redis and the log know of the pipeline, in two round trips."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redis.exceptions import NoPermissionError, RedisError

from archive.contract.archive_state import decode_archives
from gateway.health.jobs import (
    JobState,
    PipelineState,
    QueryState,
    Upstream,
    decode_job,
    decode_query,
    job_names,
)
from gateway.health.kafka_ends import KafkaEndsReader
from gateway.health.log_ends import LogEnds, decode_redis_ends
from gateway.upstream.shared_answer import FRESH_S, SharedAnswer
from gateway.upstream.trade_tail import UNREADABLE, in_sentence, no_log
from ingest.kafka.address import KafkaTopic
from ingest.process.redis_fault import in_words
from ingest.redis_keys import ANALYTICS_JOB, PRODUCTS, AnalyticsKeys, Keys, OtherKeys
from throttle.contract.candidate import decode_candidates
from tickthrottle_client.log_v1 import decode_info, info_key, stream_key
from tickthrottle_client.server_memory import ServerMemory

ANSWER_S = 1.0
"""Redis that has not answered in this time is away."""


# The lease, and three hashes of each product.
_ASKED = 1 + 3 * len(PRODUCTS)

_Hash = Mapping[bytes, bytes]

NO_ANSWER = f"no answer within {ANSWER_S:g} s"


class PipelineReader:
    """Asks for everything at once: what it says is of one moment.

    ``topic`` is the log where that is not in Redis.
    """

    def __init__(self, redis: Redis, keys: Keys, topic: KafkaTopic | None) -> None:
        self._redis = redis
        self._keys = keys
        self._kafka = None if topic is None else KafkaEndsReader(topic)
        self._shared = SharedAnswer(self._look)

    async def read(self, at_most_s: float = FRESH_S) -> PipelineState:
        """Return what there is, at most so old, or the problem with it.

        It takes ``ANSWER_S`` at most. Brokers of the log are not asked.
        """
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._shared.get(at_most_s)
        except (RedisError, OSError) as error:
            # A timeout is an OSError, with nothing to say.
            problem = f"Redis: {in_words(error) or NO_ANSWER}"
            # A key that is somebody else's is answered.
            is_redis_down = "WRONGTYPE" not in str(error)
        except UNREADABLE as error:
            problem, is_redis_down = in_sentence(error), False
        log = LogEnds("redis" if self._kafka is None else "kafka", problem=problem)
        now_ms = time.time_ns() // 1_000_000
        return PipelineState(now_ms, (), log, problem, is_redis_down)

    async def read_with_log(self) -> PipelineState:
        """Return the same, with the log's end as its brokers have it."""
        state = await self.read()
        if self._kafka is None or state.problem is not None:
            return state
        return replace(state, log=await self._kafka.ends())

    async def _look(self) -> PipelineState:
        memory, first = await asyncio.gather(self._ask_memory(), self._ask_first())
        clock, meta, log_fields, archives = first
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
            self._ask_analytics(pipe)
            for partition in range(0 if info is None else info.partitions):
                pipe.xinfo_stream(stream_key(keys.namespace, partition))
            replies: list[Any] = await pipe.execute(raise_on_error=False)
        of_jobs, others = replies[: 4 * len(jobs)], replies[4 * len(jobs) :]
        of_analytics, of_log = others[:_ASKED], others[_ASKED:]
        for reply in (*of_jobs, *of_analytics):
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
        candidates = decode_candidates(meta, clock)
        return PipelineState(
            clock,
            states,
            log,
            candidates=candidates,
            archives=decode_archives(archives),
            queries=_decode_queries(*of_analytics),
            memory=memory,
        )

    def _ask_analytics(self, pipe: Pipeline) -> None:
        keys = AnalyticsKeys(self._keys.namespace)
        pipe.get(keys.lease_keys.lease(ANALYTICS_JOB))
        for product in PRODUCTS:
            pipe.hgetall(keys.progress(product))
            pipe.hgetall(keys.ledger(product))
            pipe.hgetall(keys.state(product))

    async def _ask_memory(self) -> ServerMemory | None:
        # Not in one step with the rest, which a user without the right would lose.
        with suppress(NoPermissionError):
            return ServerMemory.decode(await self._redis.info())
        return None

    async def _ask_first(self) -> tuple[int, _Hash, _Hash, _Hash]:
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.time()
            pipe.hgetall(self._keys.meta)
            pipe.hgetall(info_key(self._keys.namespace))
            pipe.hgetall(OtherKeys(self._keys.namespace).archives)
            (seconds, micros), meta, log_fields, archives = await pipe.execute()
        return seconds * 1_000 + micros // 1_000, meta, log_fields, archives

    def _no_log(self, jobs: tuple[JobState, ...]) -> str:
        problem = no_log(self._keys.namespace)
        log_ids = ", ".join(sorted({job.log_id for job in jobs if job.log_id}))
        rest = f"; jobs read {log_ids}: see TICKTHROTTLE_TRADE_LOG"
        return problem + (rest if log_ids else "")


class RelayReader:
    """Says of a gateway without Redis what it follows; nothing has to be asked."""

    def __init__(self, upstream: Callable[[], Upstream | None]) -> None:
        self._upstream = upstream

    async def read(self, at_most_s: float = FRESH_S) -> PipelineState:
        """Return what is known."""
        now_ms = time.time_ns() // 1_000_000
        return PipelineState(now_ms, (), LogEnds("redis"), upstream=self._upstream())

    async def read_with_log(self) -> PipelineState:
        """Return the same: the log is not known here."""
        return await self.read()


def _decode_queries(lease: bytes | None, *hashes: _Hash) -> tuple[QueryState, ...]:
    states = (
        decode_query(product, lease, *hashes[3 * n : 3 * n + 3])
        for n, product in enumerate(PRODUCTS)
    )
    return tuple(state for state in states if state is not None)
