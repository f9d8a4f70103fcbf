"""Thousands of checking clients, in processes of their own."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import Any

from loadtest.client_mix import Member
from loadtest.clients.targets import Target
from loadtest.clients.worker import run_worker
from loadtest.judge.judging import Judgement
from loadtest.judge.reference import Reference
from loadtest.judge.tallies import CrowdTick
from loadtest.system.spawned import spawned

ASK_EVERY_S = 0.05

SAMPLES_A_WINDOW = 200
"""So many moments of staleness are looked at for each kind and window."""


class CrowdLost(RuntimeError):
    """A process of clients has ended, or a task in it has failed."""


class Crowd:
    """The clients, as their processes' parent sees them. Not for several threads.

    First ``join``, then as many ``ticks`` as wanted, then ``settle``, after which
    nothing more is taken in, then ``judge``, then ``leave``; and again.
    """

    def __init__(self, pids: Sequence[int], pipes: Sequence[Connection]) -> None:
        self.pids = tuple(pids)
        self._pipes = pipes

    def join(self, members: Sequence[Member], within_s: float) -> None:
        """Have members connect, evenly spread over so long; returns at once."""
        count = len(members)
        delays_s = [within_s * place / count for place in range(count)]
        every = len(self._pipes)
        self._ask_each(
            "join",
            [(members[n::every], delays_s[n::every]) for n in range(every)],
        )

    def wait_joined(self, timeout_s: float, wanted: int | None = None) -> int:
        """Wait until ``wanted`` have a whole snapshot; return how many have.

        Without ``wanted``: all members that have joined so far.
        """
        deadline_s = time.monotonic() + timeout_s
        while True:
            counts: list[tuple[int, int]] = self._ask("count_joined")
            joined = sum(joined for joined, _ in counts)
            aim = sum(members for _, members in counts) if wanted is None else wanted
            if joined >= aim or time.monotonic() > deadline_s:
                return joined
            time.sleep(ASK_EVERY_S)

    def cut(self, within_s: float) -> None:
        """Cut every connection at a random time within so long; clients join anew."""
        self._ask("cut", within_s)

    def ticks(self) -> CrowdTick:
        """Return everything since the last call, of all processes."""
        tick = CrowdTick()
        for part in self._ask("tick"):
            tick.add(part)
        return tick

    def settle(self, offset: int, within_s: float) -> int:
        """Wait until every client that reads has come to an offset, then freeze.

        Return how many have not. Clients without news learn of an offset by a
        heartbeat, pollers by their next poll: allow as long as that takes.
        """
        deadline_s = time.monotonic() + within_s
        while True:
            behind: int = sum(self._ask("count_behind", offset))
            if not behind or time.monotonic() > deadline_s:
                self.freeze()
                return behind
            time.sleep(ASK_EVERY_S)

    def freeze(self) -> int:
        """Take in no more; return the greatest offset that any client has.

        The reference to judge by has to hold everything published until now.
        """
        newest: int = max(self._ask("freeze"))
        return newest

    def judge(
        self,
        reference: Reference,
        from_ms: float,
        to_ms: float,
        samples: int = SAMPLES_A_WINDOW,
    ) -> Judgement:
        """Judge every client by what was published, as of when they were frozen.

        Windows that ended within the bounds count for lag and staleness, seconds
        within them for counts; promises are judged over the whole time.
        """
        holes = sorted({hole for part in self._ask("holes") for hole in part})
        share = -(-samples // len(self._pipes))
        judgement = Judgement()
        for part in self._ask("judge", reference, from_ms, to_ms, holes, share):
            judgement.add(part)
        return judgement

    def leave(self) -> None:
        """Have all say goodbye; others may join then."""
        self._ask("leave")

    def _ask(self, what: str, *arguments: Any) -> list[Any]:
        return self._ask_each(what, [arguments] * len(self._pipes))

    def _ask_each(self, what: str, arguments: Sequence[Sequence[Any]]) -> list[Any]:
        try:
            for pipe, own in zip(self._pipes, arguments, strict=True):
                pipe.send((what, *own))
            answers = [pipe.recv() for pipe in self._pipes]
        except (EOFError, OSError) as error:
            raise CrowdLost("a process of clients has ended") from error
        for answer in answers:
            if isinstance(answer, Exception):
                raise CrowdLost(f"{what}: {answer}")
        return answers


@contextmanager
def crowd(targets: Sequence[Target], processes: int) -> Iterator[Crowd]:
    """Run processes for clients, which are spread over them and over ``targets``.

    There has to be one of each at least.
    """
    with ExitStack() as stack:
        started = [
            stack.enter_context(spawned(run_worker, tuple(targets), number))
            for number in range(processes)
        ]
        pids = [process.pid or 0 for _, process in started]
        yield Crowd(pids, [pipe for pipe, _ in started])
