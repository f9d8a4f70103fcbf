"""uvicorn's HTTP protocol with a deadline for the head of a request, and an end.

uvicorn waits for a head as long as the peer likes: a few thousand connections that
send a byte now and then would hold every socket there is. And it has no way to end a
response that goes on for hours, at a planned stop or when its peer stops reading: the
application finds this object in the request's scope.
"""

from asyncio import TimerHandle, Transport
from collections.abc import Callable, MutableMapping
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

EXTENSION = "tickthrottle.http"


class GuardedProtocol(HttpToolsProtocol):
    """Cuts the connection when a request's head is not complete in time."""

    head_within_s = 10.0
    on_shutdown: Callable[[], None] | None = None
    _deadline: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Expect a request soon."""
        super().connection_made(transport)
        self._set_deadline()

    def on_message_begin(self) -> None:
        """Begin to read a request, put this object in its scope."""
        super().on_message_begin()
        self.scope["extensions"] = {EXTENSION: self}  # type: ignore[dict-item]
        if self._deadline is None:
            self._set_deadline()

    def on_headers_complete(self) -> None:
        """Run the application on a request whose head is there."""
        self._drop_deadline()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        self._drop_deadline()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Let a response that goes on and on end."""
        super().shutdown()
        if self.on_shutdown is not None:
            self.on_shutdown()

    def abort(self) -> None:
        """Cut the connection, whatever is still to be sent."""
        self.transport.abort()

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(self.head_within_s, self.abort)

    def _drop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def create_protocol(within_s: float) -> type[GuardedProtocol]:
    """Return the protocol with this deadline."""
    return type("Guarded", (GuardedProtocol,), {"head_within_s": within_s})


def connection_of(scope: MutableMapping[str, Any]) -> GuardedProtocol | None:
    """Return the request's connection, None under another server."""
    connection = scope.get("extensions", {}).get(EXTENSION)
    return connection if isinstance(connection, GuardedProtocol) else None
