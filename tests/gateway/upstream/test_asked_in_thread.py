"""One question at a time, and what becomes of an answer nobody waits for."""

import asyncio
import threading

import pytest

from gateway.upstream.shared_answer import AskedInThread

PATIENCE_S = 20


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
