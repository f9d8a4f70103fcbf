"""Clients that speak HTTP: those of the event stream, and those that poll."""

import asyncio
import re
import time
from collections.abc import Callable
from typing import cast

from bench.load.audience import Member
from bench.load.clients import Client
from bench.load.stage import Stage
from bench.load.targets import Target, create_socket
from gateway.views import ALL

CONNECT_S = 30.0

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_TAG = re.compile(rb"\r\netag: *([^\r]+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_DATA = b"data: "


class _HttpClient(Client):
    """Has a connection, or none at the moment."""

    def __init__(self, member: Member, target: Target, stage: Stage) -> None:
        super().__init__(member, target, stage)
        self.transport: asyncio.Transport | None = None

    def cut(self) -> None:
        """Cut the line."""
        if self.transport is not None:
            self.transport.abort()


class EventClient(_HttpClient):
    """Reads the event stream as fast as it can: ``sse``."""

    def open(self) -> None:
        """Connect and ask."""
        self.stage.run(_connect(self, lambda: _EventProtocol(self)))

    def opened(self, transport: asyncio.Transport) -> None:
        """Ask for the stream, from where it was left."""
        self.transport = transport
        since = self.came(time.time() * 1e3)
        self.tally.requests += 1
        further = "" if since is None else f"Last-Event-ID: {since[0]}:{since[1]}\r\n"
        path = f"/v1/sse?keys={','.join(self.member.keys)}"
        transport.write(_request(self.target, path, further))

    def closed(self) -> None:
        """Have the end come after all that was received before."""
        self.transport = None
        self.stage.put(self, None)


class PollingClient(_HttpClient):
    """Asks for its quotes at times that never move, one request at a time.

    What is late is not asked for twice: the newest due time counts. An answer that
    says that nothing has changed costs its head.
    """

    def __init__(self, member: Member, target: Target, stage: Stage) -> None:
        super().__init__(member, target, stage)
        self._due_s = 0.0
        self._is_asking = False
        self._is_overdue = False
        self._is_fresh = True
        self._tag = b""
        self._path = "/v1/quotes"
        if member.keys != (ALL,):
            self._path += f"?isins={','.join(member.keys)}"

    def begin(self) -> None:
        """Begin to ask; called once."""
        self._due_s = time.monotonic()
        self._poll()

    def refused(self) -> None:
        """Ask again when it is due."""
        self._is_asking = False
        if not self.is_over and not self.stage.is_frozen:
            self.tally.refused += 1

    def look(self, now_ms: float) -> None:
        """A line on which nothing was asked for is not silent."""

    def opened(self, transport: asyncio.Transport) -> None:
        """Ask what the connection was opened for."""
        self.transport = transport
        self._is_fresh = True
        self.came(time.time() * 1e3)
        self._ask()

    def closed(self) -> None:
        """Idle connections end, by either side; only an open question is lost by it.

        A question that met its end on a connection that had been idle is asked again.
        """
        self.transport = None
        self.is_connected = False
        self.stage.connected[self.kind] -= 1
        if self._is_asking and not self._is_fresh and not self.is_over:
            self._start()
        elif self._is_asking:
            self.refused()

    def answered(self, head: bytes, body: bytes) -> None:
        """Queue an answer: stamped now, checked later."""
        self._is_asking = self._is_fresh = False
        if head[9:12] == b"200":
            tag = _TAG.search(head)
            self._tag = b"" if tag is None else tag[1]
        self.stage.put(self, head + body)
        if self._is_overdue:
            self._start()

    def hear(self, payload: bytes, at_ms: float) -> None:
        """Check one answer."""
        head, _, body = payload.partition(b"\r\n\r\n")
        tally, checker = self.tally, self.checker
        tally.frames += 1
        tally.bytes += len(payload)
        faults = checker.fault_count
        status = head[9:12]
        if status == b"200":
            try:
                answer, items = self.stage.rows.read(body)
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
        if self.is_over or self.stage.is_frozen:
            return
        self._due_s += self.member.every_s
        self.stage.later(max(0.0, self._due_s - time.monotonic()), self._poll)
        if self._is_asking:
            self._is_overdue = True
        else:
            self._start()

    def _start(self) -> None:
        self._is_asking, self._is_overdue = True, False
        if self.transport is not None:
            self._ask()
        else:
            self.stage.run(_connect(self, lambda: _AnswerProtocol(self)))

    def _ask(self) -> None:
        if self.transport is None:
            return
        self.tally.requests += 1
        tag = self._tag.decode()
        further = f"If-None-Match: {tag}\r\n" if tag else ""
        self.transport.write(_request(self.target, self._path, further))


class _EventProtocol(asyncio.Protocol):
    """Takes the events out of a chunked answer."""

    def __init__(self, client: EventClient) -> None:
        self._client = client
        self._in = b""
        self._is_streaming = False
        self._body = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._client.opened(cast("asyncio.Transport", transport))

    def connection_lost(self, error: Exception | None) -> None:
        self._client.closed()

    def data_received(self, data: bytes) -> None:
        client = self._client
        client.heard_ms = time.time() * 1e3
        self._in += data
        if not self._is_streaming:
            head, separator, rest = self._in.partition(b"\r\n\r\n")
            if not separator:
                return
            if head[9:12] != b"200" or not _CHUNKED.search(head):
                # What 1013 is to a WebSocket.
                code = head[9:12].decode("ascii", "replace")
                client.close_code = "1013" if code == "503" else code
                client.cut()
                return
            self._in, self._is_streaming = rest, True
        if self._take_chunks():
            client.cut()
        *events, rest_of_event = self._body.split(b"\n\n")
        if events:
            self._body = bytearray(rest_of_event)
            for event in events:
                at = event.find(_DATA)
                if at >= 0:
                    client.stage.put(client, bytes(event[at + len(_DATA) :]))

    def _take_chunks(self) -> bool:
        """Move whole chunks into the body; say whether the answer is over."""
        data, start = self._in, 0
        while (line_end := data.find(b"\r\n", start)) >= 0:
            size = int(data[start:line_end], 16)
            end = line_end + 2 + size
            if len(data) < end + 2:
                break
            if size == 0:
                return True
            self._body += data[line_end + 2 : end]
            start = end + 2
        self._in = data[start:]
        return False


class _AnswerProtocol(asyncio.Protocol):
    """Takes answers with a known length from a connection that is kept."""

    def __init__(self, client: PollingClient) -> None:
        self._client = client
        self._in = bytearray()
        self._needed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._client.opened(cast("asyncio.Transport", transport))

    def connection_lost(self, error: Exception | None) -> None:
        self._client.closed()

    def data_received(self, data: bytes) -> None:
        self._in += data
        while len(self._in) >= self._needed:
            end = self._in.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._in[: end + 4])
            length = _LENGTH.search(head)
            has_body = head[9:12] != b"304" and length is not None
            size = int(length[1]) if has_body and length is not None else 0
            self._needed = len(head) + size
            if len(self._in) < self._needed:
                return
            body = bytes(self._in[len(head) : self._needed])
            del self._in[: self._needed]
            self._needed = 0
            self._client.answered(head, body)


async def _connect(
    client: _HttpClient, protocol: Callable[[], asyncio.Protocol]
) -> None:
    target = client.target
    loop = asyncio.get_running_loop()
    try:
        sock = create_socket(target, client.member.address, None)
        try:
            async with asyncio.timeout(CONNECT_S):
                await loop.sock_connect(sock, (target.host, target.port))
            await loop.create_connection(protocol, sock=sock)
        except BaseException:
            sock.close()
            raise
    except OSError:
        client.refused()


def _request(target: Target, path: str, further: str) -> bytes:
    token = f"Authorization: Bearer {target.token}\r\n" if target.token else ""
    return (
        f"GET {path} HTTP/1.1\r\nHost: {target.host}:{target.port}\r\n"
        f"{token}{further}\r\n"
    ).encode()
