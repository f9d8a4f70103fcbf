"""Answers that a client may have already: polling costs little (RFC 9110, 13)."""

from collections.abc import Callable

from fastapi import Request
from fastapi.responses import Response

from gateway.board import Position
from gateway.etag import is_known, make_etag

MAX_PREPARED = 16


class Answers:
    """Builds the answers of one listener.

    ``varies``: what is answered depends on the token that is shown.
    """

    def __init__(self, *, varies: bool) -> None:
        self._headers = {"Cache-Control": "no-cache"}
        if varies:
            self._headers["Vary"] = "Authorization"

    def give(self, request: Request, body: bytes) -> Response:
        """Answer with a body, or that the client has it already."""
        return self.give_named(request, make_etag(body), lambda: body)

    def give_named(
        self, request: Request, etag: str, build: Callable[[], bytes]
    ) -> Response:
        """Answer with what ``etag`` names; it is built only for whoever has it not."""
        headers = {"ETag": etag, **self._headers}
        if is_known(etag, request.headers.getlist("if-none-match")):
            return Response(status_code=304, headers=headers)
        return Response(build(), media_type="application/json", headers=headers)


class Prepared:
    """Bodies of one position of the stream, for all who ask for the same."""

    def __init__(self) -> None:
        self._position = Position()
        self._bodies: dict[str, bytes] = {}

    def find(self, position: Position, etag: str) -> bytes | None:
        """Return the body that was kept, None if there is none."""
        return self._bodies.get(etag) if position == self._position else None

    def keep(self, position: Position, etag: str, body: bytes) -> None:
        """Keep a body until the stream goes on; only so many of them."""
        if position != self._position:
            self._position = position
            self._bodies.clear()
        if len(self._bodies) < MAX_PREPARED:
            self._bodies[etag] = body
