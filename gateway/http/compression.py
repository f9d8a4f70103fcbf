"""Answers as gzip for clients that take it, compressed once for all who ask the same.

Not for event streams, whose frames have to leave at once. A compressed answer has the
tag of the plain one as a weak one (RFC 9110, 8.8.1): who has either has the other.
"""

import asyncio
import gzip
import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MIN_BYTES = 1_024
"""Shorter bodies leave as they are."""

MAX_KEPT_BYTES = 2_097_152
"""A body that is longer than this is compressed anew for whoever asks."""

MOST_KEPT = 32
"""This many compressed bodies are kept."""

LEVEL = 4

_TYPES = re.compile(r"text/(?!event-stream)|image/svg|application/([a-z]+\+)?json")
_NONE = re.compile(r"q=0(\.0{0,3})?", re.ASCII)


class Compression:
    """Compresses bodies in a thread: the event loop goes on meanwhile."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._kept: dict[tuple[str, str], asyncio.Task[bytes]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and its answer compressed if that serves."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = Headers(scope=scope)
        start: Message | None = None
        pieces: list[bytes] = []

        async def send_compressed(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if not _is_compressible(message["status"], headers):
                    _keep_weak(headers, asked)
                    await send(message)
                    return
                headers.add_vary_header("Accept-Encoding")
                if takes_gzip(asked.get("accept-encoding", "")):
                    start = message
                else:
                    await send(message)
            elif start is None:
                await send(message)
            else:
                pieces.append(message.get("body", b""))
                if not message.get("more_body", False):
                    await self._finish(scope, send, start, pieces)

        await self._app(scope, receive, send_compressed)

    async def _finish(
        self, scope: Scope, send: Send, start: Message, pieces: list[bytes]
    ) -> None:
        headers = MutableHeaders(scope=start)
        etag = headers.get("etag")
        plain = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        body = await self._compress((scope["path"], etag), plain)
        headers["Content-Encoding"] = "gzip"
        headers["Content-Length"] = str(len(body))
        if etag is not None and not etag.startswith("W/"):
            headers["ETag"] = f"W/{etag}"
        await send(start)
        await send({"type": "http.response.body", "body": body})

    async def _compress(self, name: tuple[str, str | None], body: bytes) -> bytes:
        path, etag = name
        if etag is None or len(body) > MAX_KEPT_BYTES:
            return await asyncio.to_thread(_gzip, body)
        task = self._kept.pop((path, etag), None)
        if task is None:
            task = asyncio.create_task(asyncio.to_thread(_gzip, body))
        self._kept[path, etag] = task
        if len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        # One that stops waiting must not spoil it for the others.
        return await asyncio.shield(task)


def takes_gzip(accept_encoding: str) -> bool:
    """Say whether a client that sent this takes gzip (RFC 9110, 12.5.3)."""
    for part in accept_encoding.lower().split(","):
        coding, *weights = (text.strip() for text in part.split(";"))
        if coding in ("gzip", "*"):
            return not any(_NONE.fullmatch(weight) for weight in weights)
    return False


def _is_compressible(status: int, headers: Headers) -> bool:
    return (
        status == 200
        and int(headers.get("content-length", "0")) >= MIN_BYTES
        and _TYPES.match(headers.get("content-type", "")) is not None
        and "content-encoding" not in headers
    )


def _keep_weak(headers: MutableHeaders, asked: Headers) -> None:
    """Name what a client has already as it was named to it."""
    etag = headers.get("etag")
    if etag is not None and f"W/{etag}" in asked.get("if-none-match", ""):
        headers["ETag"] = f"W/{etag}"


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, LEVEL, mtime=0)
