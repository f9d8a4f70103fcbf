"""What the routes read from: built once, for the public and the operators alike."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from redis.exceptions import RedisError

from gateway.board import Board
from gateway.counters import Counters
from gateway.exporter import Exporter
from gateway.feed import Feed
from gateway.health import Finding, Health, Reason
from gateway.historian import Historian
from gateway.history import History
from gateway.hub import Hub
from gateway.issues import Issues, read_issues
from gateway.jobs import imbalances, jobs_behind
from gateway.load import LoadMonitor
from gateway.operators import OperatorAccess
from gateway.overload import Overload
from gateway.pipeline import PipelineReader, Seen
from gateway.redis_client import create_redis
from gateway.settings import GatewaySettings
from gateway.window_log import WindowLog
from throttle.snapshot import Keys

LOOK_S = 0.5
"""How often the gateway asks itself whether it is ready."""

CANCEL_AGAIN_S = 0.1

ANSWER_S = 1.0
"""Redis that has not answered a question about readiness in this time is away."""


class Backend:
    """The stream's state, its clients, and whether all of it is well.

    Raises ValueError if a file named in the settings cannot be read.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings
        self.started_ms = time.time_ns() // 1_000_000
        self.issues = Issues()
        if settings.issues_file is not None:
            self.issues = read_issues(settings.issues_file)
        self.board, self.counters = Board(), Counters()
        self.access = OperatorAccess(settings.read_ops_token())
        self.load = LoadMonitor(
            Overload(settings.max_memory_bytes, settings.max_loop_lag_ms / 1_000),
            lambda lag_s: self.exporter.loop_was_late(lag_s),
        )
        self.hub = Hub(
            self.board, settings, self.counters, settings.create_token_reader()
        )
        self.hub.excess = lambda: self.load.excess
        self.redis = create_redis(settings.redis_url)
        self.keys = Keys(settings.namespace)
        self.feed = Feed(self.redis, self.keys, self.board, self.hub, self.counters)
        self.window_log = WindowLog(self.redis, self.keys)
        self.history = History(settings.history_bytes)
        self._historian = Historian(self.history, self.window_log)
        self.feed.followers.append(self._historian)
        self.pipeline = PipelineReader(self.redis, self.keys, settings.read_topic())
        self._told: dict[str, Finding] = {}
        self.exporter = Exporter(settings, self.hub, self.feed, self.reasons)
        self._health = Health()

    @asynccontextmanager
    async def running(
        self, on_end: Callable[[asyncio.Task[None]], None]
    ) -> AsyncIterator[None]:
        """Follow the stream and look after the clients within the block.

        ``on_end`` is told when one of the tasks that must not end has ended.
        """
        tasks = {
            name: asyncio.create_task(work, name=name) for name, work in self._work()
        }
        for task in tasks.values():
            task.add_done_callback(on_end)
        try:
            await self.feed.first_look()
            await self._ask()
            yield
        finally:
            # No read of the feed is cut off: it ends by itself.
            self.feed.stop()
            pending = {task for name, task in tasks.items() if name != "feed"}
            while pending:
                # A cancellation that meets an answer of Redis may get lost in its
                # client.
                for task in pending:
                    task.cancel()
                _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN_S)
            await asyncio.wait([tasks["feed"]])
            await self.redis.aclose()
            self.hub.closings.tell_rest()

    def reasons(self) -> tuple[Reason, ...]:
        """Return every reason why the gateway is not ready; none is good.

        What Redis has to be asked for is ``LOOK_S`` old at most, the rest is of now.
        """
        found = self._own_findings() | self._told
        return self._health.judge(found, time.time_ns() // 1_000_000)

    async def _ask(self) -> None:
        """Find out what only Redis can tell."""
        try:
            async with asyncio.timeout(ANSWER_S):
                seen = await self.pipeline.look(at_most_s=0)
        except (RedisError, OSError) as error:
            # A timeout is an OSError, with nothing to say.
            self._told = {"redis_down": Finding(f"Redis: {error or 'no answer'}")}
        except ValueError as error:
            self._told = {"ledger_off": Finding(str(error))}
        else:
            self._told = self._findings_of_jobs(seen)

    def _findings_of_jobs(self, seen: Seen) -> dict[str, Finding]:
        found = {}
        problems = imbalances(seen.jobs)
        if problems:
            found["ledger_off"] = Finding("; ".join(problems))
        behind = jobs_behind(seen.jobs, seen.clock_ms, self.board.window_ms)
        if behind:
            lasts_ms = seen.clock_ms - min(job.since_ms for job in behind)
            words = "; ".join(job.message for job in behind)
            found["job_behind"] = Finding(words, max(0, lasts_ms) / 1_000)
        return found

    def _work(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        return [
            ("feed", self.feed.run()),
            ("hub", self.hub.run()),
            ("load", self.load.run()),
            ("history", self._historian.run()),
            ("readiness", self._keep_judging()),
            ("metrics", self.exporter.run()),
        ]

    async def _keep_judging(self) -> None:
        # Nobody may ask for an hour, and then want to know since when.
        while True:
            await self._ask()
            self.reasons()
            await asyncio.sleep(LOOK_S)

    def _own_findings(self) -> dict[str, Finding]:
        """Return what needs no question to Redis."""
        now_s, feed = time.monotonic(), self.feed
        found: dict[str, Finding] = {}
        most_s, quiet_s = self.settings.quiet_s, feed.quiet_s(now_s)
        if not feed.is_live(now_s):
            lasts_s = feed.silence_s(now_s) or 0.0
            found["feed_stale"] = Finding(feed.silence_reason(now_s), lasts_s)
        elif most_s and quiet_s > most_s:
            found["quiet"] = Finding(f"no trade for {quiet_s:.1f} s", quiet_s)
        if feed.is_cut_off:
            found["redis_down"] = Finding("Redis: not connected")
        if self.load.excess is not None:
            found["overloaded"] = Finding(self.load.excess)
        return found
