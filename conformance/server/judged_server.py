"""A server that is judged: what connects to it, asks, and holds it to what comes."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any, TypeVar
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin

from conformance.server.frame_rules import Frame, FrameRules

WITHIN_S = 10.0
PROBLEM = "application/problem+json"
T = TypeVar("T")


class Broken(Exception):
    """The server breaks a clause."""

    def __init__(self, clause: str, sentence: str) -> None:
        super().__init__(sentence)
        self.clause = clause


class Untried(Exception):
    """A trial needs what this server does not have."""


def must(is_kept: object, clause: str, sentence: str) -> None:
    if not is_kept:
        raise Broken(clause, sentence)


@dataclass(frozen=True)
class Server:
    """Where it is, which keys to ask for, and how many windows to follow.

    ``token`` is shown on each connection, and with each request; empty where none is
    asked for. ``secret`` is what the server checks tokens by, empty if it is not known.
    ``found`` gets what the frames of its connections break.
    """

    url: str
    keys: tuple[str, ...]
    windows: int = 3
    patience: float = 1.0
    token: str = ""
    secret: bytes = b""
    found: list[tuple[str, str]] = field(default_factory=list)

    @property
    def within_s(self) -> float:
        return WITHIN_S * self.patience

    @asynccontextmanager
    async def line(self, query: str = "", **options: Any) -> AsyncIterator["Line"]:
        async with connect(
            self.url + query,
            compression=None,
            max_size=2**24,
            ping_interval=None,
            close_timeout=1,
            proxy=None,
            **options,
        ) as connection:
            line = Line(connection, self.within_s)
            try:
                line.welcome = await line.next()
                if self.token:
                    ack = await line.ask(op="auth", token=self.token)
                    must(ack["type"] == "ack", "S-40", f"the token is refused: {ack}")
                yield line
            except ConnectionClosed as error:
                raise Broken("S-35", f"the server has closed: {error}") from None
            finally:
                self.found.extend(line.rules.breaches)

    @property
    def base(self) -> str:
        """The path beside which its other paths are."""
        return urlsplit(self.url).path.rpartition("/")[0]

    async def _ask(
        self, path: str, headers: dict[str, str], read: Callable[[HTTPResponse], T]
    ) -> T:
        """Return what is read of the answer to a request without an upgrade."""
        address = urlsplit(self.url)
        kind = HTTPSConnection if address.scheme == "wss" else HTTPConnection
        line = kind(address.hostname or "", address.port, timeout=self.within_s)
        own = {"Authorization": f"Bearer {self.token}"} if self.token else {}

        def ask() -> T:
            with closing(line):
                line.request("GET", path, headers=own | headers)
                return read(line.getresponse())

        return await asyncio.to_thread(ask)

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Return status and media type of an answer, whose body may have no end."""

        def read(answer: HTTPResponse) -> tuple[int, str]:
            return answer.status, answer.getheader("content-type", "")

        return await self._ask(path, headers, read)

    async def listed(self) -> list[Frame]:
        """Return the rows of its instrument table, none if it tells none."""

        def read(answer: HTTPResponse) -> list[Frame]:
            return json.load(answer)["data"] if answer.status == 200 else []

        return await self._ask(f"{self.base}/instruments", {}, read)

    async def events(self, path: str, **headers: str) -> tuple[list[Frame], str | None]:
        """Return the events up to the whole snapshot, and the id of the last one."""

        def read(answer: HTTPResponse) -> tuple[list[Frame], str | None]:
            found, number, text = list[Frame](), None, ""
            media = answer.getheader("content-type", "")
            must(media.startswith("text/event-stream"), "S-36", f"{path}: {media}")
            is_whole = False
            while not is_whole or text:
                text = answer.readline().decode().rstrip("\r\n")
                name, _, value = text.partition(": ")
                must(name != "event", "S-36", f"an event of a name: {text!r}")
                number = value if name == "id" else number
                if name == "data":
                    found.append(json.loads(value))
                    is_whole = bool(found[-1].get("final"))
            return found, number

        return await self._ask(path, headers, read)

    async def refusal(self, query: str, origin: str | None = None) -> int:
        """Return the status with which an upgrade is refused, 101 if it is not."""
        with suppress(ConnectionClosed, Broken):
            try:
                chosen = None if origin is None else Origin(origin)
                async with self.line(query, origin=chosen):
                    return 101
            except InvalidStatus as error:
                return error.response.status_code
        return 101


class Line:
    """One connection to the server."""

    def __init__(self, connection: ClientConnection, within_s: float) -> None:
        self.connection = connection
        self.rules = FrameRules()
        self.welcome: Frame = {}
        self._within_s = within_s
        self._ids = 0

    async def next(self, within_s: float | None = None) -> Frame:
        """Return the next frame. Raises Broken if none comes."""
        try:
            async with asyncio.timeout(within_s or self._within_s):
                while True:
                    frame = self.rules.take(await self.connection.recv())
                    if frame is not None:
                        return frame
        except TimeoutError:
            raise Broken("S-9", "nothing came") from None

    async def say(self, **message: Any) -> None:
        self._ids += 1
        self.rules.asked(self._ids)
        await self.connection.send(json.dumps({"id": self._ids, **message}))

    async def until(self, *kinds: str, clause: str = "S-8") -> Frame:
        """Return the next frame of some kinds; others are passed over."""
        end_s = time.monotonic() + self._within_s
        while time.monotonic() < end_s:
            frame = await self.next()
            if frame["type"] in kinds:
                return frame
        raise Broken(clause, f"no {' or '.join(kinds)} came")

    async def ask(self, **message: Any) -> Frame:
        await self.say(**message)
        return await self.until("ack", "error", "pong")

    async def snapshot(self) -> tuple[Frame, dict[str, Any]]:
        """Return the last piece of a snapshot, and the items of all of it, by ISIN."""
        items: dict[str, Any] = {}
        while True:
            piece = await self.until("snapshot", clause="S-15")
            items |= {name_of(item): item for item in piece["data"]}
            if piece["final"]:
                return piece, items

    async def end_code(self) -> tuple[int, str]:
        """Read to the end; return how the server has closed."""
        try:
            async with asyncio.timeout(self._within_s):
                while True:
                    await self.connection.recv()
        except ConnectionClosed as error:
            close = error.rcvd
            return (close.code, close.reason) if close is not None else (1006, "")
        except TimeoutError:
            raise Broken("S-35", "the connection was not closed") from None


def name_of(item: Any) -> str:
    """Return the instrument of an object, the number of a row."""
    return str(item["isin"] if isinstance(item, dict) else item[0])


Trying = Callable[[Server], Awaitable[None]]


class Trials(list[tuple[tuple[str, ...], Trying]]):
    """Trials of a subject, each with the clauses that it is about."""

    def of(self, *clauses: str) -> Callable[[Trying], Trying]:
        """Have a function be one of them, about these clauses."""

        def add(trying: Trying) -> Trying:
            self.append((clauses, trying))
            return trying

        return add
