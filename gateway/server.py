"""Runs the gateway: uvicorn with the options the stream relies on."""

import signal
import socket
import sys
import threading
from asyncio import Transport
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil

import structlog
import uvicorn
from starlette.types import ASGIApp

from gateway.admission.bounds import BOUNDS, MAX_MESSAGE_BYTES, Bounds
from gateway.admission.connections import PlainConnections
from gateway.admission.limits import Budgets
from gateway.admission.shared_figures import Seat, take_seat
from gateway.app import GatewayApp, create_app
from gateway.settings import GatewaySettings
from gateway.stream.counters import Counters
from gateway.transport.forwarded import ForwardedClients
from gateway.transport.uvicorn_http import (
    OPERATORS_SPARE,
    Guard,
    create_protocol,
    cut_at_stop,
)
from gateway.transport.uvicorn_websocket import StreamProtocol
from gateway.trusted_proxies import TrustedProxies
from ingest.process.descriptors import raise_descriptor_limit
from ingest.process.service_manager import tell_ready

BACKLOG = 4_096

MAX_UNSENT_BYTES = 65_536
"""What the kernel may hold of a connection beyond what is on its way."""

MAX_UNREAD_BYTES = 16_384
"""What the kernel may hold of what a peer sends; it takes twice as much.

Thereby the most that one read brings, and that the event loop is held up by.
"""

GONE_S = 5.0
"""The kernel cuts a peer that takes nothing, this long after the gateway would."""

REFUSED_FOR_S = 10
"""Refusals of so many seconds an address may have at once."""

SWITCH_S = 0.001
"""So long the event loop waits for a thread, each time that it goes on: of Python's own
5 ms a request with some twenty steps has a tenth of a second.
"""

RESERVED_DESCRIPTORS = 128
"""Open files that are kept for other things than connections: Redis, pages, metrics."""

log = structlog.get_logger()


class GatewayFailed(RuntimeError):
    """The gateway cannot run or cannot go on; the message says why."""


class PortTaken(OSError):
    """A port that cannot be listened on; the message says which and why."""


def create_server(
    app: ASGIApp,
    settings: GatewaySettings,
    counters: Counters | None = None,
    operators_port: int | None = None,
    *,
    seat: Seat | None = None,
    max_body_bytes: int = 0,
    bounds: Bounds = BOUNDS,
) -> uvicorn.Server:
    """Build the server; run it with the sockets from ``bind``.

    ``seat`` is a worker's. ``max_body_bytes`` is for requests with bodies that are
    larger than ``MAX_REQUEST_BYTES``, which then bounds the head.
    """
    seat = seat or take_seat(0)
    plain = PlainConnections[Transport](
        settings.max_connections,
        settings.max_connections_per_address,
        _room_for_connections(settings),
        seat.tally(seat.connections),
    )
    refusals = Budgets(
        settings.refusals_per_second,
        ceil(REFUSED_FOR_S * settings.refusals_per_second),
        seat.refusal_moments,
        seat.key,
    )
    proxies = TrustedProxies(settings.forwarded_allow_ips)
    guard = Guard(
        *(counters or Counters(), plain, refusals, proxies),
        *(operators_port, max_body_bytes, bounds.request_s),
    )
    return _Server(
        uvicorn.Config(
            cut_at_stop(ForwardedClients(app, guard)),
            interface="asgi3",
            # With "*" it would believe an address that the client has written.
            proxy_headers=False,
            loop="uvloop",
            http=create_protocol(guard),
            ws=StreamProtocol,
            ws_max_size=MAX_MESSAGE_BYTES,
            # Heartbeats show clients that we live; this shows us that they do.
            ws_ping_interval=60,
            ws_ping_timeout=20,
            # Only frames that are compressed once for all: for each connection anew
            # it would cost more than all the rest together.
            ws_per_message_deflate=settings.compression,
            backlog=BACKLOG,
            access_log=False,
            log_config=None,
            # Its warnings are about what strangers send, as often as they like.
            log_level="error",
            server_header=False,
            timeout_graceful_shutdown=2,
        )
    )


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            tell_ready()


def _room_for_connections(settings: GatewaySettings) -> int:
    """Raise the limit of open files; return how many connections it has room for."""
    allowed = raise_descriptor_limit()
    room = max(1, allowed - RESERVED_DESCRIPTORS - OPERATORS_SPARE)
    if room * settings.workers < settings.max_clients:
        log.warning(
            "the limit of open files is too low for max_clients",
            open_files=allowed,
            room=room,
            max_clients=settings.max_clients,
        )
    return room


def bind(
    settings: GatewaySettings, bounds: Bounds = BOUNDS
) -> tuple[socket.socket, socket.socket]:
    """Take both ports, so that one in use is known before anything starts.

    Return the public socket and the operators'. Raises PortTaken.
    """
    public = bind_public(settings, bounds)
    try:
        host, port = settings.operators_host, settings.port_for_operators
        return public, _bind(host, port, bounds, is_shared=False)
    except PortTaken:
        public.close()
        raise


def bind_public(
    settings: GatewaySettings, bounds: Bounds = BOUNDS, *, is_shared: bool = False
) -> socket.socket:
    """Take the public port. Raises PortTaken.

    With ``is_shared`` other processes of this user may have it too: the system spreads
    the connections over those that listen.
    """
    return _bind(settings.host, settings.port, bounds, is_shared=is_shared)


def _bind(host: str, port: int, bounds: Bounds, *, is_shared: bool) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    # Connections inherit them. Values in the kernel can no longer be conflated.
    of_tcp = {
        "TCP_NOTSENT_LOWAT": MAX_UNSENT_BYTES,
        "TCP_USER_TIMEOUT": round((bounds.slow_close_s + GONE_S) * 1_000),
    }
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        for name, value in of_tcp.items():
            # Not every system has it; there the kernel's own limit applies.
            if hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MAX_UNREAD_BYTES)
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
        sys.setswitchinterval(SWITCH_S)
        with stop_signals_end_quietly(self.server):
            self.server.run(sockets=[self.public, self.operators])


def listen(
    settings: GatewaySettings,
    *,
    bounds: Bounds = BOUNDS,
) -> Listening:
    """Take the ports and build what answers at them.

    Raises PortTaken, and ValueError if a file named in the settings cannot be read.
    """
    sockets = bind(settings, bounds)
    try:
        app = create_app(settings, bounds=bounds)
    except ValueError:
        for sock in sockets:
            sock.close()
        raise
    return listen_at(*sockets, app, settings, bounds=bounds)


def listen_at(
    public: socket.socket,
    operators: socket.socket,
    app: GatewayApp,
    settings: GatewaySettings,
    *,
    bounds: Bounds = BOUNDS,
) -> Listening:
    """Build what answers at ports that were taken already."""
    app.operators_port = operators.getsockname()[1]
    server = create_server(
        *(app, settings, app.counters, app.operators_port),
        seat=app.seat,
        bounds=bounds,
    )
    return Listening(app, server, public, operators)


def run_gateway(settings: GatewaySettings) -> None:
    """Serve until SIGINT or SIGTERM. Open streams are then closed with 1012.

    Raises GatewayFailed if a port cannot be taken, if a file named in the settings
    cannot be read, or if the feed has failed.
    """
    try:
        listening = listen(settings)
    except (PortTaken, ValueError) as error:
        raise GatewayFailed(str(error)) from error
    urls = url_of(listening.public), url_of(listening.operators)
    log.info("gateway listening", url=urls[0], operators=urls[1])
    listening.run()
    log.info("gateway stopped")
    if listening.app.has_failed:
        raise GatewayFailed("a part of the gateway has died; its log says why")


def url_of(sock: socket.socket) -> str:
    """Return what to ask for, to be answered at a socket."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def stop_signals_end_quietly(server: uvicorn.Server) -> Iterator[None]:
    """Let whoever runs a server go on: uvicorn raises a stop signal again when done.

    A signal that comes before uvicorn listens for it ends the server, too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop_server(*_: object) -> None:
        server.should_exit = True

    stops = (signal.SIGINT, signal.SIGTERM)
    before = {stop: signal.signal(stop, stop_server) for stop in stops}
    try:
        yield
    finally:
        for stop, handler in before.items():
            signal.signal(stop, handler)
