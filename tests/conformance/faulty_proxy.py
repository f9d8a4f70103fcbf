"""A line to a gateway that has one fault: what the kit has to find."""

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.error import HTTPError
from urllib.request import urlopen

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.http11 import Request, Response

from tests.conformance.served import ISINS

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


def each(name: str, change: Callable[[Frame], object]) -> Callable[[Frame], object]:
    """Have a change be made to all entries of a list."""
    return lambda frame: [change(one) for one in frame.get(name, ())]


def without_sums(item: Frame) -> None:
    for name in ("volume", "value", "high", "low"):
        item.pop(name, None)
    item["trades"] = 1


def of_chain(change: Callable[[list[str]], list[str]]) -> Callable[[Frame], object]:
    """Have another chain be told where more than a hash is."""

    def apply(frame: Frame) -> None:
        if len(frame.get("chain", ())) > 1:
            frame["chain"] = change(frame["chain"])

    return apply


def short(frame: Frame) -> None:
    frame["chain"] = [frame["chain"][0][:16]] if "chain" in frame else []


def if_current(wanted: bool, name: str = "snapshot") -> Change:
    """Leave statuses out that are, or are not, the current ones."""

    def apply(frame: Frame, _: Memory) -> Frames:
        is_it = frame["type"] == "statuses" and bool(frame.get(name)) is wanted
        return [] if is_it else [frame]

    return apply


def late(frame: Frame, memory: Memory) -> Frames:
    """Leave statuses out where an interval was granted."""
    memory.count = max(memory.count, frame.get("min_interval_ms", 0))
    is_late = frame["type"] == "statuses" and memory.count > 2_000
    return [] if is_late else [frame]


def missed(frame: Frame) -> None:
    if not frame["snapshot"]:
        frame["missed"] = 3


def older(frame: Frame, _: Memory) -> Frames:
    if frame["type"] != "bars" or frame.get("snapshot"):
        return [frame]
    return [frame, {**frame, "bars": [{**bar, "trades": 0} for bar in frame["bars"]]}]


def welcomed(frame: Frame) -> None:
    del frame["code"]
    frame |= {"type": "ack", "op": "auth", "accepted": [], "rejected": [], "count": 0}


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
    "a market, and all others as well": (
        "S-14",
        of("welcome")(lambda frame: frame.update(market="KOSPI")),
    ),
    "another epoch without a snapshot": (
        "S-17",
        of("update")(lambda frame: frame.update(epoch="elsewhere")),
    ),
    "late trades without their sums": (
        "S-26",
        of("update")(each("data", without_sums)),
    ),
    "taken back, and no day": (
        "S-28",
        of("update")(each("data", lambda item: item.pop("day", None))),
    ),
    "a bar twice in a message": (
        "S-29",
        of("bars")(lambda frame: frame.update(bars=frame["bars"] * 2)),
    ),
    "a bar goes back": ("S-32", older),
    "bars are never resumed": (
        "S-34",
        of("bars")(lambda frame: "resumed" in frame and frame.update(resumed=False)),
    ),
    "a chain that is not granted": (
        "S-51",
        of("ack")(lambda frame: frame.pop("chain", None)),
    ),
    "a link that was altered": (
        "S-52",
        of("update")(of_chain(lambda chain: [*chain[:-1], f"{chain[-1][:-1]}_"])),
    ),
    "a link that is missing": (
        "S-52",
        of("update")(of_chain(lambda chain: chain[:-1])),
    ),
    "a row that was altered": ("S-52", of("update")(put("seq", 7))),
    "a part of a hash to begin with": ("S-53", of("snapshot")(short)),
    "no link is kept": (
        "S-54",
        of("snapshot", "update")(of_chain(lambda _: ["x" * 43])),
    ),
    "statuses twice": ("ST-1", twice("statuses")),
    "statuses wait for the interval": ("ST-2", late),
    "numbers of statuses with holes": (
        "ST-3",
        of("statuses")(
            each("entries", lambda one: one.update(number=2 * one["number"]))
        ),
    ),
    "no current statuses": ("ST-4", if_current(True)),
    "missed statuses, and no current ones": ("ST-5", of("statuses")(missed)),
    "a last trade that nobody is shown": (
        "ST-6",
        of("statuses")(
            each("entries", lambda one: one.get("last", {}).update(time=9 * 10**15))
        ),
    ),
    "statuses are not resumed": ("ST-8", if_current(True, "resumed")),
}
"""Each fault: the clause it breaks, and what becomes of a frame of the gateway."""

FAULTS_OF_TOKENS: dict[str, tuple[str, Change]] = {
    "sums for a token of one price": ("S-23", of("snapshot")(put("volume", 5))),
    "no token is no matter": (
        "S-40",
        of("error")(lambda frame: frame.update(code="key_limit")),
    ),
    "a token may have no end": ("S-41", of("error")(welcomed)),
    "a newer token drops nothing": ("S-42", of("ack")(accepted)),
    "a code is told to everybody": (
        "S-43",
        of("ack")(lambda frame: frame.update(codes={"000001": ISINS[1]})),
    ),
    "a last trade for a token of one price": (
        "ST-7",
        of("statuses")(each("entries", lambda one: one.update(last={}))),
    ),
}
"""Those of a gateway that asks for tokens."""

ALL_FAULTS = FAULTS | FAULTS_OF_TOKENS


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

    # Written as the gateway writes it: hashes are over the text.
    text = json.dumps(mark(frame), separators=(",", ":"))
    for number, digits in enumerate(texts):
        text = text.replace(f'"\\u0000{number}"', digits, 1)
    return text


def answer_to(asked: urllib.request.Request) -> tuple[int, str]:
    """Return status and text of an answer, no text of one that has no end."""
    try:
        with urlopen(asked) as answer:
            is_endless = answer.headers.get_content_type() == "text/event-stream"
            return answer.status, "" if is_endless else answer.read().decode()
    except HTTPError as error:
        return error.code, "refused\n"


@asynccontextmanager
async def faulty(url: str, fault: str | None) -> AsyncIterator[str]:
    """Serve a gateway's stream with a fault, or none; yield the address."""
    _, change = ALL_FAULTS[fault] if fault else ("", lambda frame, _: [frame])

    async def ask(connection: ServerConnection, request: Request) -> Response | None:
        path, _, query = request.path.partition("?")
        if not path.endswith("/stream"):
            http = url.replace("ws:", "http:").removesuffix("/v1/stream")
            asked = urllib.request.Request(http + request.path)
            if (shown := request.headers.get("Authorization")) is not None:
                asked.add_header("Authorization", shown)
            status, body = await asyncio.to_thread(answer_to, asked)
            return connection.respond(status, body)
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
