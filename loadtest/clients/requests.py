"""Clients that speak HTTP: those of the event stream, and those that poll."""

import asyncio
import time
from typing import cast

from httptools import HttpResponseParser

from loadtest.client_mix import Member
from loadtest.clients.client_loop import ClientLoop
from loadtest.clients.load_client import LoadClient
from loadtest.clients.targets import Target, create_socket
from tickthrottle_client.tick_v1 import ALL

CONNECT_S = 30.0


class _HttpClient(LoadClient, asyncio.Protocol):
    """Has a connection, or none at the moment; a parser tells it what came."""

    def __init__(self, member: Member, target: Target, client_loop: ClientLoop) -> None:
        super().__init__(member, target, client_loop)
        self.transport: asyncio.Transport | None = None
        self.parser = HttpResponseParser(self)

    async def connect(self) -> None:
        """Connect, or note that there is no connection."""
        target = self.target
        loop = asyncio.get_running_loop()
        try:
            sock = create_socket(target, self.member.address, None)
            try:
                async with asyncio.timeout(CONNECT_S):
                    await loop.sock_connect(sock, (target.host, target.port))
                await loop.create_connection(lambda: self, sock=sock)
            except BaseException:
                sock.close()
                raise
        except OSError:
            self.refused()

    def ask(self, path: str, further: str) -> None:
        """Ask for a path; ``further`` are whole lines of the request's head."""
        target = self.target
        token = f"Authorization: Bearer {target.token}\r\n" if target.token else ""
        if self.transport is not None:
            self.tally.requests += 1
            self.transport.write(
                f"GET {path} HTTP/1.1\r\nHost: {target.host}:{target.port}\r\n"
                f"{token}{further}\r\n".encode()
            )

    def cut(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.parser = HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        self.heard_ms = time.time() * 1e3
        self.parser.feed_data(data)


class EventClient(_HttpClient):
    """Reads the event stream as fast as it can: ``sse``."""

    def open(self) -> None:
        self._rest = b""
        self.client_loop.run(self.connect())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the stream, from where it was left."""
        super().connection_made(transport)
        since = self.came(time.time() * 1e3)
        further = "" if since is None else f"Last-Event-ID: {since[0]}:{since[1]}\r\n"
        self.ask(f"/v1/sse?keys={','.join(self.member.keys)}", further)

    def connection_lost(self, error: Exception | None) -> None:
        """Have the end come after all that was received before."""
        self.transport = None
        self.client_loop.put(self.heard, None)

    def on_headers_complete(self) -> None:
        status = self.parser.get_status_code()
        if status != 200:
            # What 1013 is to a WebSocket.
            self.close_code = "1013" if status == 503 else str(status)
            self.cut()

    def on_body(self, body: bytes) -> None:
        *events, self._rest = (self._rest + body).split(b"\n\n")
        for event in events:
            _, mark, data = event.partition(b"data: ")
            if mark:
                self.client_loop.put(self.heard, data)

    def on_message_complete(self) -> None:
        self.cut()


class PollingClient(_HttpClient):
    """Asks for its quotes at times that never move, one request at a time.

    What is late is not asked for twice: the newest due time counts. An answer that
    says that nothing has changed costs its head.
    """

    def __init__(self, member: Member, target: Target, client_loop: ClientLoop) -> None:
        super().__init__(member, target, client_loop)
        self._due_s = 0.0
        self._is_asking = False
        self._is_overdue = False
        self._is_fresh = True
        self._tag = self._new_tag = self._body = b""
        self._path = "/v1/quotes"
        if member.keys != (ALL,):
            self._path += f"?isins={','.join(member.keys)}"

    def begin(self) -> None:
        self._due_s = time.monotonic()
        self._poll()

    def refused(self) -> None:
        self._is_asking = False
        if not self.is_over and not self.client_loop.is_frozen:
            self.tally.refused += 1

    def look(self, now_ms: float) -> None:
        """A line on which nothing was asked for is not silent."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._is_fresh = True
        self.came(time.time() * 1e3)
        self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        """Idle connections end, by either side; only an open question is lost by it.

        A question that met its end on a connection that had been idle is asked again.
        """
        self.transport = None
        self.is_connected = False
        self.client_loop.connected[self.kind] -= 1
        if self._is_asking and not self._is_fresh and not self.is_over:
            self._start()
        elif self._is_asking:
            self.refused()

    def data_received(self, data: bytes) -> None:
        self.tally.bytes += len(data)
        super().data_received(data)

    def on_message_begin(self) -> None:
        self._new_tag = self._body = b""

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take the tag to ask with the next time."""
        if name.lower() == b"etag":
            self._new_tag = value

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self._is_asking = self._is_fresh = False
        status = self.parser.get_status_code()
        if status == 200:
            self._tag = self._new_tag
        self.client_loop.put(self.heard, b"%d%b" % (status, self._body))
        if self._is_overdue:
            self._start()

    def hear(self, payload: bytes, at_ms: float) -> None:
        status, body = payload[:3], payload[3:]
        tally, checker = self.tally, self.checker
        tally.frames += 1
        faults = checker.fault_count
        if status == b"200":
            try:
                answer, items = self.client_loop.rows.read(body)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                checker.fault(f"not an answer, {error}: {body[:120]!r}")
            else:
                tally.items += len(items)
                checker.take_quotes(answer, items, at_ms)
                self.has_joined = self.has_joined or checker.is_joined
        elif status == b"304":
            if not checker.is_whole and checker.epoch is not None:
                checker.fault("304, though nothing was shown")
        else:
            tally.refused += 1
            if status.startswith(b"4"):
                checker.fault(f"refused with {status.decode()}: {body[:120]!r}")
        tally.faults += checker.fault_count - faults

    def _poll(self) -> None:
        if self.is_over or self.client_loop.is_frozen:
            return
        self._due_s += self.member.every_s
        self.client_loop.later(max(0.0, self._due_s - time.monotonic()), self._poll)
        if self._is_asking:
            self._is_overdue = True
        else:
            self._start()

    def _start(self) -> None:
        self._is_asking, self._is_overdue = True, False
        if self.transport is not None:
            self._ask()
        else:
            self.client_loop.run(self.connect())

    def _ask(self) -> None:
        tag = self._tag.decode()
        self.ask(self._path, f"If-None-Match: {tag}\r\n" if tag else "")
