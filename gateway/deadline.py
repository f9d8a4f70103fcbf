"""uvicorn's HTTP protocol with a deadline for the head of a request.

uvicorn waits for it as long as the peer likes: a few thousand connections that send a
byte now and then would hold every socket there is.
"""

from asyncio import TimerHandle, Transport

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


def create_protocol(within_s: float) -> type[HttpToolsProtocol]:
    """Return the protocol that cuts connections whose request takes longer."""

    class DeadlineProtocol(HttpToolsProtocol):
        """Cuts the connection when a request's head is not complete in time."""

        _deadline: TimerHandle | None = None

        def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._set_deadline()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            if self._deadline is None:
                self._set_deadline()

        def on_headers_complete(self) -> None:
            self._drop_deadline()
            super().on_headers_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._drop_deadline()
            super().connection_lost(exc)

        def _set_deadline(self) -> None:
            self._deadline = self.loop.call_later(within_s, self.transport.abort)

        def _drop_deadline(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return DeadlineProtocol
