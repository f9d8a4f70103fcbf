"""What the workers of a gateway ask each other, so that operators see one gateway.

Each answers at a socket in a folder that only this user can read: a line of JSON is a
question, what comes until the end is the answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import structlog

ANSWER_S = 0.5
"""A worker that has not answered in this time is left out."""

MAX_QUESTION_BYTES = 4_096

Question = Mapping[str, Any]
Answers = Callable[[Question], Awaitable[Any]]

log = structlog.get_logger()


class Siblings:
    """The other workers of this one's gateway; without a folder there are none.

    ``answer`` says what this worker answers; it is an object of JSON.
    """

    def __init__(self, folder: Path | None, worker: int, answer: Answers) -> None:
        self._folder = folder
        self._own = f"{worker}.sock"
        self._answer = answer

    async def ask(self, question: Question) -> list[Any]:
        """Return what the others answer, in the order of their numbers."""
        if self._folder is None:
            return []
        others = sorted(
            (path for path in self._folder.glob("*.sock") if path.name != self._own),
            key=lambda path: int(path.stem),
        )
        line = orjson.dumps(question) + b"\n"
        answers = await asyncio.gather(*(_ask_one(path, line) for path in others))
        return [answer for answer in answers if answer is not None]

    async def run(self) -> None:
        """Answer the others until cancelled."""
        if self._folder is None:
            await asyncio.Event().wait()
            return
        path = self._folder / self._own
        # One that was killed has left it.
        path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(
            self._serve, path, limit=MAX_QUESTION_BYTES
        )
        async with server:
            try:
                await asyncio.Event().wait()
            finally:
                path.unlink(missing_ok=True)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            async with asyncio.timeout(ANSWER_S):
                question = orjson.loads(await reader.readline())
                writer.write(orjson.dumps(await self._answer(question)))
                await writer.drain()
        except (OSError, ValueError) as error:
            log.warning("a worker's question was not answered", error=str(error))
        finally:
            writer.close()


async def _ask_one(path: Path, line: bytes) -> Any:
    """Return a worker's answer, None if there is none."""
    writer = None
    try:
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(line)
            return orjson.loads(await reader.read())
    except (OSError, ValueError):
        # It has just died, or is too late: the others' answers are shown.
        return None
    finally:
        if writer is not None:
            writer.close()
