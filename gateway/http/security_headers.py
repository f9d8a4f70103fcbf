"""Response headers that keep the page from loading or being loaded elsewhere."""

from collections.abc import Collection

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

IMPORT_MAP_SHA256 = "BrRJsut3u5RMZw1Rnr9ewt1UwPmz88tIB5LpgJeVnPA="
"""Of the one inline script: the import map, the same to the byte in every page."""

HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'self'; script-src 'self' 'sha256-{IMPORT_MAP_SHA256}'; "
        "img-src 'self' data:; object-src 'none'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


class SecurityHeaders:
    """Adds ``HEADERS`` to every HTTP response that does not set them itself.

    Answers at the paths of ``open_files`` may be read by every page.
    """

    def __init__(self, app: ASGIApp, open_files: Collection[str] = ()) -> None:
        self._app = app
        self._open_files = open_files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; headers are added as the response starts."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if scope["path"] in self._open_files:
                    headers["Access-Control-Allow-Origin"] = "*"
            await send(message)

        await self._app(scope, receive, send_with_headers)
