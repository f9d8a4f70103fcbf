"""REST for operators: who is connected, who is slow, and an end to one of them."""

from typing import Annotated

import orjson
from fastapi import APIRouter, Query
from fastapi.responses import Response

from gateway.backend import Backend
from gateway.health.client_states import ClientRow, State
from gateway.http.openapi import OPERATORS
from gateway.http.problems import Problem
from gateway.named_files import read_operators_token
from gateway.operators.operators_schemas import ClientsAnswer, OtherGatewaysAnswer
from gateway.operators.other_gateways import OtherGateways
from gateway.operators.responses import UNKNOWN_CLIENT, closed_answers, ops_answers
from gateway.workers.worker_report import add_states, join_slowest

MOST_CLIENTS = 200
"""Most clients one request may list."""

_JSON = "application/json"


def create_router(backend: Backend) -> APIRouter:
    """Build the router of the clients."""
    router = APIRouter()
    settings = backend.settings
    others = OtherGateways(settings.other_gateways, read_operators_token(settings))

    @router.get(
        "/v1/clients",
        responses=ops_answers(ClientsAnswer, "The clients", 400),
        openapi_extra=OPERATORS,
    )
    async def list_clients(
        limit: Annotated[int, Query(ge=1, le=MOST_CLIENTS)] = 20,
        state: State | None = None,
    ) -> Response:
        """The slowest clients first, and how many there are in each state."""
        reports = await backend.health.reports(limit, state)
        states = add_states(reports)
        rows = join_slowest(reports, limit)
        body = orjson.dumps(ClientsAnswer(sum(states.values()), states, rows))
        return Response(body, media_type=_JSON)

    @router.get(
        "/v1/other-gateways",
        responses=ops_answers(OtherGatewaysAnswer, "The other gateways", 400),
        openapi_extra=OPERATORS,
    )
    async def list_other_gateways(state: State | None = None) -> Response:
        """The clients of the other gateways; each was asked within half a second."""
        rows = await others.ask(state)
        body = orjson.dumps(OtherGatewaysAnswer(len(rows), rows))
        return Response(body, media_type=_JSON)

    @router.get(
        "/v1/clients/{client_id}",
        responses=ops_answers(ClientRow, "The client", missing=UNKNOWN_CLIENT),
        openapi_extra=OPERATORS,
    )
    async def get_client(client_id: str) -> Response:
        """One client."""
        row = await backend.health.find_client(client_id)
        if row is None:
            raise _unknown(client_id)
        return Response(orjson.dumps(row), media_type=_JSON)

    @router.delete(
        "/v1/clients/{client_id}",
        status_code=204,
        responses=closed_answers(),
        openapi_extra=OPERATORS,
    )
    async def close_client(client_id: str) -> Response:
        """Close a client's connection; it is told to come back after 30 s."""
        if not await backend.health.dismiss_client(client_id):
            raise _unknown(client_id)
        return Response(status_code=204)

    return router


def _unknown(client_id: str) -> Problem:
    return Problem(404, "unknown_client", f"{client_id}: is not connected")
