"""A crowd that checks every frame, at a gateway of two workers and two relays of it.

A worker or a relay is killed every few seconds, and begun again. Afterwards every
window is compared with the trade log, as `tickthrottle load` does. Ends with exit code
1 at a fault of any client or window.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import Event, Thread

import psutil
from rich.console import Console

from cli.commands.load_choices import LoadChoices
from loadtest.load_run import carry_out
from loadtest.plan import plan_of
from loadtest.report.console import RunDisplay
from loadtest.report.terminal import summary
from loadtest.system.deployment import (
    LOAD_SETTINGS,
    Deployment,
    listening_pids,
    local,
)
from tests.conftest import eventually
from tests.e2e.gateway_node import GatewayNode

WORKERS = 2
BACK_WITHIN_S = 60


class Killer(Thread):
    """Kills one of several things every so often, and waits until it is back.

    It does so ``for_s`` long: clients must come to the end of what was published.
    """

    def __init__(
        self, deaths: dict[str, Callable[[], None]], every_s: float, for_s: float
    ) -> None:
        super().__init__(daemon=True)
        self.killed: Counter[str] = Counter()
        self.failed: list[str] = []
        self._deaths, self._every_s, self._ends = deaths, every_s, Event()
        self._until_s = time.monotonic() + for_s

    def run(self) -> None:
        chance = Random(11)
        while not self._ends.wait(self._every_s):
            if time.monotonic() > self._until_s:
                return
            name = chance.choice([*self._deaths])
            try:
                self._deaths[name]()
            except (AssertionError, OSError, psutil.Error) as error:
                self.failed.append(f"{name}: {error!r}")
            self.killed[name] += 1

    def close(self) -> None:
        """End; whoever was killed is back."""
        self._ends.set()
        self.join(2 * BACK_WITHIN_S)


def workers_of(port: int) -> list[psutil.Process]:
    """Return the workers of the gateway that serves at a port."""
    pids = listening_pids({port})
    listening = [psutil.Process(pid) for pid in pids]
    # Their parent may hold the port, too.
    return [process for process in listening if process.ppid() in pids] or listening


def kill_worker(port: int) -> None:
    """Kill a worker of a gateway; wait until it has another one."""
    workers = workers_of(port)
    os.kill(workers[0].pid, signal.SIGKILL)

    def is_back() -> bool:
        now = {process.pid for process in workers_of(port)}
        return workers[0].pid not in now and len(now) == WORKERS

    eventually(is_back, BACK_WITHIN_S)


def kill_relay(relay: GatewayNode) -> None:
    """Kill a relay, leave it dead for two windows, begin it again."""
    relay.kill()
    time.sleep(4)
    relay.begin()
    eventually(relay.is_live, BACK_WITHIN_S)


@contextmanager
def with_relays(
    deployment: Deployment, folder: Path
) -> Iterator[tuple[Deployment, list[GatewayNode]]]:
    """Run two relays of a deployment; yield it with their addresses, and them."""
    (host, port), *_ = deployment.targets
    settings = {**LOAD_SETTINGS, "TICKTHROTTLE_FOLLOW": f"http://{host}:{port}"}
    with ExitStack() as stack:
        relays = [GatewayNode(stack, folder, **settings) for _ in range(2)]
        for relay in relays:
            relay.begin()
            eventually(relay.is_live, BACK_WITHIN_S)
        # Half of the crowd is at the gateway itself: as many at a worker as at a relay.
        targets = [(host, port)] * WORKERS + [(host, relay.port) for relay in relays]
        yield replace(deployment, targets=tuple(targets)), relays


def main() -> None:
    """Run the crowd and print what it found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=5_000, help="that check")
    parser.add_argument("--seconds", type=float, default=300, help="to measure")
    parser.add_argument("--every", type=float, default=12, help="seconds to a kill")
    mix = "watch:60,compact:35,reconnecting:3,slow:2"
    parser.add_argument("--mix", default=mix, help="kinds of clients")
    asked = parser.parse_args()
    plan = plan_of(
        LoadChoices(
            clients=asked.clients,
            seconds=asked.seconds,
            mix=asked.mix,
            # What a killed process costs its clients is no promise of lag.
            rules=("lag.p99>60s",),
        )
    )
    instruments = plan.feed.isins()
    console = Console(stderr=True, highlight=False)
    settings = {"TICKTHROTTLE_WORKERS": str(WORKERS)}
    with (
        tempfile.TemporaryDirectory(prefix="relay-crowd-") as folder,
        local(settings=settings) as deployment,
        with_relays(deployment, Path(folder)) as (served, relays),
    ):
        port = served.targets[0][1]
        deaths: dict[str, Callable[[], None]] = {
            "worker": lambda: kill_worker(port),
            "relay 1": lambda: kill_relay(relays[0]),
            "relay 2": lambda: kill_relay(relays[1]),
        }
        killer = Killer(deaths, asked.every, plan.warm_up_s + asked.seconds)
        killer.start()
        try:
            with RunDisplay(console) as progress:
                result = carry_out(plan, instruments, served, progress)
        finally:
            killer.close()
    console.print(summary(result))
    print("Killed:", ", ".join(f"{name} {n}" for name, n in killer.killed.items()))
    for failed in killer.failed:
        print("Not back:", failed)
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    sys.exit(not result.is_passed or bool(killer.failed))


if __name__ == "__main__":
    main()
