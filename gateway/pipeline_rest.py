"""REST for operators: the pipeline, and the windows that went out."""

import asyncio
import time
from typing import Annotated

import orjson
from fastapi import APIRouter, Query
from fastapi.responses import Response
from redis.exceptions import RedisError

from gateway.backend import ANSWER_S, Backend
from gateway.client_list import take_census
from gateway.log_ends import LogEnds
from gateway.openapi import OPERATORS
from gateway.ops_answers import PipelineAnswer, PulseAnswer, ReadyAnswer
from gateway.ops_docs import ops_answers
from gateway.pipeline import Seen, Shared
from gateway.pipeline_view import (
    fanout_answer,
    feed_answer,
    job_answer,
    log_answer,
    stream_answer,
)
from gateway.pulse import KEPT
from gateway.rest import read_version

_JSON = "application/json"


def create_router(backend: Backend) -> APIRouter:
    """Build the router of the pipeline; all who ask at a time share an answer."""
    router = APIRouter()
    view = PipelineView(backend)
    shared = Shared(view.encode)

    @router.get(
        "/v1/pipeline",
        responses=ops_answers(PipelineAnswer, "The pipeline"),
        openapi_extra=OPERATORS,
    )
    async def get_pipeline() -> Response:
        """The whole pipeline at one moment, at most half a second old."""
        return Response(await shared.get(), media_type=_JSON)

    @router.get(
        "/v1/pipeline/windows",
        responses=ops_answers(PulseAnswer, "The windows", 400),
        openapi_extra=OPERATORS,
    )
    async def list_pipeline_windows(
        limit: Annotated[int, Query(ge=1, le=KEPT)] = KEPT,
    ) -> Response:
        """The newest windows as they went out, oldest first."""
        beats = list(backend.hub.pulse.newest(limit))
        body = orjson.dumps(PulseAnswer(len(beats), beats))
        return Response(body, media_type=_JSON)

    return router


class PipelineView:
    """Puts together what Redis, the log and this process know."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._version = read_version()

    async def encode(self) -> bytes:
        """Return the pipeline as JSON. What cannot be asked is a problem in it."""
        try:
            async with asyncio.timeout(ANSWER_S):
                seen = await self._backend.pipeline.look()
        except (RedisError, OSError) as error:
            # A timeout is an OSError, with nothing to say.
            return await self._without_redis(f"Redis: {error or 'no answer'}")
        except ValueError as error:
            return await self._without_redis(str(error))
        log = await self._backend.pipeline.log_ends(seen)
        return await self._encode(seen, log, None)

    async def _without_redis(self, problem: str) -> bytes:
        log = LogEnds(self._backend.settings.log, problem=problem)
        seen = Seen(time.time_ns() // 1_000_000, (), log)
        return await self._encode(seen, log, problem)

    async def _encode(self, seen: Seen, log: LogEnds, problem: str | None) -> bytes:
        backend, clock_ms, now_s = self._backend, seen.clock_ms, time.monotonic()
        feed, load, reasons = backend.feed, backend.load, backend.reasons()
        states = (await take_census(backend.hub.clients())).states
        silence = None if feed.is_live(now_s) else feed.silence_reason(now_s)
        answer = PipelineAnswer(
            now_ms=clock_ms,
            version=self._version,
            started_ms=backend.started_ms,
            problem=problem,
            feed=feed_answer(log, clock_ms),
            log=log_answer(log),
            jobs=[job_answer(job, log, clock_ms) for job in seen.jobs],
            stream=stream_answer(backend.board, clock_ms, silence),
            fanout=fanout_answer(states, backend.hub.pulse, load.rss_bytes, load.lag_s),
            ready=ReadyAnswer(not reasons, reasons),
        )
        return orjson.dumps(answer)
