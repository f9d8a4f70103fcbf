"""The stream, ``/v1/stream``: handshake, receiver, cleanup."""

import re
import time
from secrets import token_hex
from typing import Any

import structlog
from starlette.datastructures import Headers, QueryParams
from starlette.types import Message, Receive, Scope, Send

from gateway.admission.addresses import address_of
from gateway.admission.work import WorkRefused
from gateway.http.parameters import find_fault, shorten
from gateway.http.problems import Problem, problem
from gateway.protocol.messages import (
    MOST_FIELDS,
    MOST_LAST,
    BadMessage,
    Subscribe,
    is_last,
    read_id,
    split_list,
)
from gateway.stream.client import Client, Ending
from gateway.stream.commands import put_off_frame, refusal_frame
from gateway.stream.frames import message_frame
from gateway.stream.hub import Hub
from gateway.transport.uvicorn_websocket import StreamProtocol, stream_of
from tickthrottle_client.tick_v1 import PROTOCOL, CloseCode

PATH = "/v1/stream"

PARAMETERS = ("keys", "min_interval_ms", "last", "fields")
"""What the address of a stream may have."""

_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)

log = structlog.get_logger()


class StreamEndpoint:
    """Serves one stream per call. No framework: it is what every connection costs."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a stream until it ends."""
        hub = self._hub
        await receive()
        try:
            command = self._read_request(scope)
        except Problem as error:
            answer = problem(error.status, error.code, str(error))
            await answer(scope, receive, send)
            return
        address = address_of(scope)
        await hub.turns.wait([address])
        is_named = PROTOCOL in scope["subprotocols"]
        accept: dict[str, Any] = {"type": "websocket.accept"}
        await send(accept | ({"subprotocol": PROTOCOL} if is_named else {}))
        refusal = hub.enter(address)
        if refusal is not None:
            ending = Ending(CloseCode.OVERLOADED, refusal)
            hub.close_log.by_us(None, ending.code, ending.reason, time.monotonic())
            code, reason = ending.code, ending.reason
            await send({"type": "websocket.close", "code": code, "reason": reason})
            return
        stream = stream_of(scope)
        try:
            client = hub.join(stream, time.monotonic(), address)
            await self._converse(client, stream, command, receive)
        finally:
            hub.exit(address)

    def _read_request(self, scope: Scope) -> Subscribe | None:
        """Return what the address asks for. Raises Problem if it is not accepted."""
        if scope["path"] != PATH:
            detail = f"{shorten(scope['path'])}: the stream is {PATH}"
            raise Problem(404, "not_found", detail)
        refused = self._hub.refuse_page(Headers(scope=scope))
        if refused is not None:
            raise Problem(403, "not_allowed", refused)
        return read_address(scope["query_string"])

    async def _converse(
        self,
        client: Client,
        stream: StreamProtocol,
        command: Subscribe | None,
        receive: Receive,
    ) -> None:
        """Answer the client's messages until it goes or is sent away."""
        hub = self._hub
        try:
            stream.attach(client)
            client.post(hub.welcome(client, _now_us()))
            if command is not None and await hub.wait_turn(client):
                with hub.turns.charged(client.commands.payers):
                    _quick_start(client, command)
            while True:
                # A client that does not read its answers is not read either.
                await client.room()
                message = await receive()
                if message["type"] == "websocket.disconnect":
                    self._note_end(client, stream)
                    return
                if await hub.wait_turn(client):
                    with hub.turns.charged(client.commands.payers):
                        self._take(client, message)
        finally:
            hub.leave(client)

    def _note_end(self, client: Client, stream: StreamProtocol) -> None:
        ours = stream.protocol_end
        if client.ending is not None:
            # Noted when it was decided.
            return
        if ours is None:
            self._hub.close_log.by_client(stream.peer_code)
        else:
            self._hub.close_log.by_us(client.id, *ours, time.monotonic())

    def _take(self, client: Client, message: Message) -> None:
        text = message.get("text")
        if text is None:
            self._hub.end(client, CloseCode.UNSUPPORTED, "text frames only")
            return
        client.post(_answer(client, text))
        if client.commands.ending is not None:
            self._hub.end(client, *client.commands.ending)


def _answer(client: Client, text: str) -> bytes:
    try:
        return client.commands.answer(text, time.monotonic(), _now_us())
    except Exception:
        incident = token_hex(4)
        log.exception(
            "a client's message could not be answered",
            connection=client.id,
            incident=incident,
        )
        message = "not carried out; the incident is in the log"
        return message_frame(
            "error", read_id(text), code="internal", message=message, incident=incident
        )


def read_address(query: bytes) -> Subscribe | None:
    """Return what a stream's address subscribes to, None if to nothing.

    Raises Problem for what it may not have.
    """
    if not query:
        return None
    parameters = QueryParams(query)
    fault = find_fault(PARAMETERS, (name for name, _ in parameters.multi_items()))
    interval = parameters.get("min_interval_ms", "0")
    keys = split_list(parameters.get("keys", ""))
    if fault is None and not _WHOLE_NUMBER.fullmatch(interval):
        fault = f"min_interval_ms: {shorten(interval)}: must be a whole number from 0"
    last = parameters.get("last", "1")
    if fault is None and not (_WHOLE_NUMBER.fullmatch(last) and is_last(int(last))):
        fault = f"last: {shorten(last)}: must be a whole number from 1 to {MOST_LAST}"
    fields = split_list(parameters.get("fields", ""))
    if fault is None and len(fields) > MOST_FIELDS:
        fault = f"fields: {len(fields)} names, {MOST_FIELDS} at most"
    for name in PARAMETERS[1:]:
        if fault is None and not keys and name in parameters:
            fault = f"{name}: only with keys"
    if fault is not None:
        raise Problem(400, "bad_request", fault)
    if not keys:
        return None
    interval_ms = int(interval)
    return Subscribe(
        None, keys, min_interval_ms=interval_ms, last=int(last), fields=fields
    )


def _quick_start(client: Client, command: Subscribe) -> None:
    """Subscribe to the keys in the address, as a message without an id would."""
    try:
        client.post(client.commands.subscribe(command, time.monotonic()))
    except WorkRefused as refusal:
        client.post(put_off_frame(refusal))
    except BadMessage as error:
        client.post(refusal_frame(error))


def _now_us() -> int:
    return time.time_ns() // 1_000
