"""The endpoint ``/v1/stream``: handshake, one receiver, one sender, cleanup."""

import asyncio
import time
from random import uniform
from secrets import randbelow, token_hex

import structlog
from fastapi import APIRouter, WebSocket
from uvicorn.protocols.utils import ClientDisconnected

from gateway import frames
from gateway.hub import Client, Hub
from gateway.limits import Lifetime
from gateway.origins import is_allowed
from gateway.protocol import BadMessage, CloseCode, Subscribe
from gateway.transport import RECONNECT_WITHIN_MS, StreamProtocol, stream_of

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
    headers, settings = websocket.headers, hub.settings
    origin = headers.get("origin")
    if not is_allowed(origin, headers.get("host"), settings.allowed_origins):
        hub.counters.clients_origin_refused += 1
        log.warning("a page may not open a stream", origin=origin)
        # Before it is accepted: the upgrade is refused with 403.
        await websocket.close()
        return
    offered = websocket.scope["subprotocols"]
    await websocket.accept(frames.PROTOCOL if frames.PROTOCOL in offered else None)
    address = websocket.client.host if websocket.client else ""
    refusal = hub.admission.enter(address)
    if refusal is not None:
        hub.counters.clients_full_refused += 1
        await websocket.close(CloseCode.OVERLOADED, refusal)
        return
    try:
        await _stream(websocket, hub)
    finally:
        hub.admission.leave(address)


async def _stream(websocket: WebSocket, hub: Hub) -> None:
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
        if client.session.ending is not None:
            raise _Ended(*client.session.ending)


async def _send(stream: StreamProtocol, client: Client, hub: Hub) -> None:
    """Write whatever the client is due; the only writer of its connection."""
    settings, session = hub.settings, client.session
    heartbeat_s = settings.heartbeat_ms / 1_000
    sent_s = time.monotonic()
    # Those who came together shall not all go together.
    most_s = settings.max_stream_s * uniform(0.9, 1)
    lifetime = Lifetime(sent_s, settings.first_keys_s, most_s)
    while True:
        # Room first, then the frame: what is not built yet cannot grow old.
        if not await stream.drain(hub.settings.slow_close_s):
            hub.counters.clients_slow_closed += 1
            patience = f"{hub.settings.slow_close_s:g}"
            raise _Ended(CloseCode.SLOW, f"nothing was read for {patience} s")
        now_s = time.monotonic()
        left_s = lifetime.left_s(now_s, has_asked=session.has_asked)
        if left_s <= 0:
            _end_life(stream, hub, has_asked=session.has_asked)
        frame = client.next_frame()
        if frame is None:
            due_s = sent_s + heartbeat_s - now_s
            if due_s > 0:
                await client.wait(min(due_s, left_s))
                continue
            frame = frames.heartbeat_frame(client.session.position(), _now_us())
        stream.send_frame(frame)
        hub.counters.frames_sent += 1
        sent_s = time.monotonic()


def _end_life(stream: StreamProtocol, hub: Hub, *, has_asked: bool) -> None:
    if not has_asked:
        hub.counters.clients_idle_closed += 1
        patience = f"{hub.settings.first_keys_s:g}"
        raise _Ended(CloseCode.POLICY, f"nothing was asked for in {patience} s")
    hub.counters.clients_retired += 1
    delay_ms = randbelow(RECONNECT_WITHIN_MS)
    stream.send_frame(frames.notice_frame("restart", delay_ms, "the stream is old"))
    raise _Ended(CloseCode.RESTART, "the stream is old")


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
