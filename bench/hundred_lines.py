"""Redis and a hundred lines: why there is more to it.

`bench/peers/hundred_lines.py` is what a good programmer writes in an afternoon. On an
orderly day it is right. This gives it what an ordinary year brings, one after the
other, and prints what a client saw: an older trade that comes late, a price with many
digits, a client that does not read, the program killed, started twice, a cut line.
Ends with exit code 1 if one of them did not show what docs/alternatives.md says.
"""

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

from machine import (
    Server,
    child,
    options,
    print_machine,
    print_rows,
    running_server,
)
from redis.asyncio import Redis
from websockets.asyncio.client import ClientConnection, connect

from ingest.process.ports import free_port

PROGRAM = Path(__file__).with_name("peers") / "hundred_lines.py"
ISIN = "KR7005930003"
WINDOW_S = 2.0
MANY = 2_879
"""Instruments that trade in each window, where a client does not read."""

ROW = {
    **{"isin": "", "time": 1_773_964_803_811_204, "seq": 0, "price": 199_500},
    **{"size": 40, "side": "S", "trades": 37, "volume": 9_170, "value": 1_829_145_000},
    **{"high": 199_600, "low": 199_300, "name": "Samsung Electronics"},
}
"""What a row of the whole market has."""

SLEEPER = """
import sys, time
from websockets.sync.client import connect
with connect(f"ws://127.0.0.1:{sys.argv[1]}", max_size=None) as client:
    print(client.recv() and "here", flush=True)
    time.sleep(600)
"""


class Trial:
    """One start of the program on an empty server, and what can be done to it."""

    def __init__(self, server: Server, log: Redis, stack: ExitStack) -> None:
        self._server = server
        self._stack = stack
        self.log = log
        self.port = free_port()

    def start(self, port: int | None = None) -> "subprocess.Popen[str]":
        words = (str(PROGRAM), self._server.url, str(port or self.port))
        return self._start("ready", *words)

    def start_sleeper(self) -> "subprocess.Popen[str]":
        """Start a client that reads what is known, and nothing more."""
        return self._start("here", "-c", SLEEPER, str(self.port))

    def _start(self, first_line: str, *words: str) -> "subprocess.Popen[str]":
        process = self._stack.enter_context(
            child(sys.executable, *words, stdout=subprocess.PIPE, text=True)
        )
        assert process.stdout is not None
        assert process.stdout.readline().strip() == first_line
        return process

    async def trade(self, price: str, seq: int, time_ms: int, isin: str = ISIN) -> None:
        text = f'{{"isin":"{isin}","time":{time_ms},"seq":{seq},"price":{price}}}'
        await self.log.xadd("trades", {"t": text})

    @asynccontextmanager
    async def client(self) -> AsyncIterator[ClientConnection]:
        """Connect, and take what is known."""
        async with connect(f"ws://127.0.0.1:{self.port}", max_size=None) as client:
            await client.recv()
            yield client


async def at_a_boundary() -> None:
    """Return a moment after a window has begun."""
    await asyncio.sleep(WINDOW_S - time.time() % WINDOW_S + 0.2)


async def prices(client: ClientConnection, within_s: float) -> list[str]:
    """Return each price of the instrument that comes, as it is written."""
    seen: list[str] = []
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            async for message in client:
                seen += re.findall(rf'"{ISIN}".*?"price": ?([^}}]+)}}', str(message))
    return seen


async def an_older_trade(trial: Trial) -> tuple[str, bool]:
    """It was traded first, and comes last."""
    trial.start()
    async with trial.client() as client:
        await trial.trade("71900", 2, 2_000)
        await at_a_boundary()
        await trial.trade("70000", 1, 1_000)
        seen = await prices(client, 2 * WINDOW_S)
    return f"the price goes back: {', then '.join(seen)}", seen == ["71900", "70000"]


async def many_digits(trial: Trial) -> tuple[str, bool]:
    """As a crypto exchange has them."""
    sent = "97123.45678901234567"
    trial.start()
    async with trial.client() as client:
        await trial.trade(sent, 1, 1_000)
        seen = await prices(client, 2 * WINDOW_S)
    return f"{sent} arrives as {', '.join(seen)}", seen not in ([sent], [])


async def one_who_does_not_read(trial: Trial) -> tuple[str, bool]:
    """He opened the page and put his machine to sleep."""
    trial.start()
    sleeper = trial.start_sleeper()
    sleeper.send_signal(signal.SIGSTOP)
    await asyncio.sleep(0.5)
    async with trial.client() as client:
        windows, last_s, longest_s = 0, time.monotonic(), 0.0
        for seq in range(1, 31):
            pipe = trial.log.pipeline(transaction=False)
            for number in range(MANY):
                trade = {**ROW, "isin": f"KR7{number:09d}", "seq": seq}
                pipe.xadd("trades", {"t": json.dumps(trade)}, maxlen=10_000)
            await pipe.execute()
            with suppress(TimeoutError):
                await asyncio.wait_for(client.recv(), WINDOW_S)
                windows, last_s = windows + 1, time.monotonic()
            longest_s = max(longest_s, time.monotonic() - last_s)
    said = f"nobody gets a window for {longest_s:.0f} s"
    return said, windows > 0 and longest_s > 3 * WINDOW_S


async def killed(trial: Trial) -> tuple[str, bool]:
    """And started again at once, as a supervisor does."""
    process = trial.start()
    await at_a_boundary()
    for seq in range(1, 4):
        await trial.trade(f"7190{seq}", seq, seq)
    await asyncio.sleep(0.3)
    process.kill()
    process.wait()
    await trial.trade("71999", 4, 4)
    trial.start()
    async with trial.client() as client:
        seen = await prices(client, 2 * WINDOW_S)
    return f"of four trades {len(seen)} windows tell", seen == []


async def started_twice(trial: Trial) -> tuple[str, bool]:
    """As a second one that waits, or by mistake."""
    trial.start()
    trial.start(free_port())
    listener = trial.log.pubsub()
    await trial.log.config_set("notify-keyspace-events", "KEA")
    await listener.subscribe("__keyspace@0__:latest")
    await trial.trade("71900", 1, 1_000)
    written, until_s = 0, time.monotonic() + 2 * WINDOW_S
    while time.monotonic() < until_s:
        message = await listener.get_message(timeout=0.2)
        written += message is not None and message["type"] == "message"
    await listener.aclose()  # type: ignore[no-untyped-call]
    return f"one window is published {written} times", written == 2


async def a_cut_line(trial: Trial) -> tuple[str, bool]:
    """For three windows; then the page is back."""
    trial.start()
    async with trial.client():
        pass
    for seq in range(1, 4):
        await at_a_boundary()
        await trial.trade(f"7190{seq}", seq, seq)
    await at_a_boundary()
    async with connect(f"ws://127.0.0.1:{trial.port}") as client:
        frame = json.loads(await client.recv())
    names = set(frame) | {name for row in frame["data"] for name in row}
    is_silent = not {"offset", "missed", "trades", "volume"} & names
    return "three windows are missing, and nothing says so", is_silent


Shown = Callable[[Trial], Awaitable[tuple[str, bool]]]
TRIALS: dict[str, Shown] = {
    "an older trade comes late": an_older_trade,
    "a price has many digits": many_digits,
    "a client does not read": one_who_does_not_read,
    "the program is killed in a window": killed,
    "it runs twice": started_twice,
    "a client's line is cut": a_cut_line,
}


async def show(name: str) -> tuple[str, bool]:
    with running_server() as server, ExitStack() as stack:
        async with Redis.from_url(server.url) as log:
            return await TRIALS[name](Trial(server, log, stack))


def main() -> None:
    chosen = options(__doc__, only=([*TRIALS], "which of them", [*TRIALS])).only
    seen = {name: asyncio.run(show(name)) for name in chosen}
    rows = [{"what happens": n, "what is seen": said} for n, (said, _) in seen.items()]
    print_rows("Redis and a hundred lines", rows)
    lines = len(PROGRAM.read_text("utf-8").splitlines())
    print_machine(f"; {lines} lines")
    sys.exit(0 if all(is_shown for _, is_shown in seen.values()) else 1)


if __name__ == "__main__":
    main()
