"""Answers as gzip for clients that take it, compressed once for all who ask the same.

Not for event streams, whose frames have to leave at once. A compressed answer has the
tag of the plain one as a weak one (RFC 9110, 8.8.1): who has either has the other.
"""

import asyncio
import gzip
import re
from collections.abc import Hashable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MIN_BYTES = 1_024
"""Shorter bodies leave as they are."""

MAX_KEPT_BYTES = 2_097_152
"""A body that is longer than this is compressed anew for whoever asks."""

KEPT_BYTES = 33_554_432
"""Compressed bodies are kept of so many plain bytes; the pages' files have 1 MB."""

LEVEL = 4

_TYPES = re.compile(r"text/(?!event-stream)|image/svg|application/([a-z]+\+)?json")
_NONE = re.compile(r"q=0(\.0{0,3})?", re.ASCII)


class KeptBodies:
    """Bodies by a name, compressed or about to be; what nobody asked for longest goes.

    ``most_bytes`` bounds what they were before they were compressed.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._tasks: dict[Hashable, tuple[asyncio.Task[bytes], int]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def get(self, name: Hashable) -> asyncio.Task[bytes] | None:
        """Return a body that is kept; it was asked for last from now on."""
        kept = self._tasks.pop(name, None)
        if kept is None:
            return None
        self._tasks[name] = kept
        return kept[0]

    def put(self, name: Hashable, task: asyncio.Task[bytes], size: int) -> None:
        """Keep a body that is not kept yet, of so many bytes."""
        self._tasks[name] = task, size
        self._bytes += size
        while self._bytes > self._most_bytes:
            _, gone = self._tasks.pop(next(iter(self._tasks)))
            self._bytes -= gone


class Compression:
    """Compresses bodies in a thread: the event loop goes on meanwhile."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._kept = KeptBodies(KEPT_BYTES)

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
        if name[1] is None or len(body) > MAX_KEPT_BYTES:
            return await asyncio.to_thread(_gzip, body)
        task = self._kept.get(name)
        if task is None:
            task = asyncio.create_task(asyncio.to_thread(_gzip, body))
            self._kept.put(name, task, len(body))
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
