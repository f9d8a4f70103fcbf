"""Thousands of clients in a process of their own, of another make than the gateway.

They speak through picows, which shares no code with the gateway's own WebSockets. Who
is refused comes back as docs/protocol.md asks.
"""

import asyncio
import itertools
import multiprocessing
import resource
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from random import Random, random
from typing import Any

import orjson
import uvloop
from picows import (
    WSCloseCode,
    WSFrame,
    WSHandshakeError,
    WSListener,
    WSMsgType,
    WSTransport,
    ws_connect,
)

from tests.conftest import PATIENCE
from tests.gateway.samples import price_of

CONNECTING_AT_ONCE = 100
PATIENCE_S = 60.0 * PATIENCE
RETURN_S = 20.0 * PATIENCE
BACKOFF_S = 0.5
BACKOFF_MOST_S = 30.0


class Crowd:
    """The clients, as their process's parent sees them."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def connect(self, count: int, instruments: Sequence[str], keys_each: int) -> None:
        """Connect so many clients, each with keys of its own; 0 keys: everything."""
        self._ask("connect", count, list(instruments), keys_each)

    def reconnect(self, within_s: float) -> int:
        """Cut all connections and come back, at random times within so long.

        Return how many were resumed, once all have their snapshot.
        """
        resumed: int = self._ask("reconnect", within_s)
        return resumed

    def come_back(self) -> None:
        """Have each client come back by itself from now on, whenever it is cut off."""
        self._ask("come_back")

    def returns(self) -> int:
        """Wait until all are there; return how many have come back by themselves."""
        count: int = self._ask("settle")
        return count

    def gather(self, offset: int, expected: int) -> None:
        """Wait until so many have an update."""
        self._ask("gather", offset, expected)

    def close_codes(self) -> Counter[int]:
        """Return how often a stream was closed, by the code."""
        codes: Counter[int] = self._ask("close_codes")
        return codes

    def faults(self) -> list[str]:
        """Return what clients found wrong, if they were told to check."""
        faults: list[str] = self._ask("faults")
        return faults

    def _ask(self, what: str, *arguments: Any) -> Any:
        self._pipe.send((what, *arguments))
        answer = self._pipe.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer


@contextmanager
def crowd(port: int, *, is_checking: bool = False) -> Iterator[Crowd]:
    """Run a process for clients; end it with all of them.

    ``is_checking`` has each of them check every frame: nothing older than before, no
    key twice, the price of ``make_priced_row``, and no window left out, where each
    window has something for it.
    """
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_run, args=(theirs, port, is_checking))
    process.start()
    try:
        yield Crowd(ours)
    finally:
        process.kill()
        process.join()
        ours.close()
        theirs.close()


class _Client(WSListener):
    def __init__(self, clients: "_Clients", keys: list[str]) -> None:
        self.transport: WSTransport | None = None
        self.keys = keys
        self.position: dict[str, Any] | None = None
        self.is_ready = False
        self.close_code: int | None = None
        self._answered = asyncio.Event()
        self._clients = clients
        self._versions: dict[str, tuple[int, int]] = {}
        self._offset: int | None = None

    async def try_once(self, url: str) -> bool:
        """Connect and wait for the whole snapshot; say False if that was refused."""
        self.is_ready, self.close_code = False, None
        self._answered.clear()
        try:
            await ws_connect(lambda: self, url, websocket_handshake_timeout=PATIENCE_S)
        except WSHandshakeError:
            return False
        await self._answered.wait()
        if not self.is_ready and self.close_code != WSCloseCode.TRY_AGAIN_LATER:
            raise RuntimeError(f"no snapshot, but the end: {self.close_code}")
        return self.is_ready

    def cut(self) -> None:
        """Lose the connection."""
        assert self.transport is not None
        self.transport.disconnect(graceful=False)
        self.transport = None

    def on_ws_connected(self, transport: WSTransport) -> None:
        self.transport = transport
        message: dict[str, Any] = {"op": "subscribe", "keys": self.keys}
        if self.position is not None:
            message["since"] = self.position
        transport.send(WSMsgType.TEXT, orjson.dumps(message))

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        if frame.msg_type == WSMsgType.PING:
            transport.send_pong(frame.get_payload_as_bytes())
            return
        if frame.msg_type == WSMsgType.CLOSE:
            self.close_code = frame.get_close_code()
            self._clients.closed[int(self.close_code)] += 1
            transport.send_close(self.close_code)
            transport.disconnect()
            return
        if frame.msg_type != WSMsgType.TEXT:
            return
        clients = self._clients
        head = bytes(frame.get_payload_as_memoryview()[:90])
        if head.startswith(b'{"type":"update"'):
            offset = int(head.split(b'"offset":', 1)[1].split(b",", 1)[0])
            clients.note(offset)
            if clients.is_checking:
                self._check(orjson.loads(frame.get_payload_as_bytes()))
        elif head.startswith(b'{"type":"snapshot"'):
            message = orjson.loads(frame.get_payload_as_bytes())
            self._check(message)
            if message["final"]:
                self.position = {"epoch": message["epoch"], "offset": message["offset"]}
                self._offset = message["offset"]
                self.is_ready = True
                self._answered.set()
        elif head.startswith(b'{"type":"ack"'):
            clients.resumed += b'"resumed":true' in frame.get_payload_as_bytes()
        elif head.startswith(b'{"type":"error"'):
            clients.faults_found.append(frame.get_payload_as_utf8_text())

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        if transport is not self.transport:
            return
        if self.is_ready:
            self._clients.was_cut(self)
        self._answered.set()

    def _check(self, message: dict[str, Any]) -> None:
        found, offset = self._clients.faults_found, message["offset"]
        if message["type"] == "update":
            if self._offset is not None:
                first = offset - message.get("merged", 1)
                if first != self._offset:
                    found.append(f"window {self._offset + 1} to {first} left out")
            self._offset = offset
            if self.position is not None:
                self.position["offset"] = offset
        isins = [item["isin"] for item in message["data"]]
        if len(isins) != len(set(isins)):
            found.append(f"a key twice at {offset}")
        for item in message["data"]:
            version = item["time"], item["seq"]
            if str(item["price"]) != price_of(item["seq"]):
                found.append(f"{item['isin']} at {offset}: the price of another trade")
            if version < self._versions.get(item["isin"], version):
                found.append(f"{item['isin']} went back at {offset}")
            self._versions[item["isin"]] = version


class _Clients:
    """All clients of the process, told by a pipe what to do."""

    def __init__(self, port: int, *, is_checking: bool) -> None:
        self.is_checking = is_checking
        self.faults_found: list[str] = []
        self.resumed = 0
        self.returned = 0
        self.closed = Counter[int]()
        self._are_coming_back = False
        self._returning: set[asyncio.Task[None]] = set()
        self._url = f"ws://127.0.0.1:{port}/v1/stream"
        self._all: list[_Client] = []
        self._updates = Counter[int]()
        self._arrived = asyncio.Event()

    def was_cut(self, client: _Client) -> None:
        if self._are_coming_back:
            self.returned += 1
            task = asyncio.create_task(self._come_back(client))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)
        else:
            self.faults_found.append(f"a stream has ended: {client.close_code}")

    async def come_back(self) -> None:
        self._are_coming_back = True

    async def settle(self) -> int:
        # Who was sent away may wait for half a minute before it comes again.
        async with asyncio.timeout(PATIENCE_S + 2 * BACKOFF_MOST_S):
            while self._returning:
                await asyncio.wait(self._returning)
        return self.returned

    async def _come_back(self, client: _Client) -> None:
        for attempt in itertools.count():
            most_s = min(BACKOFF_MOST_S, BACKOFF_S * 2**attempt)
            await asyncio.sleep(random() * most_s)
            # It may be cut off again before its snapshot is there.
            try:
                async with asyncio.timeout(RETURN_S):
                    if await client.try_once(self._url):
                        return
            except TimeoutError:
                self.faults_found.append(f"no answer to a return at {client.position}")
                client.cut()
            except (OSError, RuntimeError):
                continue

    def note(self, offset: int) -> None:
        self._updates[offset] += 1
        self._arrived.set()

    async def connect(self, count: int, instruments: list[str], keys_each: int) -> None:
        chance = Random(7)
        for _ in range(count):
            keys = chance.sample(instruments, keys_each) if keys_each else ["*"]
            self._all.append(_Client(self, keys))
        await self._open_all(CONNECTING_AT_ONCE, 0)

    async def reconnect(self, within_s: float) -> int:
        for client in self._all:
            client.cut()
        await asyncio.sleep(1)
        self.resumed = 0
        await self._open_all(len(self._all), within_s)
        return self.resumed

    async def gather(self, offset: int, expected: int) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while (got := self._updates[offset]) < expected:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise RuntimeError(f"update {offset} reached {got} of {expected}")
            self._arrived.clear()
            await asyncio.wait_for(self._arrived.wait(), left_s)

    async def close_codes(self) -> Counter[int]:
        return self.closed

    async def faults(self) -> list[str]:
        return self.faults_found

    async def _open_all(self, at_once: int, within_s: float) -> None:
        limit = asyncio.Semaphore(at_once)
        chance = Random(9)

        async def open_one(client: _Client) -> None:
            await asyncio.sleep(chance.random() * within_s)
            async with limit, asyncio.timeout(PATIENCE_S):
                attempt = 0
                while not await client.try_once(self._url):
                    most_s = min(BACKOFF_MOST_S, BACKOFF_S * 2**attempt)
                    await asyncio.sleep(chance.random() * most_s)
                    attempt += 1

        await asyncio.gather(*map(open_one, self._all))


def _run(pipe: Connection, port: int, is_checking: bool) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    uvloop.run(_obey(pipe, _Clients(port, is_checking=is_checking)))


async def _obey(pipe: Connection, clients: _Clients) -> None:
    loop = asyncio.get_running_loop()
    while True:
        what, *arguments = await loop.run_in_executor(None, pipe.recv)
        try:
            pipe.send(await getattr(clients, what)(*arguments))
        except Exception as error:  # noqa: BLE001 - the other process raises it
            pipe.send(error)
