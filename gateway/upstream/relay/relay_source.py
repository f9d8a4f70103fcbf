"""The stream as another gateway has it: what a relay reads in place of Redis."""

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import orjson
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidProxy, InvalidStatus, WebSocketException

from gateway.stream.board import Position
from gateway.stream.hub import Hub
from gateway.upstream.decode import StoredState, decode_update
from gateway.upstream.relay import relay_frames
from gateway.upstream.relay.relay_frames import (
    MOST_AT_ONCE,
    MOST_FRAME_BYTES,
    MOST_LEVELS,
    PATH,
    PROTOCOL,
    Head,
)
from gateway.upstream.stream_source import POLL_S
from ingest.statuses.status_entry import StatusEntry
from throttle.contract.snapshot import WindowSnapshot
from tickthrottle_client.harmless_text import harmless
from tickthrottle_client.loopback import is_loopback

CONNECT_S, ANSWER_S = 3.0, 10.0
SILENT_S = 5.0
"""A line on which nothing comes for so long is dead: a beat comes every second."""

MOST_WAITING = 64
"""So many windows wait to be taken in; with one more the line is cut, and resumed."""


class CircleRefused(ValueError):
    """The upstream follows this gateway, or too many levels are above it."""


class RelaySource:
    """One line to the upstream at a time. ``own_id`` is this gateway's in paths.

    It fills the hub's instrument table and statuses, too, as the upstream has them.

    ``place`` is where the nearest gateway above is, as it has last said;
    ``is_job_starting`` what it knows of the throttle job.
    """

    def __init__(self, hub: Hub, own_id: str) -> None:
        self._hub = hub
        self._url = relay_url(hub.settings.follow or "")
        self._token_file = hub.settings.follow_token_file
        self._own_id = own_id
        self.path: tuple[str, ...] = ()
        self.place = Position()
        self.is_job_starting = False
        self._line: ClientConnection | None = None
        self._reading: asyncio.Task[None] | None = None
        self._beats = asyncio.Event()
        self._coming: asyncio.Queue[bytes] = asyncio.Queue(MOST_WAITING)
        self._answers: dict[int, asyncio.Future[tuple[Head, bytes]]] = {}
        self._asked = 0
        self._heard_s = 0.0

    async def open(self) -> None:
        """Connect, and hear where the upstream is.

        Raises CircleRefused, and ConnectionError that says why there is no line.
        """
        await self.close()
        headers = _authorization(self._token_file)
        host = urlsplit(self._url).hostname or ""
        try:
            self._line = await connect(
                f"{self._url}?table={self._hub.instruments.digest}",
                subprotocols=[PROTOCOL],  # type: ignore[list-item]
                additional_headers=headers,
                compression=None,
                max_size=MOST_FRAME_BYTES,
                # A dead line is noticed by its silence; the gateway sends the pings.
                ping_interval=None,
                open_timeout=CONNECT_S,
                close_timeout=1,
                proxy=None if is_loopback(host) else True,
            )
        except InvalidStatus as refusal:
            raise ConnectionError(f"{self._url}: {_reason(refusal)}") from None
        except (InvalidProxy, ImportError):
            # Not in its own words, which have the proxy's password.
            rule = "the proxy in the environment cannot be used; see NO_PROXY"
            raise ConnectionError(f"{self._url}: {rule}") from None
        except WebSocketException as error:
            raise ConnectionError(f"{self._url}: {harmless(str(error))}") from None
        self._coming = asyncio.Queue(MOST_WAITING)
        self._beats.clear()
        name = f"what {self._url} says"
        self._reading = asyncio.create_task(self._read(self._line), name=name)
        beaten = asyncio.create_task(self._beats.wait())
        await asyncio.wait(
            {self._reading, beaten},
            timeout=CONNECT_S,
            return_when=asyncio.FIRST_COMPLETED,
        )
        beaten.cancel()
        self._check_line()
        if not self._beats.is_set():
            raise ConnectionError(f"{self._url}: says nothing")

    async def next(self) -> bytes | None:
        """Return the next window's message; what has come before a cut comes first."""
        if self._coming.empty():
            self._check_line()
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_S):
                return await self._coming.get()
        # It may have come in the moment in which the wait ended.
        return None if self._coming.empty() else self._coming.get_nowait()

    async def state(self) -> StoredState | None:
        """Ask for the whole state."""
        return relay_frames.decode_state(*await self._ask("state"))

    async def between(self, first: int, last: int) -> list[WindowSnapshot]:
        """Ask for windows; the upstream asks its own, down to Redis, if it has to."""
        windows: list[WindowSnapshot] = []
        for start in range(max(1, first), last + 1, MOST_AT_ONCE):
            end = min(last, start + MOST_AT_ONCE - 1)
            head, body = await self._ask("windows", first=start, last=end)
            at = 0
            for size in map(int, head.get("sizes", ())):
                window = decode_update(body[at : at + size])
                if window is None:
                    raise ValueError(f"{self._url}: a window that cannot be read")
                windows.append(window)
                at += size
        return windows

    async def until(self, last: int, limit: int) -> list[WindowSnapshot]:
        """Ask for the newest windows, newest first."""
        windows = await self.between(last - limit + 1, last)
        return windows[::-1]

    def may_be_dead(self, now_s: float) -> bool:
        """Say whether beats have stopped."""
        return now_s - self._heard_s > SILENT_S

    async def close(self) -> None:
        """Cut the line, if there is one."""
        line, self._line, self.path = self._line, None, ()
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        if line is not None:
            await line.close()

    def _check_line(self) -> None:
        """Raise why the line has ended, if it has."""
        if self._reading is None or self._reading.done():
            error = None if self._reading is None else self._reading.exception()
            if isinstance(error, CircleRefused):
                raise error
            raise ConnectionError(f"{self._url}: {error or 'the line has ended'}")

    async def _ask(self, what: str, **fields: int) -> tuple[Head, bytes]:
        self._check_line()
        self._asked += 1
        number, line = self._asked, self._line
        answer: asyncio.Future[tuple[Head, bytes]] = asyncio.Future()
        self._answers[number] = answer
        question = {"ask": what, "id": number, **fields}
        try:
            async with asyncio.timeout(ANSWER_S):
                if line is not None:
                    await line.send(orjson.dumps(question).decode())
                return await answer
        except WebSocketException as error:
            raise ConnectionError(f"{self._url}: {error}") from None
        except TimeoutError:
            rule = f"no answer within {ANSWER_S:g} s"
            raise TimeoutError(f"{self._url}: {rule}") from None
        finally:
            del self._answers[number]

    async def _read(self, line: ClientConnection) -> None:
        """Take in what the upstream says until the line ends, which raises."""
        try:
            while True:
                message = await line.recv()
                self._heard_s = time.monotonic()
                if isinstance(message, str):
                    # A notice for clients, that it stops.
                    continue
                await self._take(*relay_frames.split(message))
        except WebSocketException as error:
            raise ConnectionError(harmless(str(error))) from None
        finally:
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(ConnectionError(f"{self._url}: has gone"))

    async def _take(self, head: Head, body: bytes) -> None:
        desk = self._hub.status_desk
        match head["type"]:
            case "beat":
                self._take_beat(head)
            case "window":
                try:
                    self._coming.put_nowait(body)
                except asyncio.QueueFull:
                    rule = f"more than {MOST_WAITING} windows wait here"
                    raise ConnectionError(rule) from None
            case "answer":
                answer = self._answers.get(head.get("id", 0))
                if answer is not None and not answer.done():
                    answer.set_result((head, body))
            case "table":
                # A thread: thousands of rows are checked one by one.
                table = await asyncio.to_thread(relay_frames.decode_table, head, body)
                if table.digest != self._hub.instruments.digest:
                    self._hub.change_instruments(table)
            case "statuses":
                await self._take_statuses(head, body)
            case "status":
                desk.board.epoch = desk.board.epoch or head.get("epoch")
                await desk.publish(_newer(body, desk.board.number))

    def _take_beat(self, head: Head) -> None:
        path = tuple(map(str, head.get("path", ())))
        if self._own_id in path:
            above = " > ".join(path)
            raise CircleRefused(f"follow {self._url}: it follows this gateway: {above}")
        if len(path) >= MOST_LEVELS:
            rule = f"{len(path)} gateways are above, {MOST_LEVELS - 1} may be"
            raise CircleRefused(f"follow {self._url}: {rule}")
        self.path = path
        self.place = relay_frames.position_of(head)
        self.is_job_starting = head.get("starting") is True
        self._beats.set()

    async def _take_statuses(self, head: Head, body: bytes) -> None:
        """Take over what is current; go on where nothing was missed."""
        desk, entries = self._hub.status_desk, relay_frames.decode_entries(body)
        board, count = desk.board, int(head["current"])
        epoch, number, first = head["epoch"], int(head["number"]), int(head["first"])
        before, upto = board.epoch, board.number
        if before is not None and epoch == before and first - 1 <= upto <= number:
            await desk.publish([e for e in entries[count:] if e.number > upto])
            return
        if epoch is None:
            return
        board.replace(epoch, number, entries[:count])
        board.newest.replace(first, entries[count:])
        if before is None:
            await desk.begin()
        else:
            is_on = epoch == before and number >= upto
            await desk.restart(number - upto if is_on else None)


class RecentWindows:
    """What a relay's history is filled from: what comes, and nothing before."""

    def __init__(self, source: RelaySource) -> None:
        self.between = source.between

    async def until(self, last: int, limit: int) -> list[WindowSnapshot]:
        """Return nothing: a tree of relays would read the whole log, each of them."""
        return []


def relay_url(url: str) -> str:
    """Return where a gateway answers those that follow it."""
    base = url.rstrip("/").removesuffix("/v1/stream").removesuffix(PATH)
    scheme, _, rest = base.partition("://")
    return f"{'wss' if scheme in ('wss', 'https') else 'ws'}://{rest}{PATH}"


def _newer(body: bytes, number: int) -> list[StatusEntry]:
    return [e for e in relay_frames.decode_entries(body) if e.number > number]


def _authorization(token_file: Path | None) -> dict[str, str]:
    """Return the header for each line anew: a token in the file may be renewed."""
    if token_file is None:
        return {}
    return {"Authorization": f"Bearer {token_file.read_text('utf-8').strip()}"}


def _reason(refusal: InvalidStatus) -> str:
    """Return why a line was refused, in the upstream's words if it has any."""
    status, text = refusal.response.status_code, refusal.response.body or b""
    with suppress(ValueError, LookupError, TypeError):
        return harmless(f"{status}: {orjson.loads(text)['detail']}")
    return f"answers {status} to a gateway that follows it"
