"""The endpoint ``/v1/stream``: handshake, one receiver, one sender, cleanup."""

import asyncio
import time
from secrets import token_hex

import structlog
from fastapi import APIRouter, WebSocket
from uvicorn.protocols.utils import ClientDisconnected

from gateway import frames
from gateway.hub import Client, Hub
from gateway.protocol import BadMessage, CloseCode, Subscribe
from gateway.transport import StreamProtocol, stream_of

log = structlog.get_logger()


class _Ended(Exception):
    """This side ends the connection."""

    def __init__(self, code: CloseCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def create_router(hub: Hub) -> APIRouter:
    """Build the router of the stream."""
    router = APIRouter()

    @router.websocket("/v1/stream")
    async def stream(websocket: WebSocket) -> None:
        await _serve(websocket, hub)

    return router


async def _serve(websocket: WebSocket, hub: Hub) -> None:
    offered = websocket.scope["subprotocols"]
    await websocket.accept(frames.PROTOCOL if frames.PROTOCOL in offered else None)
    stream = stream_of(websocket.scope)
    client = hub.join(time.monotonic())
    try:
        client.post(_welcome(hub))
        _quick_start(client, websocket.query_params.get("keys"))
        async with asyncio.TaskGroup() as tasks:
            sender = tasks.create_task(_send(stream, client, hub))
            await _receive(websocket, client)
            sender.cancel()
    except* ClientDisconnected:
        pass
    except* _Ended as group:
        ended = group.exceptions[0]
        if isinstance(ended, _Ended):
            stream.end(ended.code, ended.reason)
    finally:
        hub.leave(client)


async def _receive(websocket: WebSocket, client: Client) -> None:
    """Answer the client's messages until it goes."""
    while True:
        # A client that does not read its answers is not read either.
        await client.room()
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return
        text = message.get("text")
        if text is None:
            raise _Ended(CloseCode.UNSUPPORTED, "text frames only")
        client.post(_answer(client, text))


async def _send(stream: StreamProtocol, client: Client, hub: Hub) -> None:
    """Write whatever the client is due; the only writer of its connection."""
    heartbeat_s = hub.settings.heartbeat_ms / 1_000
    sent_s = time.monotonic()
    while True:
        # Room first, then the frame: what is not built yet cannot grow old.
        if not await stream.drain(hub.settings.slow_close_s):
            hub.counters.clients_slow_closed += 1
            patience = f"{hub.settings.slow_close_s:g}"
            raise _Ended(CloseCode.SLOW, f"nothing was read for {patience} s")
        frame = client.next_frame()
        if frame is None:
            due_s = sent_s + heartbeat_s - time.monotonic()
            if due_s > 0:
                await client.wait(due_s)
                continue
            frame = frames.heartbeat_frame(client.session.position(), _now_us())
        stream.send_frame(frame)
        hub.counters.frames_sent += 1
        sent_s = time.monotonic()


def _answer(client: Client, text: str) -> bytes:
    try:
        return client.session.answer(text, time.monotonic(), _now_us())
    except Exception:
        incident = token_hex(4)
        log.exception("a client's message could not be answered", incident=incident)
        return frames.error_frame(
            "internal", "not carried out; the incident is in the log", incident=incident
        )


def _welcome(hub: Hub) -> bytes:
    settings = hub.settings
    return frames.welcome_frame(
        f"c-{token_hex(4)}",
        hub.board.position.epoch,
        hub.board.window_ms,
        settings.heartbeat_ms,
        _now_us(),
        {
            "keys": settings.max_keys,
            "ops_per_second": settings.ops_per_second,
            "message_bytes": settings.max_message_bytes,
        },
    )


def _quick_start(client: Client, keys: str | None) -> None:
    """Subscribe to the keys in the address, as a message without an id would."""
    if not keys:
        return
    wanted = tuple(dict.fromkeys(key for key in keys.split(",") if key))
    try:
        client.post(client.session.subscribe(Subscribe(None, wanted)))
    except BadMessage as error:
        client.post(frames.error_frame(error.code, str(error)))


def _now_us() -> int:
    return time.time_ns() // 1_000
