"""A tree of relays whose processes are killed by chance, and what a window costs it.

A gateway with Redis, relays of it, relays of those, and a client of everything at each:
an update that does not follow the one before is a fault, and so is a client that does
not come to the end. Lag is from a window's end to its receipt. Killed processes begin
again at their ports; their start counts as processor time.
"""

import json
import os
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import psutil
from machine import Program, options, percentile, print_rows, running_server
from pinned_gateway import INSTRUMENTS
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from ingest.process.ports import free_port
from loadtest.system.machine import describe_machine
from throttle.testing.driver import ThrottleDriver

WINDOW_S, LONGEST_S = 2, 300


class Node:
    """A gateway at a level of the tree, and its client; ``over_s`` is shared."""

    def __init__(self, level: int, folder: Path, **settings: str) -> None:
        self.level, self.port, self._folder = level, free_port(), folder
        operators = {"TICKTHROTTLE_OPERATORS_PORT": str(free_port())}
        self._settings = {**os.environ, **operators, **settings}
        self.offset = self.faults = self.bytes = 0
        self.used_before_s = 0.0
        self.lags_s: list[float] = []

    def begin(self) -> None:
        """Start the process."""
        command = [sys.executable, "-m", "tickthrottle", "gateway", "--port"]
        name, command = f"gateway-{self.port}", [*command, str(self.port)]
        self.program = Program(name, command, self._folder, self._settings)

    def used_s(self) -> float:
        """Return how much of a core it has had."""
        times = psutil.Process(self.program.group).cpu_times()
        return self.used_before_s + times.user + times.system

    def follow(self, over_s: dict[int, float]) -> None:
        """Have the client follow, connecting anew, for as long as the process lasts."""
        wish: dict[str, Any] = {"op": "subscribe", "keys": ["*"]}
        while True:
            time.sleep(0.2)
            url = f"ws://127.0.0.1:{self.port}/v1/stream"
            with (
                suppress(OSError, WebSocketException),
                connect(url, compression=None, max_size=2**26) as line,
            ):
                line.send(json.dumps(wish))
                for text in line:
                    frame = json.loads(text)
                    if frame["type"] == "update":
                        windows = frame["offset"] - self.offset
                        self.faults += frame.get("merged", 1) != windows
                        if (began_s := over_s.get(frame["offset"])) is not None:
                            self.lags_s.append(time.time() - began_s)
                        self.bytes += len(text)
                    elif frame["type"] != "snapshot" or frame["epoch"] is None:
                        continue
                    if frame.get("final", True):
                        self.offset = frame["offset"]
                        wish["since"] = {n: frame[n] for n in ("epoch", "offset")}


def _wait(nodes: list[Node], offset: int) -> int:
    """Wait until clients have come to an offset; return how many have not."""
    until_s = time.time() + LONGEST_S
    while (behind := sum(n.offset < offset for n in nodes)) and time.time() < until_s:
        time.sleep(0.05)
    return behind


def _publish(
    driver: ThrottleDriver, offset: int, rows: int, over_s: dict[int, float]
) -> None:
    """Publish the window with this offset; note before when it was over."""
    at_ms = (offset - 1) * WINDOW_S * 1_000
    for isin in INSTRUMENTS[:rows]:
        driver.trade(isin, f"{offset}.5", at_ms=at_ms + 10)
    over_s[offset] = time.time()
    driver.turn_clock(at_ms + WINDOW_S * 1_000)


def _run(chosen: Any, driver: ThrottleDriver, nodes: list[Node]) -> None:
    chance, kills, windows = Random(chosen.seed), 0, chosen.seconds // WINDOW_S
    over_s: dict[int, float] = {}
    for node in nodes:
        Thread(target=node.follow, args=(over_s,), daemon=True).start()
    _publish(driver, 1, chosen.rows, {})
    _wait(nodes, 1)
    began_s, before_s = time.time(), {node: node.used_s() for node in nodes}
    for offset in range(2, windows + 1):
        time.sleep(max(0, began_s + (offset - 1) * WINDOW_S - time.time()))
        _publish(driver, offset, chosen.rows, over_s)
        if chosen.kill_every and offset * WINDOW_S % chosen.kill_every < WINDOW_S:
            kills, victim = kills + 1, chance.choice(nodes)
            victim.used_before_s = victim.used_s()
            victim.program.kill()
            victim.begin()
    behind, passed_s = _wait(nodes, windows), time.time() - began_s
    rows = []
    for level in sorted({node.level for node in nodes}):
        ours = [node for node in nodes if node.level == level]
        lags_s, count = [lag for node in ours for lag in node.lags_s], len(ours)
        core = sum(n.used_s() - before_s[n] for n in ours) / passed_s / count
        sent = sum(node.bytes for node in ours) / windows / count
        lag = {
            f"p{p}, ms": f"{1e3 * percentile(lags_s, p / 100):.0f}" for p in (50, 99)
        }
        cost = {"of a core, each": f"{core:.1%}", "bytes, a window": f"{sent:,.0f}"}
        rows.append({"level": str(level), "gateways": str(count), **lag, **cost})
    faults = sum(node.faults for node in nodes)
    outcome = f"{kills} kills, {faults} updates that do not follow, {behind} behind"
    print(f"Machine: {describe_machine()}")
    print_rows(f"{windows} windows of {chosen.rows} rows: {outcome}", rows)
    if faults or behind:
        raise SystemExit(1)


def main() -> None:
    """Start the tree, publish and kill, and print what it took."""
    chosen = options(
        __doc__,
        widths=([2, 4], "relays of the second and third level"),
        seconds=(60, "of windows"),
        kill_every=(10, "seconds; 0: nobody is killed"),
        rows=(300, "a window"),
        seed=(1, "of who is killed"),
    )
    with running_server() as server, ExitStack() as stack:
        nodes = above = [Node(0, server.folder, REDIS_URL=server.url)]
        for level, width in enumerate(chosen.widths, 1):
            ports = [above[n % len(above)].port for n in range(width)]
            follow = [{"TICKTHROTTLE_FOLLOW": f"http://127.0.0.1:{p}"} for p in ports]
            above = [Node(level, server.folder, **settings) for settings in follow]
            nodes = nodes + above
        for node in nodes:
            node.begin()
            stack.callback(lambda node=node: node.program.kill())
        _run(chosen, stack.enter_context(ThrottleDriver(redis_url=server.url)), nodes)


if __name__ == "__main__":
    main()
