"""Kill what a status passes through, and hold what came to what was fed."""

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from typing import Any

import duckdb

from archive.archive_process import open_counts
from archive.settings import ArchiveSettings
from ingest.redis_keys import StatusKeys
from ingest.statuses.status_entry import StatusEntry, decode_added
from tests.conftest import eventually
from tests.e2e.processes import Running, running_command
from tests.e2e.rig import PATIENCE_S, Rig
from tests.e2e.status_feed import EVERY, INSTRUMENTS
from tests.gateway.servers import Gateway
from tests.ports import free_port
from tickthrottle_client.blocking_client import BlockingTickClient

KEYS = StatusKeys("tt")
KILLED = ("feed", "throttle", "gateway", "archive")


class Watcher:
    """What a client of all instruments is told, across all its connections."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.numbers: dict[str, int] = dict.fromkeys(INSTRUMENTS, 0)
        self.statuses = self.items = 0

    def on_status(self, status: dict[str, Any]) -> None:
        """Take the next status in: the next one of its instrument, and none missed."""
        isin, number = status["isin"], int(status["reason"])
        self.statuses += 1
        # What was before the first that is told nobody waited for.
        before = self.numbers[isin] or number - 1
        if number != before + 1 or status["missed"] != 0:
            told = f"{isin}: {number} after {before}"
            self.problems.append(f"{told}, missed {status['missed']}")
        if (last := status.get("last")) is None or last["seq"] != number * EVERY - 1:
            self.problems.append(f"{isin}: status {number} came after {last}")
        self.numbers[isin] = number

    def on_item(self, item: dict[str, Any]) -> None:
        """Take an item in: every status before its trade was told."""
        isin, due = item["isin"], item["seq"] // EVERY
        self.items += 1
        if self.numbers[isin] < due:
            told = f"status {self.numbers[isin]} was told, {due} was due"
            self.problems.append(f"{isin}: trade {item['seq']} came when {told}")


class StatusCrasher:
    """A feed, a job, a gateway and an archive, killed while a client watches."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._port = free_port()
        self._archive = ArchiveSettings(
            redis_url=rig.url, archive_dir=rig.folder / "archive"
        )
        self.watcher = Watcher()
        self._stacks = {name: ExitStack() for name in KILLED}
        self._running = {name: self._start(name) for name in KILLED}
        self._client = BlockingTickClient(
            f"ws://127.0.0.1:{self._port}/v1/stream",
            waits=True,
            on_status=self.watcher.on_status,
        )

    def __enter__(self) -> "StatusCrasher":
        """Begin once everything works."""
        self._rig.wait_until_live(self._running["throttle"])
        self._client.__enter__()
        self._client.subscribe(INSTRUMENTS, self.watcher.on_item)
        self._wait_for_news()
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes."""
        for name in KILLED:
            self._stacks[name].close()
        self._client.__exit__(RuntimeError, None, None)

    def crash_once(self, name: str, chance: Random) -> None:
        """Kill a process at some moment, start it again, wait for a status and an item.

        Fails where the client was told something wrong.
        """
        self._rig.client.blpop(["nothing"], chance.uniform(0.1, 1.0))
        self._running[name].kill()
        self._stacks[name].close()
        self._running[name] = self._start(name)
        if name == "throttle":
            self._rig.wait_until_live(self._running[name])
        if name == "archive":
            # It waits for the lease of the one before.
            self._running[name].wait_for("archiving")
        self._wait_for_news()

    def finish(self) -> int:
        """End feed and archive; hold client, REST and archive to Redis.

        Return how many statuses there were.
        """
        self._stacks["feed"].close()
        logged = self._logged()
        of_feed = {i: [e for e in logged if e.status.isin == i] for i in INSTRUMENTS}
        told = {isin: len(entries) for isin, entries in of_feed.items()}
        self._wait(lambda: self.watcher.numbers == told)
        assert [entry.number for entry in logged] == [*range(1, len(logged) + 1)]
        for isin, entries in of_feed.items():
            numbers = [int(entry.status.reason or 0) for entry in entries]
            assert numbers == [*range(1, told[isin] + 1)], isin
        _, body = Gateway("127.0.0.1", self._port, None).get("/v1/statuses")
        current = {one["isin"]: one["number"] for one in json.loads(body)["data"]}
        assert current == {isin: e[-1].number for isin, e in of_feed.items()}
        self._running["archive"].wait_for("archiving")
        self._stacks["archive"].close()
        counts = open_counts(self._archive)
        assert counts.gaps("statuses") == []
        files = f"{self._archive.archive_dir}/statuses/day=*/*/statuses.parquet"
        query = f"SELECT number, json FROM read_parquet('{files}') ORDER BY number"
        with duckdb.connect() as database:
            stored = database.sql(query).fetchall()
        assert stored == [(e.number, e.status.encode().decode()) for e in logged]
        return len(logged)

    def _start(self, name: str) -> Running:
        stack, rig = self._stacks[name], self._rig
        match name:
            case "feed":
                command = [sys.executable, "-m", "tests.e2e.status_feed", rig.url]
                feed = running_command(rig.folder / "logs", name, command)
                return stack.enter_context(feed)
            case "gateway":
                options = ["--port", str(self._port)]
            case "archive":
                options = ["--dir", str(self._archive.archive_dir)]
            case _:
                options = []
        return stack.enter_context(rig.process(name, *options))

    def _logged(self) -> list[StatusEntry]:
        entries: Any = self._rig.client.xrange(KEYS.stream)
        return [decode_added(f, int(i.partition(b"-")[0])) for i, f in entries]

    def _wait_for_news(self) -> None:
        """Wait until the client was told a status and an item of after now."""
        seqs = dict(self._newest())
        due = {isin: seq // EVERY + 1 for isin, seq in seqs.items()}

        def is_told() -> bool:
            newest, told = dict(self._newest()), self.watcher.numbers
            return all(told[i] >= due[i] and newest[i] > seqs[i] for i in INSTRUMENTS)

        self._wait(is_told)

    def _newest(self) -> dict[str, int]:
        items = self._client.items
        return {i: items[i]["seq"] if i in items else 0 for i in INSTRUMENTS}

    def _wait(self, check: Callable[[], bool]) -> None:
        def look() -> bool:
            assert self.watcher.problems == [], self.watcher.problems[:5]
            for name, process in self._running.items():
                is_ended = process.process.poll() is not None
                assert not is_ended or name == "feed", process.log()[-3_000:]
            return check()

        eventually(look, PATIENCE_S)
