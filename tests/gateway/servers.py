"""A real gateway on a free port, and a client for it."""

import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread
from typing import Any

import uvicorn
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from gateway.admission.bounds import BOUNDS, Bounds
from gateway.app import GatewayApp
from gateway.server import listen
from gateway.settings import GatewaySettings
from gateway.stream.hub import Hub
from gateway.upstream import instrument_follower, stream_follower
from tests.conftest import PATIENCE, eventually
from tests.gateway.asyncapi import check_message

# A gateway lets clients in when it has looked at Redis, or after so long. On a machine
# that runs the tests a look may take longer: a test's client would find nothing.
instrument_follower.FIRST_LOOK_S *= PATIENCE
stream_follower.FIRST_LOOK_S *= PATIENCE


@dataclass(frozen=True)
class Gateway:
    """A running gateway."""

    host: str
    port: int
    server: uvicorn.Server | None
    operators_port: int | None = None
    app: GatewayApp | None = None

    def stop(self) -> None:
        """Stop as SIGTERM would."""
        if self.server is not None:
            self.server.should_exit = True

    def get(self, path: str) -> tuple[int, bytes]:
        """Return status and body of a GET."""
        status, body, _ = self.fetch(path)
        return status, body

    def fetch(self, path: str, **headers: str) -> tuple[int, bytes, dict[str, str]]:
        """Return status, body and headers of a GET; in names, ``_`` stands for ``-``.

        The names of the headers that are returned are in small letters.
        """
        url = f"http://{self.host}:{self.port}{path}"
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(url, headers=sent)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read(), dict(answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(), dict(error.headers)

    def close_client(self, client_id: str) -> int:
        """Close a client as an operator at this port; return the status."""
        return self.send("DELETE", f"/v1/clients/{client_id}")

    def send(self, method: str, path: str) -> int:
        """Ask for a change; return the status."""
        url = f"http://{self.host}:{self.port}{path}"
        asked = urllib.request.Request(url, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def health(self) -> dict[str, Any]:
        """Return what /health/ready says to operators."""
        health: dict[str, Any] = json.loads(self.operators.get("/health/ready")[1])
        return health

    @property
    def operators(self) -> "Gateway":
        """The same gateway, asked by an operator."""
        port = self.port + 1 if self.operators_port is None else self.operators_port
        return Gateway(self.host, port, self.server, port)

    @property
    def hub(self) -> Hub:
        """Its hub, which lives in another thread."""
        assert self.app is not None
        return self.app._backend.stream.hub

    def count(self, name: str) -> int:
        """Return a counter."""
        return int(self.health()["counters"][name])

    def is_loaded(self) -> bool:
        """Say whether it serves, and has read the stored state."""
        try:
            return self.count("reloads") > 0
        except OSError:
            return False

    def wait_until(self, offset: int) -> None:
        """Wait until the gateway has the window with this offset."""
        eventually(lambda: self.health()["offset"] >= offset)

    def wait_for(self, name: str, least: int = 1) -> None:
        """Wait until a counter has come so far."""
        eventually(lambda: self.count(name) >= least)

    @contextmanager
    def stream(self, query: str = "", **options: Any) -> Iterator["Stream"]:
        """Open a stream and take its welcome."""
        url = f"ws://{self.host}:{self.port}/v1/stream{query}"
        with connect(url, compression=None, **options) as connection:
            yield Stream(connection)

    def close_code_of_a_new_stream(self) -> int | None:
        """Open a stream that is not welcome; return how it was closed."""
        url = f"ws://{self.host}:{self.port}/v1/stream"
        with connect(url, compression=None) as connection:
            with suppress(ConnectionClosed):
                connection.recv(timeout=10)
            return connection.protocol.close_code


def upgrade_request(query: str = "", *headers: str) -> bytes:
    """Return what opens a stream on a bare socket, without any library's help."""
    lines = [
        f"GET /v1/stream{query} HTTP/1.1",
        "Host: x",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        *headers,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class Stream:
    """A client's side of a stream."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.welcome = self.take("welcome")

    def say(self, **message: Any) -> None:
        """Send a message."""
        self.connection.send(json.dumps(message))

    def raw(self, within_s: float = 10) -> bytes:
        """Return the next frame."""
        return self.connection.recv(timeout=within_s, decode=False)

    def next(self) -> dict[str, Any]:
        """Return the next frame, which has to be as the documents say."""
        frame: dict[str, Any] = json.loads(self.raw())
        check_message(frame)
        return frame

    def take(self, kind: str) -> dict[str, Any]:
        """Return the next frame, which has to be of this kind.

        Heartbeats, and words about windows that do not come, are passed over: when
        they come depends on how long a test takes.
        """
        deadline_s = time.monotonic() + 20 * PATIENCE
        while time.monotonic() < deadline_s:
            frame = self.next()
            if frame["type"] == kind:
                return frame
            passing = ("heartbeat", "status")
            assert frame["type"] in passing, f"wanted {kind}, got {frame}"
        raise AssertionError(f"wanted {kind}, it did not come")

    def subscribe(self, *keys: str, **further: Any) -> list[dict[str, Any]]:
        """Subscribe and return the items of the snapshot."""
        self.say(op="subscribe", keys=list(keys), **further)
        self.take("ack")
        items = []
        while True:
            piece = self.take("snapshot")
            items += piece["data"]
            if piece["final"]:
                return items

    def close_code(self) -> int | None:
        """Read to the end and return how the connection was closed."""
        with suppress(ConnectionClosed):
            while True:
                self.raw()
        return self.connection.protocol.close_code


@contextmanager
def running_gateway(
    redis_url: str, bounds: Bounds = BOUNDS, **settings: Any
) -> Iterator[Gateway]:
    """Run a gateway in a thread of its own, on uvloop as in production."""
    chosen = GatewaySettings.model_validate(
        {"redis_url": redis_url, "port": 0, **settings}
    )
    found = listen(chosen, bounds=bounds)
    host, port = found.public.getsockname()[:2]
    with serving(found.server, found.public, found.operators):
        yield Gateway(host, port, found.server, found.app.operators_port, found.app)


@contextmanager
def serving(server: uvicorn.Server, *sockets: socket.socket) -> Iterator[None]:
    """Run a server in a thread until the block ends."""
    thread = Thread(target=server.run, kwargs={"sockets": list(sockets)})
    thread.start()
    try:
        eventually(lambda: server.started)
        yield
    finally:
        server.should_exit = True
        thread.join(timeout=10 * PATIENCE)
        assert not thread.is_alive()
