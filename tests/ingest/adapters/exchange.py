"""An exchange on this machine: the real handshake, played frames, faults on request."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

Script = Callable[["Session"], None]
"""What the exchange does on one connection; it is closed at the script's end."""


@dataclass
class Session:
    """One connection, as the exchange sees it."""

    socket: ServerConnection
    exchange: "Exchange"

    @property
    def path(self) -> str:
        assert self.socket.request is not None
        return self.socket.request.path

    def hear(self) -> str:
        message = self.socket.recv(timeout=20)
        assert isinstance(message, str)
        self.exchange.heard.append(message)
        return message

    def send(self, *frames: str | bytes) -> None:
        for frame in frames:
            self.socket.send(frame)

    def wait(self) -> None:
        """Stay open, and answer nothing, until the exchange ends or the client goes."""
        try:
            while not self.exchange.ended.is_set():
                try:
                    self.exchange.heard.append(str(self.socket.recv(timeout=0.1)))
                except TimeoutError:
                    continue
        except ConnectionClosed:
            self.exchange.left.set()

    def vanish(self) -> None:
        self.socket.socket.close()


@dataclass
class Exchange:
    """Connections are answered by ``scripts`` one after the other; the last stays."""

    scripts: Sequence[Script | HTTPStatus]
    retry_after: str = ""
    heard: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)
    url: str = ""
    connections: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _turn: threading.local = field(default_factory=threading.local)

    def check(self, socket: ServerConnection, request: Request) -> Response | None:
        """Refuse the handshake if it is the turn of a refusal."""
        with self._lock:
            turn = min(self.connections, len(self.scripts) - 1)
            self.connections += 1
        self.paths.append(request.path)
        script = self.scripts[turn]
        self._turn.script = script
        if isinstance(script, HTTPStatus):
            response = socket.respond(script, f"{script.phrase}\n")
            if self.retry_after:
                response.headers["Retry-After"] = self.retry_after
            return response
        return None

    def talk(self, socket: ServerConnection) -> None:
        script = self._turn.script
        try:
            script(Session(socket, self))
        except (ConnectionClosed, TimeoutError, OSError):
            self.left.set()


@contextmanager
def exchanging(
    *scripts: Script | HTTPStatus, retry_after: str = ""
) -> Iterator[Exchange]:
    """Run an exchange; yield it with its address."""
    exchange = Exchange(scripts, retry_after)
    with serve(
        exchange.talk, "127.0.0.1", 0, process_request=exchange.check, compression=None
    ) as server:
        exchange.url = f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield exchange
        finally:
            exchange.ended.set()
            server.shutdown()
            thread.join(10)


@contextmanager
def answering(
    answers: dict[str, tuple[int, Any]],
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Run a web server; yield its address and what was posted to it."""
    posted: list[dict[str, Any]] = []

    class _Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, answer = answers.get(self.path.partition("?")[0], (404, "no such"))
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            posted.append(json.loads(self.rfile.read(length)))
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", posted
        finally:
            server.shutdown()
            thread.join(10)
