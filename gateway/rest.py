"""REST: what everybody may ask for. Prices keep their exact text."""

from importlib.metadata import version

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import Response

from gateway import issues_rest, quotes_rest, windows_rest
from gateway.answers import Answers
from gateway.backend import Backend
from gateway.frames import PROTOCOL
from gateway.openapi import answers, conditional
from gateway.operators import OperatorAccess
from gateway.permits import create_permit
from gateway.schemas import Version

NAME = "tickthrottle"


def create_router(backend: Backend, access: OperatorAccess | None) -> APIRouter:
    """Build the router of issues, quotes and windows.

    ``access`` is given on the operators' listener, None on the public one.
    """
    router = APIRouter()
    hub = backend.hub
    permit = create_permit(hub, access)
    answer = Answers(varies=hub.tokens is not None)
    _add_version(router)
    router.include_router(
        issues_rest.create_router(backend.issues, backend.history, permit, answer)
    )
    router.include_router(
        quotes_rest.create_router(backend.board, backend.issues, permit, answer)
    )
    router.include_router(
        windows_rest.create_router(
            backend.board,
            backend.window_log,
            backend.settings.windows_limit,
            permit,
            answer,
        )
    )
    return router


def read_version() -> str:
    """Return the version of the installed project."""
    return version(NAME)


def _add_version(router: APIRouter) -> None:
    body = orjson.dumps({"name": NAME, "version": read_version(), "protocol": PROTOCOL})
    answer = Answers(varies=False)

    @router.get(
        "/v1/version",
        tags=["version"],
        responses=answers(Version, description="The version", is_conditional=True),
        openapi_extra=conditional(needs_token=False),
    )
    async def get_version(request: Request) -> Response:
        """What answers, and which stream protocol it speaks."""
        return answer.give(request, body)
