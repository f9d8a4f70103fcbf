"""Requests that come through a trusted proxy count for the client it speaks for."""

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.admission.addresses import address_of
from gateway.transport.uvicorn_http import LATE_S, Guard, connection_of
from gateway.transport.uvicorn_websocket import stream_of

SCHEMES = {b"http", b"https"}


class ForwardedClients:
    """Puts the client's address in the place of a trusted proxy's.

    A client that has been refused too often is answered late. Its proxy is not, and
    neither is another client of it. While it waits its connection counts as one that
    waits for a request: it is among the first to go where there are too many.
    """

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        peer = scope.get("client")
        if peer is not None and self._guard.proxies.is_proxy(peer[0]):
            headers = scope["headers"]
            for name, value in headers:
                if name == b"x-forwarded-proto" and value in SCHEMES:
                    kind = "ws" if scope["type"] == "websocket" else "http"
                    scope["scheme"] = value.decode().replace("http", kind)
            client = self._guard.proxies.client_of(headers)
            if client is not None:
                scope["client"] = (client, 0)
                if self._is_tiresome(scope) and await self._is_gone_later(scope):
                    return
        await self._app(scope, receive, send)

    def _is_tiresome(self, scope: Scope) -> bool:
        is_operators = scope["server"][1] == self._guard.operators_port
        return not is_operators and self._guard.is_tiresome(address_of(scope))

    async def _is_gone_later(self, scope: Scope) -> bool:
        """Wait; say whether the connection has ended meanwhile."""
        plain = self._guard.plain
        self._guard.counters.connections_read_late += 1
        is_stream = scope["type"] == "websocket"
        connection = stream_of(scope) if is_stream else connection_of(scope)
        plain.put_off(connection.transport)
        await asyncio.sleep(LATE_S)
        plain.answer(connection.transport)
        return connection.transport.is_closing()
