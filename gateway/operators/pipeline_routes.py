"""REST for operators: the pipeline, and the windows that went out."""

from typing import Annotated

import orjson
from fastapi import APIRouter, Query
from fastapi.responses import Response

from gateway.backend import Backend
from gateway.health.shared_answer import SharedAnswer
from gateway.http.openapi import OPERATORS, read_version
from gateway.operators.operators_schemas import (
    PipelineAnswer,
    ReadyAnswer,
    WindowTimingsAnswer,
)
from gateway.operators.pipeline import (
    analytics_answers,
    archive_answers,
    fanout_answer,
    feed_answer,
    job_answer,
    log_answer,
    stream_answer,
)
from gateway.operators.responses import ops_answers
from gateway.stream.window_timings import KEPT
from gateway.workers.worker_report import join_timings

_JSON = "application/json"


def create_router(backend: Backend) -> APIRouter:
    """Build the router of the pipeline; all who ask at a time share an answer."""
    router = APIRouter()
    view = PipelineView(backend)
    shared = SharedAnswer(view.encode)

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
        responses=ops_answers(WindowTimingsAnswer, "The windows", 400),
        openapi_extra=OPERATORS,
    )
    async def list_pipeline_windows(
        limit: Annotated[int, Query(ge=1, le=KEPT)] = KEPT,
    ) -> Response:
        """The newest windows as they went out, oldest first."""
        timings = join_timings(await backend.health.reports())[-limit:]
        body = orjson.dumps(WindowTimingsAnswer(len(timings), timings))
        return Response(body, media_type=_JSON)

    return router


class PipelineView:
    """Puts together what Redis, the log and this process know."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._version = read_version()

    async def encode(self) -> bytes:
        """Return the pipeline as JSON. What cannot be asked is a problem in it."""
        backend, stream = self._backend, self._backend.stream
        look = await backend.health.look()
        pipeline, gateway, reasons = look.pipeline, look.gateway, look.reasons
        log, jobs, clock_ms = pipeline.log, pipeline.jobs, pipeline.clock_ms
        answer = PipelineAnswer(
            now_ms=clock_ms,
            version=self._version,
            started_ms=backend.health.started_ms,
            docs_url=backend.settings.docs_url,
            problem=pipeline.problem,
            feed=feed_answer(log, clock_ms),
            markets=backend.health.markets(),
            log=log_answer(log),
            jobs=[job_answer(job, jobs, log, clock_ms) for job in jobs],
            stream=stream_answer(
                stream.board, stream.hub.instruments, clock_ms, gateway.silence
            ),
            fanout=fanout_answer(look.reports, look.timings),
            archives=archive_answers(pipeline, gateway.window_ms),
            archive_damage=backend.stores.archived.damage(),
            analytics=analytics_answers(pipeline),
            ready=ReadyAnswer(not reasons, reasons),
            diagnosis=look.diagnosis,
        )
        return orjson.dumps(answer)
