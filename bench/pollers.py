"""Clients that ask by HTTP, in a process of their own with the lowest priority.

They share a core with the clients of the stream and must not be what delays those: a
poller waits for that core, and such a wait is part of its times. A request and an
answer cost a fraction of what a library's client would take.
"""

import asyncio
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from random import Random
from typing import Any, cast

import uvloop

from tests.gateway.crowd import pin


@dataclass(frozen=True)
class Load:
    """What is asked for, and how hard."""

    name: str

    paths: Sequence[tuple[str, float]]
    """Paths, with how many requests a second of each; all of them together are
    evenly spread over the second, in an order drawn by chance.
    """

    is_conditional: bool = False
    """Whether a connection says which answer it has (``If-None-Match``)."""

    connections: int = 0
    """So many ask again as soon as they are answered; 0: requests come at the rates
    of ``paths``, however long answers take.
    """


@dataclass
class Answers:
    """What became of the requests; a time counts from when its request was due."""

    times_ms: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    bytes: int = 0
    wall_s: float = 0
    lost: int = 0

    def add(self, other: "Answers") -> None:
        """Take in what became of further requests."""
        self.times_ms += other.times_ms
        self.statuses += other.statuses
        self.bytes += other.bytes
        self.wall_s += other.wall_s
        self.lost += other.lost


class Pollers:
    """The clients, as their process's parent sees them."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def start(self, load: Load) -> None:
        """Begin to ask."""
        self._pipe.send(load)

    def stop(self) -> Answers:
        """Stop asking; return what was answered since the start."""
        self._pipe.send(None)
        answers: Answers | Exception = self._pipe.recv()
        if isinstance(answers, Exception):
            raise answers
        return answers


@contextmanager
def pollers(port: int, core: int) -> Iterator[Pollers]:
    """Run a process that asks a gateway; end it."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_run, args=(theirs, port, core))
    process.start()
    try:
        yield Pollers(ours)
    finally:
        process.kill()
        process.join()
        ours.close()
        theirs.close()


class _Connection(asyncio.Protocol):
    """One keep-alive connection: one request at a time."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._head = b""
        self._left: int | None = None
        self._tags: dict[str, str] = {}
        self._path = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes.
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ConnectionError("closed before an answer"))

    def data_received(self, data: bytes) -> None:
        self._answers.bytes += len(data)
        if self._left is None:
            self._head += data
            head, end, data = self._head.partition(b"\r\n\r\n")
            if not end:
                return
            self._head = b""
            self._left = self._read_head(head.decode("latin-1"))
        self._left -= len(data)
        if self._left <= 0 and self._waiting is not None:
            self._left = None
            self._waiting.set_result(None)

    async def ask(self, path: str, due_s: float, *, is_conditional: bool) -> None:
        """Ask and wait for the whole answer. Raises ConnectionError."""
        if self._transport is None:
            raise ConnectionError("not connected")
        lines = [f"GET {path} HTTP/1.1", "Host: localhost"]
        if is_conditional and path in self._tags:
            lines.append(f"If-None-Match: {self._tags[path]}")
        self._path = path
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write("\r\n".join([*lines, "", ""]).encode())
        await self._waiting
        self._answers.times_ms.append((time.monotonic() - due_s) * 1e3)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _read_head(self, head: str) -> int:
        first, *lines = head.split("\r\n")
        headers = {
            n.lower(): v.strip() for n, _, v in (s.partition(":") for s in lines)
        }
        status = int(first.split(" ", 2)[1])
        self._answers.statuses[status] += 1
        if "etag" in headers:
            self._tags[self._path] = headers["etag"]
        # An answer of 304 may say how long the body would be, and has none.
        return 0 if status == 304 else int(headers["content-length"])


class _Process:
    """Carries out one load after the other."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._answers = Answers()
        self._open: list[_Connection] = []
        self._idle: list[_Connection] = []

    async def carry_out(self, load: Load, stop: asyncio.Event) -> Answers:
        """Ask until told to stop; what is not answered by then does not count."""
        self._answers = Answers()
        self._open, self._idle = [], []
        began_s = time.monotonic()
        async with asyncio.TaskGroup() as group:
            work = [
                group.create_task(self._until_lost(one))
                for one in (
                    [self._ask_again(load, n) for n in range(load.connections)]
                    or [self._ask_at_rates(load, group)]
                )
            ]
            await stop.wait()
            self._answers.wall_s = time.monotonic() - began_s
            # What ends from here on was not lost but broken off.
            result = deepcopy(self._answers)
            for task in work:
                task.cancel()
            for connection in self._open:
                connection.close()
        return result

    async def _until_lost(self, work: Coroutine[Any, Any, None]) -> None:
        answers = self._answers
        try:
            await work
        except OSError:
            answers.lost += 1

    async def _ask_again(self, load: Load, number: int) -> None:
        connection = await self._connect()
        chance = Random(number)
        paths, rates = zip(*load.paths, strict=True)
        while True:
            (path,) = chance.choices(paths, rates)
            await connection.ask(
                path, time.monotonic(), is_conditional=load.is_conditional
            )

    async def _ask_at_rates(self, load: Load, group: asyncio.TaskGroup) -> None:
        chance = Random(1)
        paths, rates = zip(*load.paths, strict=True)
        due_s = time.monotonic()
        while True:
            due_s += 1 / sum(rates)
            await asyncio.sleep(due_s - time.monotonic())
            (path,) = chance.choices(paths, rates)
            asking = self._ask_once(path, due_s, is_conditional=load.is_conditional)
            group.create_task(self._until_lost(asking))

    async def _ask_once(self, path: str, due_s: float, *, is_conditional: bool) -> None:
        connection = self._idle.pop() if self._idle else await self._connect()
        await connection.ask(path, due_s, is_conditional=is_conditional)
        self._idle.append(connection)

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        answers = self._answers
        _, connection = await loop.create_connection(
            lambda: _Connection(answers), "127.0.0.1", self._port
        )
        self._open.append(connection)
        return connection


def _run(pipe: Connection, port: int, core: int) -> None:
    pin(core)
    os.nice(19)
    uvloop.run(_obey(pipe, _Process(port)))


async def _obey(pipe: Connection, process: _Process) -> None:
    loop = asyncio.get_running_loop()
    while True:
        load = await loop.run_in_executor(None, pipe.recv)
        stop = asyncio.Event()
        work = asyncio.create_task(process.carry_out(load, stop))
        await loop.run_in_executor(None, pipe.recv)
        stop.set()
        try:
            pipe.send(await work)
        except Exception as error:  # noqa: BLE001 - the other process raises it
            pipe.send(error)
