"""REST for operators only: never among the routes of the public port."""

import asyncio
from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Query
from fastapi.responses import PlainTextResponse, Response

from gateway.backend import Backend
from gateway.health.pipeline_reader import ANSWER_S, NO_ANSWER
from gateway.http.openapi import OPERATORS
from gateway.http.problems import Problem, unavailable
from gateway.operators import clients, incident_routes, pipeline_routes
from gateway.operators.dead_letters import read_letters
from gateway.operators.operators_schemas import (
    LettersAnswer,
    SettingAnswer,
    SettingsAnswer,
    Totals,
    UnlistedAnswer,
)
from gateway.operators.responses import UNKNOWN_JOB, metrics_answers, ops_answers
from gateway.settings import GatewaySettings
from ingest.process.redact import shown
from ingest.settings import variable_of

MOST_LETTERS = 100
"""Most dead letters one request may ask for."""

MOST_UNLISTED = 1_000
"""This many instruments without a name are listed."""

_JSON = "application/json"


def create_router(backend: Backend) -> APIRouter:
    """Build the operators' routes; each asks for the operators' token, if any."""
    router = APIRouter(
        dependencies=[Depends(backend.access.check_request)], tags=["operators"]
    )
    router.include_router(pipeline_routes.create_router(backend))
    router.include_router(incident_routes.create_router(backend))
    router.include_router(clients.create_router(backend))
    _add_dead_letters(router, backend)
    _add_facts(router, backend)
    return router


def _add_dead_letters(router: APIRouter, backend: Backend) -> None:
    @router.get(
        "/v1/dead-letters",
        responses=ops_answers(
            LettersAnswer, "The refused trades", 400, 503, missing=UNKNOWN_JOB
        ),
        openapi_extra=OPERATORS,
    )
    async def list_dead_letters(
        limit: Annotated[int, Query(ge=1, le=MOST_LETTERS)] = 20,
        reason: str | None = None,
        job: str | None = None,
    ) -> Response:
        """The newest refused trades, with their bytes; how many of each reason."""
        try:
            async with asyncio.timeout(ANSWER_S):
                letters = await read_letters(
                    backend.stream.redis, backend.stream.keys, limit, reason, job
                )
        except TimeoutError:
            raise unavailable(f"Redis: {NO_ANSWER}") from None
        except ValueError as error:
            raise Problem(503, "unreadable", str(error)) from None
        if letters is None:
            raise Problem(404, "unknown_job", f"{job}: has never run on this stream")
        return Response(orjson.dumps(letters), media_type=_JSON)


def _add_facts(router: APIRouter, backend: Backend) -> None:
    @router.get(
        "/v1/unlisted-instruments",
        responses=ops_answers(UnlistedAnswer, "The instruments without a name"),
        openapi_extra=OPERATORS,
    )
    async def list_unlisted() -> Response:
        """The instruments that have traded and are not in the instrument table."""
        instruments = backend.stream.hub.instruments
        unlisted = backend.stream.board.unlisted(instruments)
        shown = unlisted[:MOST_UNLISTED]
        body = orjson.dumps(UnlistedAnswer(len(instruments), len(unlisted), shown))
        return Response(body, media_type=_JSON)

    @router.get(
        "/v1/settings",
        responses=ops_answers(SettingsAnswer, "The settings"),
        openapi_extra=OPERATORS,
    )
    async def get_settings() -> Response:
        """The settings in force; what is secret is masked."""
        body = orjson.dumps(settings_answer(backend.settings))
        return Response(body, media_type=_JSON)

    @router.get(
        "/v1/counters",
        responses=ops_answers(Totals, "The counters, by name"),
        openapi_extra=OPERATORS,
    )
    async def get_counters() -> Response:
        """What the gateway has counted since it started."""
        return Response(orjson.dumps(backend.stream.totals.read()), media_type=_JSON)

    @router.get(
        "/metrics",
        response_class=PlainTextResponse,
        responses=metrics_answers(),
        openapi_extra=OPERATORS,
    )
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
