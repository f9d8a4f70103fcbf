"""Runs the gateway: uvicorn with the options the stream relies on."""

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.websockets.websockets_sansio_impl import (
    WebSocketsSansIOProtocol,
)

from gateway.app import create_app
from gateway.http import create_protocol
from gateway.settings import GatewaySettings
from gateway.transport import StreamProtocol

BACKLOG = 4_096

MAX_UNSENT_BYTES = 65_536
"""What the kernel may hold of a connection beyond what is on its way."""

log = structlog.get_logger()


def create_server(
    app: ASGIApp, settings: GatewaySettings, *, writes_directly: bool = True
) -> uvicorn.Server:
    """Build the server; run it with the socket from ``bind``.

    ``writes_directly=False`` has it speak plain ASGI, as any other server would.
    """
    return uvicorn.Server(
        uvicorn.Config(
            app,
            loop="uvloop",
            http=create_protocol(settings.request_s),
            ws=StreamProtocol if writes_directly else WebSocketsSansIOProtocol,
            ws_max_size=settings.max_message_bytes,
            # Heartbeats show clients that we live; this shows us that they do.
            ws_ping_interval=60,
            ws_ping_timeout=20,
            # Only frames that are compressed once for all: for each connection anew
            # it would cost more than all the rest together.
            ws_per_message_deflate=settings.compression and writes_directly,
            backlog=BACKLOG,
            access_log=False,
            log_config=None,
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=2,
        )
    )


def bind(settings: GatewaySettings) -> socket.socket:
    """Take the port, so that one already in use is known before anything starts.

    Raises OSError.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    sock = socket.socket(family)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it: values in the kernel can no longer be conflated.
        # Not every system has it; there the kernel's own limit applies.
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            option = socket.TCP_NOTSENT_LOWAT
            sock.setsockopt(socket.IPPROTO_TCP, option, MAX_UNSENT_BYTES)
        sock.bind((settings.host, settings.port))
    except OSError:
        sock.close()
        raise
    return sock


def run_gateway(settings: GatewaySettings) -> int:
    """Serve until told to stop; return the exit code for the process.

    0 after SIGINT or SIGTERM from outside, 1 if the port cannot be taken, the key for
    tokens cannot be read or the feed failed. Open streams are closed with 1012.
    """
    try:
        sock = bind(settings)
    except OSError as error:
        log.error(
            f"cannot listen on port {settings.port} of {settings.host}: "
            f"{error.strerror or error}"
        )
        return 1
    try:
        app = create_app(settings)
    except ValueError as error:
        sock.close()
        log.error(str(error))
        return 1
    server = create_server(app, settings)
    host, port = sock.getsockname()[:2]
    log.info("gateway listening", url=f"http://{host}:{port}")
    with _stop_signals_end_quietly():
        server.run(sockets=[sock])
    log.info("gateway stopped")
    return 1 if app.state.feed_failed else 0


@contextmanager
def _stop_signals_end_quietly() -> Iterator[None]:
    """Let ``run_gateway`` return: uvicorn raises a stop signal again when done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stops = (signal.SIGINT, signal.SIGTERM)
    before = {stop: signal.signal(stop, lambda *_: None) for stop in stops}
    try:
        yield
    finally:
        for stop, handler in before.items():
            signal.signal(stop, handler)
