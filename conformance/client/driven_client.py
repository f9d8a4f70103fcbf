"""A client under test, in a process of its own: JSON lines in and out."""

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

START_S = 60.0
ANSWER_S = 20.0
LINE_BYTES = 2**24


class DriverFailed(Exception):
    """The program that drives the client says nothing, or what is no report."""


class Driver:
    """Asks one client for what it holds; its first line has ``says`` and ``takes``."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.name = ""
        self.says: frozenset[str] = frozenset()
        self.takes: frozenset[str] = frozenset()

    async def begin(self) -> None:
        """Read the first line. Raises DriverFailed."""
        first = await self._line(START_S)
        self.name = str(first.get("client", "client"))
        self.says = frozenset(first.get("says", ()))
        self.takes = frozenset(first.get("takes", ()))

    def order(self, do: str, **further: Any) -> None:
        """Have the client do something. Raises DriverFailed if it has ended."""
        assert self._process.stdin is not None
        if self._process.returncode is not None:
            raise DriverFailed("the program has ended")
        line = json.dumps({"do": do, **further}) + "\n"
        self._process.stdin.write(line.encode())

    async def report(self) -> dict[str, Any]:
        """Return what the client holds; numbers are text. Raises DriverFailed."""
        self.order("report")
        return await self._line(ANSWER_S)

    async def _line(self, within_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(within_s):
                line = await self._process.stdout.readline()
        except TimeoutError:
            raise DriverFailed(f"no line within {within_s:.0f} s") from None
        if not line:
            raise DriverFailed("the program has ended")
        try:
            found = json.loads(line, parse_int=str, parse_float=str)
        except ValueError:
            raise DriverFailed(f"{line!r:.200} is no JSON") from None
        if not isinstance(found, dict):
            raise DriverFailed(f"{line!r:.200} is no object")
        return found


@asynccontextmanager
async def driving(command: Sequence[str]) -> AsyncIterator[Driver]:
    """Start the program; end it with the block. Raises DriverFailed, OSError."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, limit=LINE_BYTES
    )
    try:
        driver = Driver(process)
        await driver.begin()
        yield driver
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 2)
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
