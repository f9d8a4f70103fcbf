"""Where a gateway is followed by others, ``/v1/relay``: pushes windows, answers."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import orjson
import structlog
from redis.exceptions import RedisError
from starlette.datastructures import Headers, QueryParams
from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send

from gateway.admission.addresses import address_of
from gateway.admission.tokens import TokenRefused
from gateway.http.authorization import create_permit
from gateway.http.problems import Problem, problem
from gateway.stream.board import Board, Position
from gateway.stream.hub import Hub
from gateway.stream.statuses.newest_statuses import MOST_REMEMBERED
from gateway.transport.uvicorn_websocket import stream_of
from gateway.upstream.relay.kept_windows import KeptWindows
from gateway.upstream.relay.relay_frames import (
    BEAT_S,
    MOST_AT_ONCE,
    PATH,
    PROTOCOL,
    encode_news,
    encode_state,
    encode_statuses,
    encode_table,
    frame,
)
from gateway.upstream.stream_follower import StreamFollower
from ingest.instrument_table.known_instruments import Instruments
from ingest.statuses.status_entry import StatusEntry
from tickthrottle_client.tick_v1 import CloseCode

MOST_RELAYS = 128
"""So many gateways may follow one; each is a stream of the limits, too."""

MOST_QUESTIONS = 8

log = structlog.get_logger()


class RelayEndpoint:
    """Serves one gateway per call that follows this one, ``own_id`` in its path."""

    def __init__(
        self, hub: Hub, feed: StreamFollower, kept: KeptWindows, own_id: str
    ) -> None:
        self.hub, self.feed, self.kept, self.own_id = hub, feed, kept, own_id
        self._permit = create_permit(hub, None)
        self._table: tuple[Instruments, bytes] | None = None
        self._state: tuple[Position, dict[str, Any], bytes] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve until the line ends."""
        hub, address = self.hub, address_of(scope)
        await receive()
        try:
            expires_us = self._check(scope)
        except (Problem, TokenRefused) as error:
            status, code = 401, "not_allowed"
            if isinstance(error, Problem):
                status, code = error.status, error.code
            await problem(status, code, str(error))(scope, receive, send)
            return
        await send({"type": "websocket.accept", "subprotocol": PROTOCOL})
        refusal = hub.enter(address)
        if refusal is not None:
            full = CloseCode.OVERLOADED
            await send({"type": "websocket.close", "code": full, "reason": refusal})
            return
        self.kept.is_wanted = True
        line = _Line(self, scope, address, expires_us)
        self.kept.on_news.add(line.wake)
        hub.status_desk.watch(line)
        try:
            await line.serve(receive, send)
        finally:
            self.kept.on_news.discard(line.wake)
            hub.status_desk.leave(line)
            hub.exit(address)

    def _check(self, scope: Scope) -> int | None:
        """Return until when a gateway may follow. Raises Problem, TokenRefused."""
        refused = self.hub.refuse_page(Headers(scope=scope))
        if refused is not None:
            raise Problem(403, "not_allowed", refused)
        if PROTOCOL not in scope["subprotocols"]:
            raise Problem(400, "bad_request", f"{PATH}: the sub-protocol is {PROTOCOL}")
        if (market := self.hub.settings.served_market) is not None:
            detail = f"the market {market} alone is served here: follow another gateway"
            raise Problem(404, "not_served", detail)
        if len(self.kept.on_news) >= MOST_RELAYS:
            detail = f"{MOST_RELAYS} gateways follow this one: follow one of them"
            self.hub.counters.relays_refused += 1
            raise Problem(503, "overloaded", detail)
        caller = self._permit(HTTPConnection(scope))  # type: ignore[arg-type]
        caller.check_everything_allowed()
        return caller.grant.expires_us

    def beat(self) -> bytes:
        """Say where this gateway is, and what is above it."""
        here = self.hub.board.position
        return frame(
            "beat",
            path=[self.own_id, *self.feed.source.path],
            epoch=here.epoch,
            offset=here.offset,
            window=here.window,
            starting=self.feed.is_job_starting is True,
        )

    def table(self, instruments: Instruments) -> bytes:
        """Return the instrument table, encoded once for all who follow."""
        if self._table is None or self._table[0] is not instruments:
            self._table = instruments, encode_table(instruments)
        return self._table[1]

    def state(self, number: int) -> bytes:
        """Return the whole state as an answer, encoded once for each window."""
        board: Board = self.hub.board
        if self._state is None or self._state[0] is not board.position:
            self._state = (board.position, *encode_state(board))
        return frame("answer", self._state[2], id=number, **self._state[1])

    async def windows(self, number: int, first: int, last: int) -> bytes:
        """Return windows as an answer: kept ones, or the source's; else none."""
        epoch = self.hub.board.position.epoch or ""
        messages = self.kept.between(epoch, first, last)
        if messages is None:
            messages = []
            with suppress(RedisError, OSError, ValueError):
                windows = await self.feed.source.between(first, last)
                messages = [window.encode() for window in windows]
        sizes = [len(message) for message in messages]
        return frame("answer", b"".join(messages), id=number, sizes=sizes)


class _Line:
    """One gateway that follows. It waits for what is due, and holds nothing of it."""

    def __init__(
        self, of: RelayEndpoint, scope: Scope, address: str, expires_us: int | None
    ) -> None:
        self._of, self._address, self._expires_us = of, address, expires_us
        self._stream = stream_of(scope)
        # It counts as a stream, and is not cut for being idle.
        self._stream.plain.leave(self._stream.transport)
        self._digest = QueryParams(scope["query_string"]).get("table", "")
        self._table: Instruments | None = None
        self._news = asyncio.Event()
        self._serial = of.kept.next
        self._questions: deque[dict[str, Any]] = deque()
        self._statuses: list[StatusEntry] = []
        self._wants_statuses = True

    def wake(self) -> None:
        """Look at what is due."""
        self._news.set()

    def offer(self, entries: Sequence[StatusEntry]) -> None:
        """Take in statuses; of too many all that is current is told anew."""
        self._statuses += entries
        if len(self._statuses) > MOST_REMEMBERED:
            self.request()
        self._news.set()

    def request(self) -> None:
        """Have all current statuses told."""
        self._wants_statuses, self._statuses = True, []

    def restart(self, missed: int | None) -> None:
        """Have all current statuses told, in place of those told before."""
        self.request()
        self._news.set()

    async def serve(self, receive: Receive, send: Send) -> None:
        """Tell what is due until the other goes, takes nothing, or may no longer."""
        reading = asyncio.create_task(self._read(receive))
        reading.add_done_callback(lambda _: self._news.set())
        try:
            while not reading.done():
                until_us = self._expires_us
                if until_us is not None and time.time() * 1e6 > until_us:
                    code = CloseCode.TOKEN_EXPIRED
                    await send({"type": "websocket.close", "code": code})
                    return
                self._news.clear()
                await self._tell_due(send)
                with suppress(TimeoutError):
                    async with asyncio.timeout(BEAT_S):
                        await self._news.wait()
            if reading.result():
                refused = {"code": CloseCode.POLICY, "reason": "is no question"}
                await send({"type": "websocket.close", **refused})
        except TimeoutError:
            self._of.hub.counters.clients_slow_closed += 1
            self._stream.transport.abort()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read(self, receive: Receive) -> bool:
        """Take questions in until the other goes; or say that it asks for too much."""
        while (message := await receive())["type"] != "websocket.disconnect":
            try:
                question = orjson.loads(message.get("text") or b"")
            except ValueError:
                return True
            if len(self._questions) >= MOST_QUESTIONS or not _is_question(question):
                return True
            self._questions.append(question)
            self._news.set()
        return False

    async def _tell_due(self, send: Send) -> None:
        of, hub, say = self._of, self._of.hub, self._sayer(send)
        if hub.instruments is not self._table:
            self._table, digest = hub.instruments, hub.instruments.digest
            if digest != self._digest:
                await say(of.table(self._table))
            self._digest = ""
        if self._wants_statuses and hub.status_desk.board.epoch is not None:
            self._wants_statuses, self._statuses = False, []
            await say(encode_statuses(hub.status_desk.board))
        if self._statuses and not self._wants_statuses:
            entries, self._statuses = self._statuses, []
            await say(encode_news(hub.status_desk.board.epoch, entries))
        # Of one moment: where the stream is, and the windows up to there.
        beat, (gone, messages) = of.beat(), of.kept.after(self._serial)
        hub.counters.relay_windows_skipped += gone
        self._serial = of.kept.next
        for message in messages:
            await say(frame("window", message))
        await say(beat)
        while self._questions:
            question = self._questions.popleft()
            await hub.turns.wait([self._address])
            number = question["id"]
            if question["ask"] == "state":
                with hub.turns.charged((self._address,)):
                    answer = of.state(number)
            else:
                answer = await of.windows(number, question["first"], question["last"])
            await say(answer)

    def _sayer(self, send: Send) -> Callable[[bytes], Any]:
        async def say(message: bytes) -> None:
            async with asyncio.timeout(self._of.hub.bounds.slow_close_s):
                await send({"type": "websocket.send", "bytes": message})
            self._of.hub.counters.frames_sent += 1
            self._of.hub.counters.sent_bytes += len(message)

        return say


def _is_question(question: Any) -> bool:
    """Say whether a message is a question that may be answered."""
    if not isinstance(question, dict) or type(question.get("id")) is not int:
        return False
    if question.get("ask") == "state":
        return True
    first, last = question.get("first"), question.get("last")
    if type(first) is not int or type(last) is not int or first < 1:
        return False
    return question.get("ask") == "windows" and 0 <= last - first < MOST_AT_ONCE
