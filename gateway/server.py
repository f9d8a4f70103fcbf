"""Runs the gateway: uvicorn with the options the stream relies on."""

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.websockets.websockets_sansio_impl import (
    WebSocketsSansIOProtocol,
)

from gateway.app import GatewayApp, create_app
from gateway.http import create_protocol
from gateway.settings import GatewaySettings
from gateway.transport import StreamProtocol

BACKLOG = 4_096

MAX_UNSENT_BYTES = 65_536
"""What the kernel may hold of a connection beyond what is on its way."""

log = structlog.get_logger()


class PortTaken(OSError):
    """A port that cannot be listened on; the message says which and why."""


def create_server(
    app: ASGIApp, settings: GatewaySettings, *, writes_directly: bool = True
) -> uvicorn.Server:
    """Build the server; run it with the sockets from ``bind``.

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


def bind(settings: GatewaySettings) -> tuple[socket.socket, socket.socket]:
    """Take both ports, so that one in use is known before anything starts.

    Return the public socket and the operators'. Raises PortTaken.
    """
    public = _bind(settings.host, settings.port)
    try:
        return public, _bind(settings.ops_host, settings.operators_port)
    except PortTaken:
        public.close()
        raise


def _bind(host: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it: values in the kernel can no longer be conflated.
        # Not every system has it; there the kernel's own limit applies.
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            option = socket.TCP_NOTSENT_LOWAT
            sock.setsockopt(socket.IPPROTO_TCP, option, MAX_UNSENT_BYTES)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise PortTaken(
            f"cannot listen on port {port} of {host}: {error.strerror or error}"
        ) from error
    return sock


@dataclass(frozen=True, slots=True)
class Listening:
    """A gateway that has its ports and can be run."""

    app: GatewayApp
    server: uvicorn.Server
    public: socket.socket
    operators: socket.socket

    def run(self) -> None:
        """Serve until told to stop."""
        self.server.run(sockets=[self.public, self.operators])


def listen(settings: GatewaySettings, *, writes_directly: bool = True) -> Listening:
    """Take the ports and build what answers at them.

    Raises PortTaken, and ValueError if a file named in the settings cannot be read.
    """
    public, operators = bind(settings)
    try:
        app = create_app(settings)
    except ValueError:
        public.close()
        operators.close()
        raise
    app.operators_port = operators.getsockname()[1]
    server = create_server(app, settings, writes_directly=writes_directly)
    return Listening(app, server, public, operators)


def run_gateway(settings: GatewaySettings) -> int:
    """Serve until told to stop; return the exit code for the process.

    0 after SIGINT or SIGTERM from outside, 1 if a port cannot be taken, a file named
    in the settings cannot be read or the feed failed. Open streams are closed with
    1012.
    """
    try:
        listening = listen(settings)
    except (PortTaken, ValueError) as error:
        log.error(str(error))
        return 1
    log.info(
        "gateway listening",
        url=_url(listening.public),
        operators=_url(listening.operators),
    )
    with _stop_signals_end_quietly():
        listening.run()
    log.info("gateway stopped")
    return 1 if listening.app.has_failed else 0


def _url(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


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
