"""Turns at what a few may do at a time."""

import asyncio

import pytest

from gateway.admission.turns import NoTurn, Turns


class Work:
    """Work that takes until it is told to end; notes who works, in order."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.begun: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}

    def ask(self, name: str) -> "asyncio.Task[None]":
        """Ask for a turn; the address is the first letter of the name."""
        self._ends[name] = asyncio.Event()
        return asyncio.create_task(self._work(name))

    async def end(self, name: str) -> None:
        """End work; return when others have had the chance to begin."""
        self._ends[name].set()
        await settled()

    async def _work(self, name: str) -> None:
        async with self.turns.taken(name[0]):
            self.begun.append(name)
            await self._ends[name].wait()


async def settled() -> None:
    """Let every task go as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_an_address_leaves_a_place_to_others() -> None:
    """However much it asks for."""
    work = Work(Turns(2, 10, 10))
    for name in ("a1", "a2", "a3"):
        work.ask(name)
    await settled()
    assert work.begun == ["a1"]
    work.ask("b1")
    await settled()
    assert work.begun == ["a1", "b1"]
    assert work.turns.waiting == 2


async def test_addresses_take_turns() -> None:
    """Who asks for one thing does not wait behind who has asked for many."""
    work = Work(Turns(2, 20, 10))
    for name in ("a1", "a2", "a3", "b1", "b2", "c1"):
        work.ask(name)
    await settled()
    assert work.begun == ["a1", "b1"]
    await work.end("b1")
    assert work.begun[2:] == ["c1"]
    await work.end("a1")
    assert work.begun[3:] == ["b2"]
    await work.end("c1")
    assert work.begun[4:] == ["a2"]
    await work.end("b2")
    await work.end("a2")
    assert work.begun[5:] == ["a3"]
    await work.end("a3")
    assert work.turns.waiting == 0


async def test_so_many_may_wait() -> None:
    """In all, and of one address."""
    work = Work(Turns(2, 3, 2))
    for name in ("a1", "a2", "a3"):
        work.ask(name)
    await settled()
    with pytest.raises(NoTurn):
        await work.ask("a4")
    for name in ("b1", "b2"):
        work.ask(name)
    await settled()
    assert work.turns.waiting == 3
    with pytest.raises(NoTurn):
        await work.ask("c1")


async def test_who_stops_waiting_leaves_the_queue() -> None:
    """Also in the moment in which it would have been his turn."""
    work = Work(Turns(1, 5, 5))
    work.ask("a1")
    gone, going = work.ask("b1"), work.ask("b2")
    await settled()
    gone.cancel()
    await settled()
    assert work.turns.waiting == 1
    work.ask("c1")
    await settled()
    going.cancel()
    await work.end("a1")
    assert work.begun == ["a1", "c1"]
    await work.end("c1")
    work.ask("d1")
    await settled()
    assert work.begun[-1] == "d1"
    assert work.turns.waiting == 0


async def test_a_turn_that_comes_to_one_who_is_just_going_goes_on() -> None:
    """Nobody would ever work again otherwise."""
    work = Work(Turns(1, 5, 5))
    work.ask("a1")
    waiting = work.ask("b1")
    work.ask("c1")
    await settled()
    # Its turn comes, and it is cancelled before it can take it.
    work.turns._leave("a")
    waiting.cancel()
    await settled()
    assert work.begun == ["a1", "c1"]
