"""A line to a gateway that has one fault: what the kit has to find."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.request import urlopen

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.http11 import Request, Response

Frame: TypeAlias = dict[str, Any]
Frames: TypeAlias = list[Any]


class Digits(float):
    """A number that keeps its text."""

    def __new__(cls, text: str) -> "Digits":
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str


def of(*kinds: str) -> Callable[[Callable[[Frame], object]], "Change"]:
    """Have a change be made to frames of some kinds."""

    def limited(change: Callable[[Frame], object]) -> "Change":
        def apply(frame: Frame, _: "Memory") -> Frames:
            if frame["type"] in kinds:
                change(frame)
            return [frame]

        return apply

    return limited


@dataclass
class Memory:
    """What a fault remembers of its connection."""

    last: Frame | None = None
    count: int = 0


Change: TypeAlias = Callable[[Frame, Memory], Frames]


def first(frame: Frame) -> Frame:
    """Return the first item of a frame, or what may be changed in its place."""
    items = frame.get("data") or [{}]
    return items[0] if isinstance(items[0], dict) else {}


def put(name: str, value: object) -> Callable[[Frame], object]:
    return lambda frame: first(frame).update({name: value})


def drop(*kinds: str) -> Change:
    return lambda frame, _: [] if frame["type"] in kinds else [frame]


def twice(*kinds: str) -> Change:
    return lambda frame, _: [frame] * (2 if frame["type"] in kinds else 1)


def repeated(frame: Frame, memory: Memory) -> Frames:
    if frame["type"] != "update":
        return [frame]
    older, memory.last = memory.last, frame
    return [frame] if older is None else [frame, older]


def kept(frame: Frame, memory: Memory) -> Frames:
    """Say the newest update again after each answer to unsubscribe."""
    if frame["type"] == "snapshot":
        memory.last = {**frame, "type": "update", "merged": 0}
    is_dropped = frame.get("op") == "unsubscribe"
    return [frame, memory.last] if is_dropped else [frame]


def accepted(frame: Frame) -> None:
    frame["accepted"] += [one["key"] for one in frame["rejected"]]
    frame["rejected"] = []


FAULTS: dict[str, tuple[str, Change]] = {
    "a price with an exponent": ("S-1", of("update")(put("price", Digits("1.0e2")))),
    "a sum with zeros at its end": ("S-1", of("update")(put("high", Digits("9.50")))),
    "an unknown op is an internal fault": (
        "S-2",
        of("error")(lambda frame: frame.update(code="internal")),
    ),
    "binary frames": ("S-4", lambda frame, _: [json.dumps(frame).encode()]),
    "a message without a type": (
        "S-4",
        of("heartbeat")(lambda frame: frame.pop("type")),
    ),
    "no welcome": ("S-5", drop("welcome")),
    "an answer without its id": ("S-8", of("pong")(lambda frame: frame.pop("id"))),
    "two answers": ("S-8", twice("pong")),
    "no heartbeats": ("S-9", drop("heartbeat")),
    "bad keys are accepted": ("S-10", of("ack")(accepted)),
    "no snapshot": ("S-15", drop("snapshot")),
    "trades in a snapshot": ("S-16", of("snapshot")(put("trades", 3))),
    "given up, and still sent": ("S-18", kept),
    "an instrument twice in a message": (
        "S-19",
        of("update")(lambda frame: frame["data"].append(first(frame))),
    ),
    "an item goes back": ("S-19", of("update")(put("time", 1))),
    "an older update comes again": ("S-19", repeated),
    "an update comes twice": ("S-20", twice("update")),
    "spans overlap": ("S-21", of("update")(lambda frame: frame.update(merged=2))),
    "an interval of no whole windows": (
        "S-22",
        of("ack")(lambda frame: frame.update(min_interval_ms=6_001)),
    ),
    "a value that its trades do not make": (
        "S-25",
        of("update")(lambda frame: first(frame).update(volume=1, value=5)),
    ),
    "a day that is not its sums": (
        "S-27",
        of("snapshot")(lambda frame: first(frame).get("day", {}).update(trades=10**6)),
    ),
    "nothing is resumed": (
        "S-33",
        of("ack")(lambda frame: frame.update(resumed=False)),
    ),
    "a code that stands for nothing": (
        "S-11",
        of("ack")(lambda frame: frame.pop("codes", None)),
    ),
    "a market without its members": (
        "S-12",
        of("ack")(lambda frame: frame.pop("members", None)),
    ),
    "trades that are not counted": (
        "S-30",
        of("trades")(lambda frame: frame.update(number=2 * frame["number"])),
    ),
    "an item of other trades": ("S-24", of("update")(put("trades", 77))),
    "a close without a reason": ("S-35", lambda frame, _: [frame]),
    "rows under another number": (
        "S-49",
        of("ack", "snapshot")(lambda frame: frame.pop("names", None)),
    ),
}
"""Each fault: the clause it breaks, and what becomes of a frame of the gateway."""


def text_of(frame: Any) -> str | bytes:
    if isinstance(frame, bytes):
        return frame
    texts: list[str] = []

    def mark(value: Any) -> Any:
        if isinstance(value, Digits):
            texts.append(value.text)
            return f"\0{len(texts) - 1}"
        if isinstance(value, dict):
            return {name: mark(one) for name, one in value.items()}
        return [mark(one) for one in value] if isinstance(value, list) else value

    text = json.dumps(mark(frame))
    for number, digits in enumerate(texts):
        text = text.replace(f'"\\u0000{number}"', digits, 1)
    return text


@asynccontextmanager
async def faulty(url: str, fault: str | None) -> AsyncIterator[str]:
    """Serve a gateway's stream with a fault, or none; yield the address."""
    _, change = FAULTS[fault] if fault else ("", lambda frame, _: [frame])

    async def ask(connection: ServerConnection, request: Request) -> Response | None:
        path, _, query = request.path.partition("?")
        if not path.endswith("/stream"):
            http = url.replace("ws:", "http:").removesuffix("/v1/stream") + path
            body = await asyncio.to_thread(lambda: urlopen(http).read())
            return connection.respond(200, body.decode())
        named = request.headers.get("Sec-WebSocket-Protocol")
        try:
            connection.upstream = await connect(  # type: ignore[attr-defined]
                f"{url}?{query}" if query else url,
                subprotocols=[named] if named else None,  # type: ignore[list-item]
                origin=request.headers.get("Origin"),  # type: ignore[arg-type]
                compression=None,
                ping_interval=None,
            )
        except InvalidStatus as error:
            return connection.respond(error.response.status_code, "refused\n")
        return None

    async def relay(connection: ServerConnection) -> None:
        upstream, memory = connection.upstream, Memory()  # type: ignore[attr-defined]

        async def down() -> None:
            async for data in upstream:
                for one in change(json.loads(data, parse_float=Digits), memory):
                    await connection.send(text_of(one))

        async def up() -> None:
            async for data in connection:
                await upstream.send(data)

        tasks = [asyncio.ensure_future(way()) for way in (down, up)]
        with suppress(ConnectionClosed):
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        code = upstream.close_code or 1000
        reason = "" if fault == "a close without a reason" else upstream.close_reason
        await connection.close(code, reason or "")
        await upstream.close()

    handler: Callable[[ServerConnection], Awaitable[None]] = relay
    async with serve(
        handler,
        "127.0.0.1",
        0,
        process_request=ask,
        subprotocols=["tick.v1"],  # type: ignore[list-item]
        select_subprotocol=lambda _, named: named[0] if named else None,
        compression=None,
        ping_interval=None,
        max_size=2**20,
    ) as server:
        [port] = {one.getsockname()[1] for one in server.sockets}
        yield f"ws://127.0.0.1:{port}/v1/stream"
