"""Answers that take long to build."""

import asyncio

import pytest

from gateway.admission.tokens import EVERYTHING
from gateway.http.authorization import Caller
from gateway.http.built_once import MOST_WAITING_EACH, Builds
from gateway.http.conditional import Prepared
from gateway.http.problems import Problem
from gateway.stream.board import Board, Position
from gateway.stream.counters import Counters
from ingest.instrument_table.known_instruments import Instruments
from tests.gateway.requests import make_request

HERE = Position("k3x9", 1, 2_000)


class Builder:
    """Builds when it is told to, and counts how often."""

    def __init__(self) -> None:
        self.counters = Counters()
        self.builds = Builds(self.counters)
        self.prepared = Prepared()
        self.begun = self.ended = 0
        self.may_end = asyncio.Event()

    async def make(self) -> bytes:
        """Build a body."""
        self.begun += 1
        await self.may_end.wait()
        self.ended += 1
        return b"%d" % self.begun

    def ask(
        self, etag: str, address: str = "a", gone: asyncio.Event | None = None
    ) -> "asyncio.Task[bytes]":
        """Ask for a body."""
        caller = Caller(EVERYTHING, Instruments(), Board(), payers=(address,))
        return asyncio.create_task(
            self.builds.build_once(
                make_request(gone), caller, self.prepared, HERE, etag, self.make
            )
        )


async def settled() -> None:
    """Let every task go as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_what_is_the_same_is_built_once() -> None:
    """Also for those who ask while it is built, and before it was their turn."""
    builder = Builder()
    asked = [builder.ask("e", address) for address in "aaabbbc"]
    await settled()
    builder.may_end.set()
    assert set(await asyncio.gather(*asked)) == {b"1"}
    assert await builder.ask("e") == b"1"
    assert builder.begun == 1
    assert await builder.ask("f") == b"2"


async def test_nothing_is_built_for_who_has_gone() -> None:
    """Those who have asked for the same get it all the same."""
    builder = Builder()
    gone = asyncio.Event()
    first, second = builder.ask("e", "a", gone), builder.ask("e", "b")
    await settled()
    assert builder.begun == 1
    gone.set()
    with pytest.raises(Problem, match="gone"):
        await first
    await settled()
    assert (builder.begun, builder.ended) == (2, 0)
    builder.may_end.set()
    assert await second == b"2"
    assert builder.counters.requests_abandoned == 1


async def test_too_many_are_told_to_come_back() -> None:
    """Of one address; another one's answer is built meanwhile."""
    builder = Builder()
    asked = [builder.ask(f"e{number}") for number in range(MOST_WAITING_EACH + 1)]
    await settled()
    with pytest.raises(Problem) as refused:
        await builder.ask("f")
    assert (refused.value.status, refused.value.code) == (503, "overloaded")
    assert refused.value.headers["Retry-After"]
    assert builder.counters.requests_crowded_out == 1
    other = builder.ask("g", "b")
    builder.may_end.set()
    assert await other == b"2"
    await asyncio.gather(*asked)


async def test_an_error_is_that_of_each_who_asked() -> None:
    """The next one tries anew."""
    builder = Builder()
    builder.may_end.set()
    failures = 1

    async def make() -> bytes:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise Problem(404, "unknown_window", "none")
        return b"body"

    caller = Caller(EVERYTHING, Instruments(), Board())
    asked = (make_request(), caller, builder.prepared, HERE, "e", make)
    with pytest.raises(Problem, match="none"):
        await builder.builds.build_once(*asked)
    assert await builder.builds.build_once(*asked) == b"body"
