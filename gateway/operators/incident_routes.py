"""REST for operators: what was wrong in the last days, and what was done about it."""

from typing import Annotated

import orjson
from fastapi import APIRouter, Query
from fastapi.responses import Response

from gateway.backend import Backend
from gateway.health.incidents.incident_book import NOTE_CHARS
from gateway.http.openapi import OPERATORS
from gateway.http.problems import Problem
from gateway.operators.operators_schemas import IncidentsAnswer
from gateway.operators.responses import (
    noted_answers,
    ops_answers,
)

_JSON = "application/json"


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
    """Build the router of the incidents."""
    router = APIRouter()

    @router.get(
        "/v1/incidents",
        responses=ops_answers(IncidentsAnswer, "The incidents", 503),
        openapi_extra=OPERATORS,
    )
    async def list_incidents() -> Response:
        """What was wrong in the last 14 days, 500 incidents at most.

        What still lasts comes first, then the newest.
        """
        incidents = await backend.health.incidents()
        if incidents is None:
            raise _away()
        body = orjson.dumps(IncidentsAnswer(len(incidents), incidents))
        return Response(body, media_type=_JSON)

    @router.put(
        "/v1/incidents/{incident_id}/note",
        status_code=204,
        responses=noted_answers(),
        openapi_extra=OPERATORS,
    )
    async def note_incident(incident_id: str, text: Note) -> Response:
        """Write down what was done; it takes the place of an earlier note."""
        is_known = await backend.health.note_incident(incident_id, text)
        if is_known is None:
            raise _away()
        if not is_known:
            raise Problem(404, "unknown_incident", f"{incident_id}: is not remembered")
        return Response(status_code=204)

    return router


def _away() -> Problem:
    return Problem(503, "unavailable", "the worker that keeps incidents is starting")
