"""Answers that a client may have already: polling costs little (RFC 9110, 13)."""

import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable

from fastapi import Request
from fastapi.responses import Response

from gateway.stream.board import Position

MAX_PREPARED = 16

MAX_PREPARED_BYTES = 33_554_432
"""This many bytes of bodies are kept at a time."""

TAG_BYTES = 12

_TAG = re.compile(r'(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")')
_TAGS = re.compile(rf"(?:[ \t,]*{_TAG.pattern})*[ \t,]*")


FOR_CACHES = "public, max-age=0, s-maxage=1"
"""A cache that many share may answer for a second (RFC 9111, 5.2.2.10). A browser's own
asks each time: a page that was told of something new asks for what there is now.
"""


class ConditionalAnswers:
    """Builds the answers of one listener.

    ``varies``: what is answered depends on the token that is shown. ``may_be_shared``:
    a cache may give an answer to others, too; never one to a token.
    """

    def __init__(self, *, varies: bool, may_be_shared: bool = False) -> None:
        if varies:
            self._headers = {"Cache-Control": "no-cache", "Vary": "Authorization"}
        elif may_be_shared:
            # A page of another origin is told that it may read what it gets.
            self._headers = {"Cache-Control": FOR_CACHES, "Vary": "Origin"}
        else:
            self._headers = {"Cache-Control": "no-cache"}

    def give(self, request: Request, body: bytes) -> Response:
        """Answer with a body, or that the client has it already."""
        etag = make_etag(body)
        return self._unchanged(request, etag) or self._new(etag, body)

    async def give_named(
        self, request: Request, etag: str, build: Callable[[], Awaitable[bytes]]
    ) -> Response:
        """Answer with what ``etag`` names; it is built only for whoever has it not."""
        return self._unchanged(request, etag) or self._new(etag, await build())

    def _unchanged(self, request: Request, etag: str) -> Response | None:
        if not is_known(etag, request.headers.getlist("if-none-match")):
            return None
        return Response(status_code=304, headers={"ETag": etag, **self._headers})

    def _new(self, etag: str, body: bytes) -> Response:
        headers = {"ETag": etag, **self._headers}
        return Response(body, media_type="application/json", headers=headers)


class Prepared:
    """Bodies of one position of the stream, for all who ask for the same."""

    def __init__(self) -> None:
        self._position = Position()
        self._bodies: dict[str, bytes] = {}
        self._bytes = 0

    def find(self, position: Position, etag: str) -> bytes | None:
        """Return the body that was kept, None if there is none."""
        return self._bodies.get(etag) if position == self._position else None

    def keep(self, position: Position, etag: str, body: bytes) -> None:
        """Keep a body until the stream goes on; only a few of them."""
        here = self._position
        if position.epoch == here.epoch and position.offset < here.offset:
            # It was long in the making.
            return
        if position != self._position:
            self._position = position
            self._bodies.clear()
            self._bytes = 0
        has_room = self._bytes + len(body) <= MAX_PREPARED_BYTES
        if has_room and len(self._bodies) < MAX_PREPARED:
            self._bodies[etag] = body
            self._bytes += len(body)


def make_etag(*identity: bytes) -> str:
    """Return the strong tag of what ``identity`` names: a body, or what decides it."""
    digest = hashlib.blake2b(digest_size=TAG_BYTES)
    for part in identity:
        # Where a part ends is part of the name: ("a", "bc") is not ("ab", "c").
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return f'"{digest.hexdigest()}"'


def is_known(etag: str, if_none_match: Iterable[str]) -> bool:
    """Say whether a client that sent these ``If-None-Match`` has ``etag`` already.

    The comparison is the weak one, as for all GETs; ``*`` stands for anything. A field
    that is not well formed matches nothing: the client gets the answer.
    """
    fields = [field.strip() for field in if_none_match]
    return any(
        field == "*" or (_TAGS.fullmatch(field) and etag in _TAG.findall(field))
        for field in fields
    )
