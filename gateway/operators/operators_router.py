"""REST for operators only: never among the routes of the public port."""

import asyncio
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse, Response

from gateway.backend import Backend
from gateway.health.client_states import ClientRow, State
from gateway.health.incidents.incident_book import NOTE_CHARS
from gateway.health.pipeline_reader import ANSWER_S, NO_ANSWER
from gateway.health_monitor import Look
from gateway.http.openapi import operators_only, read_version
from gateway.http.problems import Problem, json_answer, unavailable
from gateway.http.routers import new_router
from gateway.named_files import read_operators_token
from gateway.operators.dead_letters import read_letters
from gateway.operators.operators_schemas import (
    ClientsAnswer,
    IncidentsAnswer,
    LettersAnswer,
    OtherGatewaysAnswer,
    PipelineAnswer,
    ReadyAnswer,
    SettingAnswer,
    SettingsAnswer,
    Totals,
    UnlistedAnswer,
    WindowTimingsAnswer,
)
from gateway.operators.other_gateways import OtherGateways
from gateway.operators.pipeline import (
    archive_answers,
    fanout_answer,
    feed_answer,
    job_answer,
    log_answer,
    query_answer,
    stream_answer,
)
from gateway.settings import GatewaySettings
from gateway.stream.window_timings import KEPT
from gateway.upstream.shared_answer import SharedAnswer
from gateway.workers.worker_report import add_states, join_slowest, join_timings
from ingest.process.redact import shown
from ingest.settings import variable_of

MOST_UNLISTED = 1_000
"""This many instruments without a name are listed."""

UNKNOWN_CLIENT = "unknown_client", "No such client", "c-7f3a9102: is not connected"

UNKNOWN_INCIDENT = "unknown_incident", "No such incident", "i-1: is not remembered"

UNKNOWN_JOB = "unknown_job", "No such job", "low: has never run on this stream"

Note = Annotated[
    str,
    Query(
        max_length=NOTE_CHARS,
        pattern=r"^[^\x00-\x1f\x7f]*$",
        description="What was done, in one line; empty takes a note away",
        examples=["started it again"],
    ),
]


def create_router(backend: Backend) -> APIRouter:
    """Build the operators' routes; each asks for the operators' token, if any."""
    router = new_router("operators", backend.access.check_request)
    _add_pipeline(router, backend)
    _add_incidents(router, backend)
    _add_clients(router, backend)
    _add_dead_letters(router, backend)
    _add_facts(router, backend)
    return router


def pipeline_answer(backend: Backend, look: Look, version: str) -> PipelineAnswer:
    """Show the whole pipeline. What cannot be asked is a problem in it."""
    pipeline, gateway, reasons = look.pipeline, look.gateway, look.reasons
    log, jobs, clock_ms = pipeline.log, pipeline.jobs, pipeline.clock_ms
    stream, health = backend.stream, backend.health
    return PipelineAnswer(
        now_ms=clock_ms,
        version=version,
        started_ms=health.started_ms,
        docs_url=backend.settings.docs_url,
        problem=pipeline.problem,
        feed=feed_answer(log, clock_ms),
        markets=health.markets(),
        log=log_answer(log),
        jobs=[job_answer(job, jobs, log, clock_ms) for job in jobs],
        stream=stream_answer(
            stream.board, stream.hub.instruments, clock_ms, gateway.silence
        ),
        fanout=fanout_answer(look.reports, look.timings),
        archives=archive_answers(pipeline, gateway.window_ms),
        archive_damage=backend.stores.archived.damage(),
        analytics=[query_answer(query, clock_ms) for query in pipeline.queries],
        ready=ReadyAnswer(not reasons, reasons),
        diagnosis=look.diagnosis,
    )


def _add_pipeline(router: APIRouter, backend: Backend) -> None:
    version = read_version()

    async def encode() -> bytes:
        look = await backend.health.look()
        return orjson.dumps(pipeline_answer(backend, look, version))

    # All who ask at a time share an answer.
    shared = SharedAnswer(encode)

    @router.get("/v1/pipeline", **operators_only(PipelineAnswer, "The pipeline"))
    async def get_pipeline() -> Response:
        """The whole pipeline at one moment, at most half a second old."""
        return Response(await shared.get(), media_type="application/json")

    @router.get(
        "/v1/pipeline/windows", **operators_only(WindowTimingsAnswer, "The windows")
    )
    async def list_pipeline_windows(
        limit: Annotated[int, Query(ge=1, le=KEPT)] = KEPT,
    ) -> Response:
        """The newest windows as they went out, oldest first."""
        timings = join_timings(await backend.health.reports())[-limit:]
        return json_answer(WindowTimingsAnswer(len(timings), timings))


def _add_incidents(router: APIRouter, backend: Backend) -> None:
    def away() -> Problem:
        detail = "the worker that keeps incidents is starting"
        return Problem(503, "unavailable", detail)

    @router.get("/v1/incidents", **operators_only(IncidentsAnswer, "The incidents"))
    async def list_incidents() -> Response:
        """What was wrong in the last 14 days, 500 incidents at most.

        What still lasts comes first, then the newest.
        """
        incidents = await backend.health.incidents()
        if incidents is None:
            raise away()
        return json_answer(IncidentsAnswer(len(incidents), incidents))

    @router.put(
        "/v1/incidents/{incident_id}/note",
        **operators_only(None, "It is noted", status=204, missing=UNKNOWN_INCIDENT),
    )
    async def note_incident(incident_id: str, text: Note) -> Response:
        """Write down what was done; it takes the place of an earlier note."""
        is_known = await backend.health.note_incident(incident_id, text)
        if is_known is None:
            raise away()
        if not is_known:
            raise Problem(404, "unknown_incident", f"{incident_id}: is not remembered")
        return Response(status_code=204)


def _add_clients(router: APIRouter, backend: Backend) -> None:
    settings = backend.settings
    others = OtherGateways(settings.other_gateways, read_operators_token(settings))

    def unknown(client_id: str) -> Problem:
        return Problem(404, "unknown_client", f"{client_id}: is not connected")

    @router.get("/v1/clients", **operators_only(ClientsAnswer, "The clients"))
    async def list_clients(
        limit: Annotated[int, Query(ge=1, le=200)] = 20,
        state: State | None = None,
    ) -> Response:
        """The slowest clients first, and how many there are in each state."""
        reports = await backend.health.reports(limit, state)
        states, rows = add_states(reports), join_slowest(reports, limit)
        return json_answer(ClientsAnswer(sum(states.values()), states, rows))

    @router.get(
        "/v1/other-gateways",
        **operators_only(OtherGatewaysAnswer, "The other gateways"),
    )
    async def list_other_gateways(state: State | None = None) -> Response:
        """The clients of the other gateways; each was asked within half a second."""
        rows = await others.ask(state)
        return json_answer(OtherGatewaysAnswer(len(rows), rows))

    @router.get(
        "/v1/clients/{client_id}",
        **operators_only(ClientRow, "The client", missing=UNKNOWN_CLIENT),
    )
    async def get_client(client_id: str) -> Response:
        """One client."""
        row = await backend.health.find_client(client_id)
        if row is None:
            raise unknown(client_id)
        return json_answer(row)

    @router.delete(
        "/v1/clients/{client_id}",
        **operators_only(None, "It is closed", status=204, missing=UNKNOWN_CLIENT),
    )
    async def close_client(client_id: str) -> Response:
        """Close a client's connection; it is told to come back after 30 s."""
        if not await backend.health.dismiss_client(client_id):
            raise unknown(client_id)
        return Response(status_code=204)


def _add_dead_letters(router: APIRouter, backend: Backend) -> None:
    stream = backend.stream

    @router.get(
        "/v1/dead-letters",
        **operators_only(LettersAnswer, "The refused trades", missing=UNKNOWN_JOB),
    )
    async def list_dead_letters(
        limit: Annotated[int, Query(ge=1, le=100)] = 20,
        reason: str | None = None,
        job: str | None = None,
    ) -> Response:
        """The newest refused trades, with their bytes; how many of each reason."""
        try:
            async with asyncio.timeout(ANSWER_S):
                letters = await read_letters(
                    stream.redis, stream.keys, limit, reason, job
                )
        except TimeoutError:
            raise unavailable(f"Redis: {NO_ANSWER}") from None
        except ValueError as error:
            raise Problem(503, "unreadable", str(error)) from None
        if letters is None:
            raise Problem(404, "unknown_job", f"{job}: has never run on this stream")
        return json_answer(letters)


def _add_facts(router: APIRouter, backend: Backend) -> None:
    about_metrics: dict[str, Any] = operators_only(None, "The metrics")
    example = {"example": "tickthrottle_gateway_frames_sent_total 9010000.0\n"}
    about_metrics["responses"][200]["content"] = {"text/plain": example}

    @router.get(
        "/v1/unlisted-instruments",
        **operators_only(UnlistedAnswer, "The instruments without a name"),
    )
    async def list_unlisted() -> Response:
        """The instruments that have traded and are not in the instrument table."""
        instruments = backend.stream.hub.instruments
        unlisted = backend.stream.board.unlisted(instruments)
        data = unlisted[:MOST_UNLISTED]
        return json_answer(UnlistedAnswer(len(instruments), len(unlisted), data))

    @router.get("/v1/settings", **operators_only(SettingsAnswer, "The settings"))
    async def get_settings() -> Response:
        """The settings in force; what is secret is masked."""
        return json_answer(settings_answer(backend.settings))

    @router.get("/v1/counters", **operators_only(Totals, "The counters, by name"))
    async def get_counters() -> Response:
        """What the gateway has counted since it started."""
        return json_answer(backend.stream.totals.read())

    @router.get("/metrics", response_class=PlainTextResponse, **about_metrics)
    async def get_metrics() -> Response:
        """What there is to be known, as Prometheus reads it."""
        body, content_type = await backend.health.exporter.render()
        return Response(body, headers={"content-type": content_type})


def settings_answer(settings: GatewaySettings) -> SettingsAnswer:
    """Show every setting by the name of its environment variable."""
    kind = type(settings)
    rows = []
    for name, field in kind.model_fields.items():
        variable = variable_of(kind, name)
        value, default = getattr(settings, name), field.get_default()
        texts = shown(name, value), shown(name, default)
        rows.append(SettingAnswer(variable, *texts, value == default))
    rows.sort(key=lambda setting: setting.name)
    return SettingsAnswer(len(rows), rows)
