"""One process of clients, told through a pipe what to do."""

import asyncio
import os
import resource
import signal
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection

import uvloop

from loadtest.client_mix import Kind, Member
from loadtest.clients.client_loop import ClientLoop
from loadtest.clients.load_client import LoadClient
from loadtest.clients.requests import EventClient, PollingClient
from loadtest.clients.sockets import (
    CompactClient,
    ReconnectingClient,
    SlowClient,
    SocketClient,
)
from loadtest.clients.targets import Target
from loadtest.judge.judging import FAULTS_KEPT, Hole, Judgement, Seen, Span, judge_all
from loadtest.judge.reference import Reference
from loadtest.judge.sums_check import wrong_sums
from loadtest.judge.tallies import CrowdTick

LOOK_EVERY_S = 1.0
GOODBYE_S = 3.0

CLASSES: dict[Kind, type[LoadClient]] = {
    "watch": SocketClient,
    "compact": CompactClient,
    "market": SocketClient,
    "slow": SlowClient,
    "stalled": SlowClient,
    "reconnecting": ReconnectingClient,
    "sse": EventClient,
    "polling": PollingClient,
}


class Worker:
    """The clients of one process; each method answers one command."""

    def __init__(self, targets: Sequence[Target], seed: int) -> None:
        self._targets = targets
        self._client_loop = ClientLoop(seed)
        self._clients: list[LoadClient] = []
        self._ended_ms = 0.0
        self._look()

    async def join(self, members: Sequence[Member], delays_s: Sequence[float]) -> None:
        for member, delay_s in zip(members, delays_s, strict=True):
            target = self._targets[member.number % len(self._targets)]
            client = CLASSES[member.kind](member, target, self._client_loop)
            self._clients.append(client)
            self._client_loop.later(delay_s, client.begin)

    async def count_joined(self) -> tuple[int, int]:
        """Return how many have had a whole snapshot, and how many are to have one."""
        joined = sum(client.has_joined for client in self._clients)
        return joined, len(self._clients)

    async def cut(self, within_s: float) -> None:
        """Cut every connection; who is back with a whole snapshot has joined anew."""
        for client in self._clients:
            client.has_joined = False
            delay_s = self._client_loop.chance.random() * within_s
            self._client_loop.later(delay_s, client.cut_by_choice)

    async def tick(self) -> CrowdTick:
        """Return what is new. Raises what a client's task has raised."""
        if self._client_loop.errors:
            raise self._client_loop.errors[0]
        return self._client_loop.tick()

    async def count_behind(self, offset: int) -> int:
        """Return how many of those that read have not come to an offset."""
        return sum(
            client.reads and client.checker.offset < offset for client in self._clients
        )

    async def freeze(self) -> int:
        """Check what has come, and no more; return the greatest offset of any."""
        self._client_loop.freeze()
        self._ended_ms = time.time() * 1e3
        return max((client.checker.offset for client in self._clients), default=-1)

    async def holes(self) -> list[Hole]:
        """Return the offsets that updates repaired without knowing the trades."""
        return [hole for client in self._clients for hole in client.checker.holes]

    async def judge(
        self,
        reference: Reference,
        from_ms: float,
        to_ms: float,
        holes: Sequence[Hole],
        samples: int,
    ) -> Judgement:
        seen = [
            Seen(c.kind, f"{c.kind} client {c.member.number}", c.checker)
            for c in self._clients
        ]
        span = Span(from_ms, to_ms, self._ended_ms)
        judgement = judge_all(
            seen, reference, span, holes, samples, self._client_loop.chance
        )
        for kind, tally in self._client_loop.between(from_ms, to_ms).items():
            # Those of the checkers are there already, of the whole time.
            tally.faults = 0
            judgement.kind(kind).tally.add(tally)
        judgement.merged_at.update(self._client_loop.merged_at)
        said = self._client_loop.rows.said.get(reference.epoch, ())
        wrong = list(wrong_sums(said, reference, has_holes=bool(holes)))
        judgement.keep(wrong[:FAULTS_KEPT], len(wrong))
        return judgement

    async def leave(self) -> None:
        for client in self._clients:
            client.leave()
        deadline_s = time.monotonic() + GOODBYE_S
        while any(client.is_connected for client in self._clients):
            if time.monotonic() > deadline_s:
                for client in self._clients:
                    client.cut()
                deadline_s += GOODBYE_S
            await asyncio.sleep(0.02)
        self._clients = []
        self._client_loop.forget()

    def _look(self) -> None:
        now_ms = time.time() * 1e3
        for client in self._clients:
            client.look(now_ms)
        asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look)


def run_worker(pipe: Connection, targets: Sequence[Target], seed: int) -> None:
    # Ctrl-C goes to everybody; when clients end is the load test's decision.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    uvloop.run(_obey(pipe, targets, seed))


async def _obey(pipe: Connection, targets: Sequence[Target], seed: int) -> None:
    worker = Worker(targets, seed)
    has_command = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(pipe.fileno(), has_command.set)
    while True:
        await has_command.wait()
        has_command.clear()
        try:
            while pipe.poll():
                # The loop has made it non-blocking; a long message has to block.
                os.set_blocking(pipe.fileno(), True)
                what, *arguments = pipe.recv()
                try:
                    answer = await getattr(worker, what)(*arguments)
                except Exception as error:  # noqa: BLE001 - the other process raises it
                    answer = RuntimeError(f"{type(error).__name__}: {error}")
                pipe.send(answer)
        except (EOFError, OSError):
            loop.remove_reader(pipe.fileno())
            return
