"""REST for operators: who is connected, who is slow, and an end to one of them."""

import time
from typing import Annotated

import orjson
from fastapi import APIRouter, Query
from fastapi.responses import Response

from gateway.health.client_census import take_census
from gateway.health.client_states import ClientRow, State, row_of
from gateway.http.openapi import OPERATORS
from gateway.http.problems import Problem
from gateway.operators.operators_schemas import ClientsAnswer
from gateway.operators.responses import UNKNOWN_CLIENT, closed_answers, ops_answers
from gateway.stream.client import Client
from gateway.stream.hub import Hub

MOST_CLIENTS = 200
"""Most clients one request may list."""

_JSON = "application/json"


def create_router(hub: Hub) -> APIRouter:
    """Build the router of the clients."""
    router = APIRouter()

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
        census = await take_census(hub.clients(), limit, state)
        rows = [_row(client) for client in census.slowest()]
        count = sum(census.states.values())
        body = orjson.dumps(ClientsAnswer(count, census.states, rows))
        return Response(body, media_type=_JSON)

    @router.get(
        "/v1/clients/{client_id}",
        responses=ops_answers(ClientRow, "The client", missing=UNKNOWN_CLIENT),
        openapi_extra=OPERATORS,
    )
    async def get_client(client_id: str) -> Response:
        """One client."""
        return Response(orjson.dumps(_row(_find(hub, client_id))), media_type=_JSON)

    @router.delete(
        "/v1/clients/{client_id}",
        status_code=204,
        responses=closed_answers(),
        openapi_extra=OPERATORS,
    )
    async def close_client(client_id: str) -> Response:
        """Close a client's connection; it is told to come back after 30 s."""
        hub.dismiss(_find(hub, client_id))
        return Response(status_code=204)

    return router


def _find(hub: Hub, client_id: str) -> Client:
    client = hub.find(client_id)
    if client is None:
        raise Problem(404, "unknown_client", f"{client_id}: is not connected")
    return client


def _row(client: Client) -> ClientRow:
    return row_of(client, time.monotonic(), time.time_ns() // 1_000_000)
