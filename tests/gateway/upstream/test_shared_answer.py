"""What costs something is found out once for all who ask at a time."""

import asyncio

import pytest

from gateway.upstream.shared_answer import SharedAnswer


class Counted:
    """Something to be found out, when the test lets it."""

    def __init__(self) -> None:
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.error: Exception | None = None

    async def find_out(self) -> int:
        """Return how often this was asked for."""
        self.asked += 1
        await self.may_answer.wait()
        if self.error is not None:
            raise self.error
        return self.asked


async def test_all_who_ask_at_a_time_share_an_answer() -> None:
    """Whoever wants a newer one gets it, whoever does not costs nothing."""
    counted = Counted()
    shared = SharedAnswer(counted.find_out)
    asking = asyncio.gather(shared.get(), shared.get(0))
    await asyncio.sleep(0)
    counted.may_answer.set()
    assert await asking == [1, 1]
    assert await shared.get(60) == 1
    assert await shared.get(0) == 2


async def test_one_that_stops_waiting_spoils_it_for_nobody() -> None:
    """The question goes on for the others."""
    counted = Counted()
    shared = SharedAnswer(counted.find_out)
    impatient = asyncio.create_task(shared.get())
    patient = asyncio.create_task(shared.get())
    await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.wait([impatient])
    counted.may_answer.set()
    assert await patient == 1


async def test_an_error_is_shared_and_asked_about_again() -> None:
    """Redis that is away is not asked more often than one that answers."""
    counted = Counted()
    counted.may_answer.set()
    counted.error = ValueError("cut of job")
    shared = SharedAnswer(counted.find_out)
    for _ in range(3):
        with pytest.raises(ValueError, match="cut of job"):
            await shared.get(60)
    assert counted.asked == 1
    counted.error = None
    assert await shared.get(0) == 2
