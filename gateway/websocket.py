"""The stream, ``/v1/stream``: handshake, receiver, cleanup."""

import time
from secrets import token_hex
from typing import Any

import structlog
from starlette.datastructures import Headers, QueryParams
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.utils import ClientDisconnected

from gateway import frames
from gateway.asgi import AwaitingSender, until_one_ends
from gateway.client import Client, Ending, Peer
from gateway.closings import GONE
from gateway.hub import Hub
from gateway.protocol import BadMessage, CloseCode, Subscribe, split_list
from gateway.transport import StreamProtocol, stream_of

PATH = "/v1/stream"

log = structlog.get_logger()


class StreamEndpoint:
    """Serves one stream per call. Plain ASGI: it is what every connection costs."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a stream until it ends."""
        hub = self._hub
        await receive()
        if scope["path"] != PATH or not hub.allows_page(Headers(scope=scope)):
            # Before it is accepted: the upgrade is refused with 403.
            await send({"type": "websocket.close"})
            return
        is_named = frames.PROTOCOL in scope["subprotocols"]
        accept: dict[str, Any] = {"type": "websocket.accept"}
        await send(accept | ({"subprotocol": frames.PROTOCOL} if is_named else {}))
        address = scope["client"][0] if scope.get("client") else ""
        refusal = hub.enter(address)
        if refusal is not None:
            code = CloseCode.OVERLOADED
            hub.closings.by_us(None, code, refusal, time.monotonic())
            await send({"type": "websocket.close", "code": code, "reason": refusal})
            return
        try:
            await self._stream(scope, receive, send, Peer(address))
        except (ClientDisconnected, OSError):
            # Gone in the middle of a send.
            pass
        finally:
            hub.exit(address)

    async def _stream(
        self, scope: Scope, receive: Receive, send: Send, peer: Peer
    ) -> None:
        hub, now_s = self._hub, time.monotonic()
        keys = QueryParams(scope["query_string"]).get("keys")
        stream = stream_of(scope)
        if stream is not None:
            client = hub.join(stream, now_s, peer)
            stream.attach(client, hub.settings.slow_close_s)
            await self._converse(client, keys, receive)
            return
        sender = AwaitingSender(hub.settings.slow_close_s)
        client = hub.join(sender, now_s, peer)

        async def write(frame: bytes) -> None:
            await send({"type": "websocket.send", "text": frame.decode()})

        async def close(ending: Ending) -> None:
            code, reason = ending.code, ending.reason
            await send({"type": "websocket.close", "code": code, "reason": reason})

        await until_one_ends(
            self._converse(client, keys, receive), sender.run(client, write, close)
        )

    async def _converse(
        self, client: Client, keys: str | None, receive: Receive
    ) -> None:
        """Answer the client's messages until it goes or is sent away."""
        hub = self._hub
        try:
            client.post(hub.welcome(client, _now_us()))
            _quick_start(client, keys)
            while True:
                # A client that does not read its answers is not read either.
                await client.room()
                message = await receive()
                if message["type"] == "websocket.disconnect":
                    self._note_end(client, message.get("code", GONE))
                    return
                if client.ending is None:
                    self._take(client, message)
        finally:
            hub.leave(client)

    def _note_end(self, client: Client, code: int) -> None:
        if client.ending is not None:
            # Noted when it was decided.
            return
        closings, sender = self._hub.closings, client.sender
        if isinstance(sender, StreamProtocol):
            if (ours := sender.protocol_end) is not None:
                closings.by_us(client.id, *ours, time.monotonic())
                return
            code = sender.peer_code
        closings.by_client(code)

    def _take(self, client: Client, message: Message) -> None:
        text = message.get("text")
        if text is None:
            self._hub.end(client, CloseCode.UNSUPPORTED, "text frames only")
            return
        client.post(_answer(client, text))
        if client.session.ending is not None:
            self._hub.end(client, *client.session.ending)


def _answer(client: Client, text: str) -> bytes:
    try:
        return client.session.answer(text, time.monotonic(), _now_us())
    except Exception:
        incident = token_hex(4)
        log.exception(
            "a client's message could not be answered",
            connection=client.id,
            incident=incident,
        )
        return frames.error_frame(
            "internal", "not carried out; the incident is in the log", incident=incident
        )


def _quick_start(client: Client, keys: str | None) -> None:
    """Subscribe to the keys in the address, as a message without an id would."""
    if not keys:
        return
    try:
        client.post(client.session.subscribe(Subscribe(None, split_list(keys))))
    except BadMessage as error:
        client.post(frames.error_frame(error.code, str(error)))


def _now_us() -> int:
    return time.time_ns() // 1_000
