"""What costs something is found out once for all who ask at a time."""

import asyncio
import threading

import pytest

from gateway.upstream.shared_answer import AskedInThread, SharedAnswer

PATIENCE_S = 20


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


async def test_who_asks_meanwhile_gets_the_same_answer() -> None:
    """The question is asked once; the next time anew."""
    go, asked = threading.Event(), []

    def question() -> int:
        go.wait(PATIENCE_S)
        asked.append(1)
        return len(asked)

    thread = AskedInThread[int]("asks")
    both = asyncio.gather(*(thread.ask(question, PATIENCE_S) for _ in range(2)))
    await asyncio.sleep(0)
    go.set()
    assert await both == [1, 1]
    assert await thread.ask(question, PATIENCE_S) == 2


@pytest.mark.parametrize(("keeps_late", "answer"), [(True, "late"), (False, "new")])
async def test_a_late_answer_is_kept_or_dropped(keeps_late: bool, answer: str) -> None:
    """While it is under way nobody else is asked."""
    go = threading.Event()

    def late() -> str:
        go.wait(PATIENCE_S)
        return "late"

    thread = AskedInThread[str]("is late", keeps_late=keeps_late)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            await thread.ask(late, 0.01)
    [asking] = [one for one in threading.enumerate() if one.name == "is late"]
    go.set()
    await asyncio.to_thread(asking.join, PATIENCE_S)
    # What it has left to the loop is done now.
    await asyncio.sleep(0)
    assert await thread.ask(lambda: "new", PATIENCE_S) == answer
