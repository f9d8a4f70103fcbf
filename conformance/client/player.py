"""Plays transcripts to one client, as a server of the stream, and judges it."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from conformance.client.driven_client import Driver, DriverFailed, driving
from conformance.client.expected import differences
from conformance.client.said import Pace, breaches_of, read_said
from conformance.client.told_chain import ToldChain
from conformance.client.transcript import (
    Transcript,
    TranscriptLine,
    encode,
    filled,
    updated,
)
from conformance.trial_report import Trial

PROTOCOL = "tick.v1"
LIMITS = {"keys": 1024, "messages_per_second": 10, "message_bytes": 65_536}
WITHIN_S = 5.0
"""A client that is slow for other reasons has so long, times the patience."""

STAYED_AWAY_S = 0.7
"""The longest first wait of a client that comes back is 0.5 s (C-21)."""

FORM = ("C-3", "C-4", "C-24")
"""Clauses that each message, or each request, of every transcript is held to."""


class Breach(Exception):
    """The client does not do what the transcript expects."""


class Player:
    """Plays one transcript after the other; a client has ``patience`` times as long."""

    def __init__(self, driver: Driver, patience: float = 1.0) -> None:
        self._driver = driver
        self._within_s = WITHIN_S * patience
        self._arrived: asyncio.Queue[ServerConnection] = asyncio.Queue()
        self._number = 0
        self._url = ""

    async def play(self, transcripts: Sequence[Transcript]) -> list[Trial]:
        """Play them all, or those up to the one with which the program ends."""
        async with serve(
            self._take,
            "127.0.0.1",
            0,
            subprotocols=[Subprotocol(PROTOCOL)],
            compression=None,
            ping_interval=None,
            max_size=2**20,
        ) as server:
            [port] = {one.getsockname()[1] for one in server.sockets}
            trials = []
            for one in transcripts:
                try:
                    trials.append(await self._play(one, port))
                except (DriverFailed, BrokenPipeError, ConnectionResetError) as error:
                    broken = tuple((clause, str(error)) for clause in one.clauses)
                    trials.append(Trial(one.title, one.clauses, broken))
                    break
            return trials

    async def _take(self, connection: ServerConnection) -> None:
        request = connection.request
        if request is None or not request.path.startswith(f"/{self._number}/"):
            return
        self._arrived.put_nowait(connection)
        await connection.wait_closed()

    async def _play(self, transcript: Transcript, port: int) -> Trial:
        known = self._driver.says | self._driver.takes
        if lacking := [need for need in transcript.needs if need not in known]:
            return Trial(
                transcript.title,
                transcript.clauses,
                left_out=f"the client says nothing of {', '.join(lacking)}",
            )
        self._number += 1
        self._url = f"ws://127.0.0.1:{port}/{self._number}/v1/stream"
        self._begin()
        try:
            for step in transcript.steps:
                await self._step(step)
        except Breach as breach:
            self._breaches += [(clause, str(breach)) for clause in transcript.clauses]
        finally:
            await self._leave()
        self._driver.order("end")
        clauses = (*transcript.clauses, *FORM)
        return Trial(transcript.title, clauses, tuple(dict.fromkeys(self._breaches)))

    def _begin(self) -> None:
        self._arrived = asyncio.Queue()
        self._connection: ServerConnection | None = None
        self._reading: asyncio.Task[None] | None = None
        self._said: deque[dict[str, Any]] = deque()
        self._is_said = asyncio.Event()
        self._sent = 0
        self._welcome_of: dict[str, Any] = {}
        self._options: dict[str, Any] = {}
        self._beat_s: float | None = None
        self._offset = 0
        self._left_s = 0.0
        self._last: dict[str, Any] = {}
        self._chain = ToldChain()
        self._breaches: list[tuple[str, str]] = []

    async def _leave(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        if self._connection is not None:
            self._connection.transport.abort()

    async def _step(self, step: TranscriptLine) -> None:
        try:
            word = "send" if step.word == ">" else step.word
            await getattr(self, f"_{word}")(step)
        except Breach as breach:
            raise Breach(
                f"line {step.line}, {step.word} {step.text}: {breach}"
            ) from None
        except ConnectionClosed:
            raise Breach(f"line {step.line}: the client has left") from None

    # What the client is asked to do.

    async def _follow(self, step: TranscriptLine) -> None:
        self._options = step.given or {}
        self._driver.order(
            "follow", url=self._url, keys=list(step.words), **self._options
        )
        await self._arrive(self._within_s)

    async def _also(self, step: TranscriptLine) -> None:
        self._driver.order("also", keys=list(step.words), **(step.given or {}))

    async def _unfollow(self, step: TranscriptLine) -> None:
        self._driver.order("unfollow", keys=list(step.words))

    # What the server does.

    async def _welcome(self, step: TranscriptLine) -> None:
        self._welcome_of |= step.given

    async def _send(self, step: TranscriptLine) -> None:
        [kind] = step.words
        message = filled(kind, step.given, time.time_ns() // 1_000)
        self._offset = message.get("offset", self._offset)
        if "chain" in message:
            message["chain"] = self._chain.told(message["chain"], message)
        await self._tell(encode(message))

    async def _many(self, step: TranscriptLine) -> None:
        """Send so many updates of an instrument, from an offset on."""
        count, first, isin = int(step.words[0]), int(step.words[1]), step.words[2]
        for offset in range(first, first + count):
            await self._send(
                TranscriptLine(step.line, ">", ("update",), updated(isin, offset))
            )

    async def _raw(self, step: TranscriptLine) -> None:
        await self._tell(step.text)

    async def _tell(self, text: str) -> None:
        if self._connection is None:
            raise Breach("the client is not connected")
        try:
            async with asyncio.timeout(self._within_s):
                await self._connection.send(text)
        except TimeoutError:
            raise Breach("the client does not read") from None
        self._sent += 1

    async def _answers(self, step: TranscriptLine) -> None:
        await self._answer(self._last, step.given or {})

    async def _answer(self, message: dict[str, Any], given: dict[str, Any]) -> None:
        answer: dict[str, Any] = {}
        if "id" in message:
            answer["id"] = message["id"]
        op = message["op"]
        if op == "ping":
            given = {"server_time": time.time_ns() // 1_000}
        elif "code" in given:
            answer["message"] = "as told"
        else:
            keys = [] if op == "auth" else message.get("keys", [])
            gone = {one["key"] for one in given.get("rejected", ())}
            accepted = [key for key in keys if key not in gone]
            answer |= {"op": op, "accepted": accepted, "rejected": []}
            answer["count"] = len(accepted)
            if op in ("subscribe", "auth"):
                answer["min_interval_ms"] = message.get("min_interval_ms", 0)
            answer |= {"resumed": False} if op == "subscribe" else {}
            answer |= {"expires": None} if op == "auth" else {}
        kind = "pong" if op == "ping" else "error" if "code" in given else "ack"
        filled_in = filled(kind, given, time.time_ns() // 1_000)
        await self._tell(encode({"type": kind, **answer, **filled_in}))

    async def _close(self, step: TranscriptLine) -> None:
        await self._settle()
        code, *reason = step.words
        connection = self._gone()
        await connection.close(int(code), " ".join(reason) or "as told")

    async def _cut(self, step: TranscriptLine) -> None:
        await self._settle()
        self._gone().transport.abort()

    def _gone(self) -> ServerConnection:
        """Note that the connection ends now, and return it."""
        connection, self._connection = self._connection, None
        if connection is None:
            raise Breach("the client is not connected")
        self._left_s = time.monotonic()
        return connection

    async def _beats(self, step: TranscriptLine) -> None:
        self._beat_s = int(step.words[0]) / 1_000 or None

    async def _wait(self, step: TranscriptLine) -> None:
        await self._until(lambda: False, int(step.words[0]) / 1_000)

    # What the client must do.

    async def _asks(self, step: TranscriptLine) -> None:
        wanted = set(step.words)
        while wanted:
            message = await self._next("subscribe")
            faults = list(differences(step.given or {}, message))
            keys = message.get("keys", [])
            faults += [f"asks for {k}, unasked" for k in keys if k not in step.words]
            if faults:
                raise Breach("; ".join(faults))
            wanted -= set(keys)
            await self._answer(message, step.then or {})

    async def _says(self, step: TranscriptLine) -> None:
        self._last = await self._next(step.words[0])
        if faults := list(differences(step.given or {}, self._last)):
            raise Breach("; ".join(faults))

    async def _next(self, op: str) -> dict[str, Any]:
        """Return what the client says next; pings are answered by themselves."""
        while True:
            if not await self._until(lambda: bool(self._said), self._within_s):
                raise Breach(f"no {op} came")
            message = self._said.popleft()
            if message["op"] == op:
                return message
            if message["op"] != "ping":
                raise Breach(f"{message['op']} came, must be {op}: {message}")
            await self._answer(message, {})

    async def _quiet(self, step: TranscriptLine) -> None:
        """The client must say nothing for so many milliseconds."""
        if await self._until(lambda: bool(self._said), int(step.words[0]) / 1_000):
            raise Breach(f"{self._said[0]} came")

    async def _returns(self, step: TranscriptLine) -> None:
        given = step.given or {}
        within_s = given.get("within_ms", 0) / 1_000 + self._within_s
        await self._arrive(within_s)
        away_ms = (time.monotonic() - self._left_s) * 1_000
        if away_ms < given.get("after_ms", 0):
            raise Breach(f"came back after {away_ms:.0f} ms")

    async def _away(self, step: TranscriptLine) -> None:
        """The client must not come back, by its own words or for a while."""
        end_s = time.monotonic() + STAYED_AWAY_S
        while time.monotonic() < end_s:
            if not self._arrived.empty():
                raise Breach("came back")
            if not step.words:
                comes_back = (await self._driver.report()).get("comes_back")
                if comes_back is False:
                    return
            await asyncio.sleep(0.01)

    async def _silent(self, step: TranscriptLine) -> None:
        """The client must give up a silent connection within the range given, ms."""
        least_ms, most_ms = map(int, step.words)
        connection = self._gone()
        with suppress(TimeoutError):
            await asyncio.wait_for(
                connection.wait_closed(), most_ms / 1_000 + self._within_s
            )
        took_ms = (time.monotonic() - self._left_s) * 1_000
        if connection.close_code is None:
            raise Breach("holds a dead connection for alive")
        if took_ms < least_ms:
            raise Breach(f"gave up after {took_ms:.0f} ms")

    async def _holds(self, step: TranscriptLine) -> None:
        """What the client says it holds, once it has taken in all that was sent."""
        report: dict[str, Any] = {}
        faults = ["it said nothing"]
        delay_s, end_s = 0.002, time.monotonic() + self._within_s
        while faults and time.monotonic() < end_s:
            report = await self._driver.report()
            faults = list(differences(step.given, report))
            if int(report.get("messages", self._sent)) < self._sent:
                faults.append(f"took {report['messages']} of {self._sent} messages in")
            elif faults and delay_s > self._within_s / 40:
                break
            if faults:
                await asyncio.sleep(delay_s)
                delay_s *= 2
        if faults:
            raise Breach("; ".join(faults))

    async def _settle(self) -> None:
        """Wait until the client has taken everything in."""
        await self._holds(TranscriptLine(0, "holds", given={}))

    # Connections.

    async def _arrive(self, within_s: float) -> None:
        """Take the client's next connection and welcome it. Raises Breach."""
        try:
            connection = await asyncio.wait_for(self._arrived.get(), within_s)
        except TimeoutError:
            raise Breach("no connection came") from None
        self._said.clear()
        self._connection = connection
        request = connection.request
        if request is not None and "token" in request.path:
            self._breaches.append(("C-24", f"a token in the address: {request.path}"))
        self._reading = asyncio.create_task(self._read(connection))
        now_us = time.time_ns() // 1_000
        welcome = {
            **{"protocol": PROTOCOL, "connection": f"c-{self._number}", "epoch": "e1"},
            **{"window_ms": 2_000, "heartbeat_ms": 5_000, "server_time": now_us},
            **{"limits": LIMITS, **self._welcome_of},
        }
        await self._tell(encode(filled("welcome", welcome, now_us)))

    async def _read(self, connection: ServerConnection) -> None:
        limits = self._welcome_of.get("limits", LIMITS)
        pace = Pace(limits["messages_per_second"])
        with suppress(ConnectionClosed):
            async for data in connection:
                message, fault = read_said(data)
                if fault:
                    self._breaches.append(("C-3", fault))
                    continue
                self._breaches += breaches_of(message, self._options)
                is_long = len(data) > limits["message_bytes"]
                if is_long or not pace.is_kept(time.monotonic()):
                    self._breaches.append(("C-22", "beyond the limits of welcome"))
                self._said.append(message)
                self._is_said.set()

    async def _until(self, is_so: Callable[[], bool], within_s: float) -> bool:
        """Wait until something is so; send heartbeats meanwhile, if any are wanted."""
        end_s = time.monotonic() + within_s
        while not is_so():
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                return False
            self._is_said.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(
                    self._is_said.wait(), min(left_s, self._beat_s or left_s)
                )
            if self._beat_s is not None and not is_so():
                await self._send(
                    TranscriptLine(0, ">", ("heartbeat",), {"offset": self._offset})
                )
        return True


async def judge_client(
    command: Sequence[str], transcripts: Sequence[Transcript], patience: float = 1.0
) -> tuple[str, list[Trial]]:
    """Play transcripts to a client; return its name, and what came of each.

    A program that ends is started anew. Raises DriverFailed, OSError if it is none.
    """
    name, trials = "", list[Trial]()
    while len(trials) < len(transcripts):
        async with driving(command) as driver:
            name = driver.name
            left = transcripts[len(trials) :]
            trials += await Player(driver, patience).play(left)
    return name, trials
