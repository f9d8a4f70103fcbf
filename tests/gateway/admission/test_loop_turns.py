"""Turns at the event loop, and what one may have of its time."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from gateway.admission.loop_turns import (
    BURST_S,
    SLICE_S,
    WORK_MS_PER_S,
    LoopShare,
    LoopTurns,
    current_share,
)

SHARE = WORK_MS_PER_S / 1_000
BURST_WORK_S = SHARE * BURST_S


def work(seconds: float) -> None:
    """Hold the event loop."""
    until_s = time.thread_time() + seconds
    while time.thread_time() < until_s:
        pass


def stopped_clock() -> float:
    """Return the time at which nobody gets anything back."""
    return 0.0


async def test_others_come_to_their_turn_in_between() -> None:
    """However many ask in one turn; each is served, the first first."""
    turns, begun = LoopTurns(1e6), list[int]()

    async def ask(number: int) -> None:
        await turns.wait(["a"])
        begun.append(number)
        work(SLICE_S / 2)

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
    await turns.wait(["a"])
    work(2 * SLICE_S)

    async def ask(address: str) -> None:
        await turns.wait([address])
        begun.append(address)
        work(2 * SLICE_S)

    await asyncio.gather(*map(ask, "aaaaabb"))
    assert begun[0] == "a"
    assert begun.index("b") <= 2
    assert "".join(begun).rindex("b") < 5


async def test_little_is_begun_at_once() -> None:
    """Nobody waits a turn without a need."""
    turns, begun = LoopTurns(), list[int]()

    async def ask(number: int) -> None:
        await turns.wait(["a"])
        begun.append(number)

    asked = [asyncio.create_task(ask(number)) for number in range(5)]
    await asyncio.sleep(0)
    assert begun == [0, 1, 2, 3, 4]
    await asyncio.gather(*asked)


async def test_who_stops_waiting_holds_nobody_up() -> None:
    """The others begin all the same."""
    turns = LoopTurns()
    await turns.wait(["a"])
    work(2 * SLICE_S)
    waiting = [asyncio.create_task(turns.wait(["a"])) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    waiting[1].cancel()
    await asyncio.wait(waiting)
    assert not waiting[2].cancelled()


def test_who_has_had_his_share_rests_until_it_is_paid_for() -> None:
    """An address or a holder of tokens; the others may go on."""
    now_s = 5.0
    turns = LoopTurns(clock=lambda: now_s)
    turns.charge(["a", "token x"], BURST_WORK_S + SHARE)
    assert turns.rest_s(["a"]) == pytest.approx(1 + 0.001 / SHARE, abs=0.002)
    assert turns.rest_s(["b", "token x"]) == turns.rest_s(["a"])
    assert turns.rest_s(["b"]) == turns.rest_s(["b", "token y"]) == 0
    now_s += 1.01
    assert turns.rest_s(["a"]) == 0


def test_who_may_have_many_rows_may_have_the_time_for_them() -> None:
    """Ten microseconds of a core each."""
    turns = LoopTurns(80_000, stopped_clock)
    turns.charge(["a"], 1.2)
    assert turns.rest_s(["a"]) == pytest.approx(0.801 / 0.8, abs=0.002)


async def test_all_steps_of_a_request_are_charged_and_no_waiting() -> None:
    """In its own task, in those it starts and in threads; what it waits for is free."""
    turns = LoopTurns(clock=stopped_clock)
    share = LoopShare(turns, "a")

    async def steps() -> AsyncIterator[None]:
        for _ in range(4):
            work(BURST_WORK_S / 10)
            await asyncio.sleep(0.01)
            yield

    async def child() -> None:
        work(BURST_WORK_S / 4)

    def in_thread() -> float:
        thread_share = current_share()
        assert thread_share is share
        return thread_share.rest_s(BURST_WORK_S)

    async def serve() -> float:
        async for _ in steps():
            pass
        await asyncio.sleep(BURST_WORK_S)
        assert turns.rest_s(["a"]) == 0
        current = current_share()
        assert current is not None
        await asyncio.create_task(current.charged(child()))
        return await asyncio.to_thread(in_thread)

    # A thread rests for as long as it worked; the debt is greater.
    assert await asyncio.create_task(share.charged(serve())) == BURST_WORK_S
    assert turns.rest_s(["a"]) > 0.6 * BURST_WORK_S / SHARE
    assert current_share() is None
    assert turns.rest_s(["b"]) == 0


async def test_charged_work_is_cancelled_and_fails_as_any_other() -> None:
    """It may clean up, and raise what it likes."""
    share, ended = LoopShare(LoopTurns(), "a"), list[str]()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")

    waiting = asyncio.create_task(share.charged(wait()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended == ["cleaned up"]

    async def fail() -> None:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await asyncio.create_task(share.charged(fail()))
