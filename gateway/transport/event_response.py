"""What a response of server-sent events needs, whatever it sends."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.types import Receive, Scope

from gateway.transport.uvicorn_http import connection_of

HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    # Proxies that buffer would turn a stream into a download (nginx).
    (b"x-accel-buffering", b"no"),
)


@contextmanager
def ended_at_shutdown(scope: Scope, end: Callable[[], None]) -> Iterator[None]:
    """Have ``end`` called within the block at a planned stop of the server."""
    connection = connection_of(scope)
    connection.on_shutdown = end
    try:
        yield
    finally:
        connection.on_shutdown = None


async def until_gone(receive: Receive) -> None:
    """Wait until the peer is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
