"""What workers of a gateway ask each other."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway.workers.siblings import ANSWER_S, Question, Siblings
from tests.clients.patience import soon


def is_listening(path: Path) -> bool:
    """Tell whether somebody takes connections there."""
    with socket.socket(socket.AF_UNIX) as caller:
        return caller.connect_ex(str(path)) == 0


@asynccontextmanager
async def running(folder: Path, *workers: int) -> AsyncIterator[list[Siblings]]:
    """Run workers that answer with their number and what they were asked."""

    def create(worker: int) -> Siblings:
        async def answer(question: Question) -> Any:
            if question.get("sleep") == worker:
                await asyncio.sleep(10 * ANSWER_S)
            if question.get("fail") == worker:
                raise ValueError("no such question")
            return {"worker": worker, **question}

        return Siblings(folder, worker, answer)

    siblings = [create(worker) for worker in workers]
    tasks = [asyncio.create_task(each.run()) for each in siblings]
    for worker in workers:
        await soon(lambda worker=worker: is_listening(folder / f"{worker}.sock"))
    yield siblings
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_all_others_answer_in_order(tmp_path: Path) -> None:
    """Also where one has died without a word, and its socket is still there."""
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "2.sock"))
    async with running(tmp_path, 10, 1, 0) as (ten, one, _):
        found = await ten.ask({"ask": "x"})
        assert found == [{"worker": 0, "ask": "x"}, {"worker": 1, "ask": "x"}]
        assert [a["worker"] for a in await one.ask({})] == [0, 10]
    assert os.listdir(tmp_path) == ["2.sock"]


async def test_one_begins_again_where_it_was_killed(tmp_path: Path) -> None:
    """Its socket is in the way, and is replaced."""
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "0.sock"))
    async with running(tmp_path, 1, 0) as (one, _):
        assert await one.ask({}) == [{"worker": 0}]


async def test_one_that_does_not_answer_is_left_out(tmp_path: Path) -> None:
    """Too late, or not at all: the others are shown."""
    async with running(tmp_path, 0, 1, 2) as (zero, _, _):
        assert [a["worker"] for a in await zero.ask({"sleep": 2})] == [1]
        assert [a["worker"] for a in await zero.ask({"fail": 1})] == [2]


async def test_one_alone_has_nobody_to_ask() -> None:
    """And answers nobody."""

    async def answer(question: Question) -> Any:
        raise AssertionError(question)

    alone = Siblings(None, 0, answer)
    task = asyncio.create_task(alone.run())
    assert await alone.ask({}) == []
    task.cancel()
    await asyncio.wait([task])
