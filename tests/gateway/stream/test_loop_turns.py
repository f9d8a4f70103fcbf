"""What many ask for at once is begun in several turns of the event loop."""

import asyncio
import time

from gateway.stream.loop_turns import SLICE_S, LoopTurns


async def test_others_come_to_their_turn_in_between() -> None:
    """However many ask in one turn; each is served, the first first."""
    turns, begun = LoopTurns(), list[int]()

    async def ask(number: int) -> None:
        await turns.taken("a")
        begun.append(number)
        until_s = time.monotonic() + SLICE_S / 2
        while time.monotonic() < until_s:
            pass

    asked = [asyncio.create_task(ask(number)) for number in range(40)]
    between = 0
    while len(begun) < len(asked):
        before = len(begun)
        await asyncio.sleep(0)
        between += 1
        assert len(begun) - before <= 3
    assert between >= 10
    assert begun == sorted(begun)
    await asyncio.gather(*asked)


async def test_an_address_that_sends_much_waits_behind_itself() -> None:
    """Another one's comes before its second, however many it has sent before."""
    turns, begun = LoopTurns(), list[str]()
    await turns.taken("a")
    time.sleep(2 * SLICE_S)  # noqa: ASYNC251

    async def ask(address: str) -> None:
        await turns.taken(address)
        begun.append(address)
        time.sleep(2 * SLICE_S)  # noqa: ASYNC251

    await asyncio.gather(*map(ask, "aaaaabb"))
    assert begun == [*"aababaa"]


async def test_little_is_begun_at_once() -> None:
    """Nobody waits a turn without a need."""
    turns, begun = LoopTurns(), list[int]()

    async def ask(number: int) -> None:
        await turns.taken("a")
        begun.append(number)

    asked = [asyncio.create_task(ask(number)) for number in range(5)]
    await asyncio.sleep(0)
    assert begun == [0, 1, 2, 3, 4]
    await asyncio.gather(*asked)


async def test_who_stops_waiting_holds_nobody_up() -> None:
    """The others begin all the same."""
    turns = LoopTurns()
    await turns.taken("a")
    time.sleep(2 * SLICE_S)  # noqa: ASYNC251
    waiting = [asyncio.create_task(turns.taken("a")) for _ in range(2)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.wait(waiting)
    assert not waiting[1].cancelled()
