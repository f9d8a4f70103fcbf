"""Everything that stays up during a load test, driven second by second."""

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import redis

from bench.load.audience import Member
from bench.load.books import read_ledger, wait_for_books
from bench.load.console import Now, Progress
from bench.load.crowd import Crowd, Target, crowd
from bench.load.deployment import Deployment
from bench.load.feed_plan import FeedPlan
from bench.load.feeding import Feed, FeedTick, feeding
from bench.load.following import Follower, following
from bench.load.percentiles import nearest_rank
from bench.load.recorder import Fed, Moment, Recorder, add_up
from bench.load.results import Feeding
from bench.load.tallies import CrowdTick, Tally
from bench.load.usage import Usage, usage_of
from deploy.family import Named, members
from throttle.ledger import Ledger

JUST_AFTER_MS = 20
"""A feed starts so soon after a window's end that all its windows are full ones."""

JUST_BEFORE_MS = 150
"""The feed before it ends so soon before, that no trade of it is in them."""


NOTHING_FED = FeedTick(0.0, 0, 0, 0.0)


class Session:
    """Drives feed and crowd; keeps what it sees. Not to be shared by threads."""

    def __init__(
        self,
        deployment: Deployment,
        client: redis.Redis,
        follower: Follower,
        crowd: Crowd,
        usage: Usage,
        progress: Progress,
        feeds: list[int],
    ) -> None:
        self.deployment = deployment
        self.follower = follower
        self.crowd = crowd
        self.usage = usage
        self.recorder = Recorder(deployment.window_ms)
        self._client = client
        self._progress = progress
        self._feeds = ExitStack()
        self._feed_pids = feeds
        self._feed: Feed | None = None
        self._feed_seen = NOTHING_FED
        self._began_s = self._last_s = time.time()
        self._aimed = 0
        self._phase = ""
        self.is_told_to_end = False
        self._so_far = Tally()
        length = max(1, 2 * deployment.window_ms // 1_000)
        self._shown: deque[tuple[Moment, CrowdTick]] = deque(maxlen=length)

    def close(self) -> None:
        """End the feed."""
        self._feeds.close()

    def say(self, words: str) -> None:
        """Tell something that stays on the screen."""
        self._progress.say(words)

    def enter(self, phase: str) -> None:
        """Say what the time that follows is for."""
        self._phase = phase

    def start_feed(self, plan: FeedPlan) -> float:
        """Start a feed just after a window's end, in place of the one before.

        Return that window's end.
        """
        following_feed = ExitStack()
        try:
            feed = following_feed.enter_context(
                feeding(plan, self.deployment.ingest),
            )
            if self._feed is not None:
                self._wait_for_window(-JUST_BEFORE_MS)
                self.stop_feed()
            self._wait_for_window(JUST_AFTER_MS)
            feed.start()
        except BaseException:
            following_feed.close()
            raise
        self._feeds = following_feed
        self._feed, self._feed_seen = feed, NOTHING_FED
        self._feed_pids[:] = [feed.pid]
        window_ms = self.deployment.window_ms
        return feed.began_ms // window_ms * window_ms

    def stop_feed(self) -> Feeding:
        """End the feed and return its account; there has to be one."""
        assert self._feed is not None, "no feed runs"
        account = self._feed.stop()
        self._feed = None
        self._feeds.close()
        return account

    def join(self, members: Sequence[Member], within_s: float) -> None:
        """Let clients come, evenly spread; goes on until they are there."""
        self._aimed += len(members)
        self.crowd.join(members, within_s)
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            self.tick()
        self.crowd.wait_joined(within_s + 30)

    def leave(self) -> None:
        """Let all clients go."""
        self.crowd.leave()
        self._aimed = 0

    def end_early(self) -> None:
        """Have what goes on until a time end now; for a signal handler."""
        self.is_told_to_end = True

    def run_until(self, to_ms: float) -> None:
        """Go on until a time, or until told to end."""
        while time.time() * 1_000 < to_ms and not self.is_told_to_end:
            self.tick()

    def tick(self) -> None:
        """Wait for the next full second, then see what happened."""
        now_s = time.time()
        time.sleep(int(now_s) + 1 - now_s)
        now_s = time.time()
        fed = Fed() if self._feed is None else self._drain_feed(self._feed)
        seen = self.crowd.ticks()
        moment = Moment(
            at_ms=now_s * 1_000,
            seconds=now_s - self._last_s,
            fed=fed,
            clients=sum(seen.connected.values()),
            frames=seen.frames,
            items=seen.items,
            bytes=seen.bytes,
        )
        self._last_s = now_s
        self.recorder.add(moment)
        self._shown.append((moment, seen))
        self._so_far.add(seen.seen)
        self._progress.show(self._now())

    def _now(self) -> Now:
        """Return how it stands: rates and lags of the last two windows."""
        moments = [moment for moment, _ in self._shown]
        seconds = sum(moment.seconds for moment in moments)
        fed = add_up(moment.fed for moment in moments)
        lags_ms = sorted(lag_ms for _, seen in self._shown for lag_ms in seen.lags_ms)
        return Now(
            phase=self._phase,
            elapsed_s=self._last_s - self._began_s,
            due_rate=fed.due_rate,
            append_rate=fed.append_rate,
            behind_ms=fed.behind_ms,
            lag_p50_ms=nearest_rank(lags_ms, 500) if lags_ms else None,
            lag_p99_ms=nearest_rank(lags_ms, 990) if lags_ms else None,
            clients=moments[-1].clients,
            aimed=self._aimed,
            frame_rate=sum(moment.frames for moment in moments) / seconds,
            byte_rate=sum(moment.bytes for moment in moments) / seconds,
            refused=self._so_far.refused,
            closes=self._so_far.closes,
            faults=self._so_far.faults,
        )

    def ledger_at(self, end_ms: float, within_s: float = 10) -> Ledger:
        """Return the first ledger of a window's end or later, as soon as it is there.

        If it does not come, the newest one.
        """
        deadline = time.monotonic() + within_s
        while True:
            ledger = self.ledger()
            if ledger.upto.end_ms >= end_ms or time.monotonic() > deadline:
                return ledger
            self._pause(0.05)

    def drain(self, within_s: float) -> Ledger:
        """Wait until all that was appended is published and told to the clients.

        Return the ledger of then; what is still missing is a finding, no error.
        """
        deadline = time.monotonic() + within_s
        now_ms = time.time() * 1_000
        ledger = wait_for_books(
            self._client,
            self.deployment.namespace,
            self.deployment.job,
            now_ms,
            within_s,
            pause=self._pause,
        )
        if ledger is None:
            ledger = self.follower.start.ledger
        self.follower.wait_for(ledger.upto.end_ms, 5)
        self.tick()
        left_s = max(1.0, deadline - time.monotonic())
        self.crowd.settle(self.follower.run.offset, left_s)
        newest = self.crowd.freeze()
        # A gateway may be a moment ahead of this process.
        while self.follower.run.offset < newest and time.monotonic() < deadline:
            time.sleep(0.05)
        return ledger

    def ledger(self) -> Ledger:
        """Return the ledger as it is."""
        ledger = read_ledger(
            self._client, self.deployment.namespace, self.deployment.job
        )
        return self.follower.start.ledger if ledger is None else ledger

    def _pause(self, seconds: float) -> None:
        # A drain may take long; it is shown too.
        if time.time() - self._last_s >= 1:
            self.tick()
        else:
            time.sleep(seconds)

    def _drain_feed(self, feed: Feed) -> Fed:
        """Return what the feed did since it was asked last."""
        ticks = feed.ticks()
        if not ticks:
            return Fed()
        before, self._feed_seen = self._feed_seen, ticks[-1]
        return Fed(
            (ticks[-1].at_ms - before.at_ms) / 1_000,
            ticks[-1].due - before.due,
            ticks[-1].acknowledged - before.acknowledged,
            max(tick.behind_ms for tick in ticks),
        )

    def _wait_for_window(self, off_ms: float) -> None:
        """Wait until so long after (or before) the next window's end."""
        window_ms = self.deployment.window_ms
        now_ms = time.time() * 1_000
        time.sleep((off_ms - now_ms) % window_ms / 1_000)


@contextmanager
def session(
    deployment: Deployment, processes: int, progress: Progress, token: str | None
) -> Iterator[Session]:
    """Watch a deployment and open a crowd that nobody has joined yet; end all that.

    ``token`` is what clients show.
    """
    targets = [Target(host, port, token) for host, port in deployment.targets]
    with ExitStack() as stack:
        client = stack.enter_context(redis.Redis.from_url(deployment.redis_url))
        follower = stack.enter_context(
            following(
                deployment.redis_url,
                deployment.namespace,
                deployment.job,
                deployment.window_ms,
            )
        )
        clients = stack.enter_context(crowd(targets, processes))
        feeds: list[int] = []

        def ours() -> list[Named]:
            return [
                *members("load test", os.getpid()),
                *(one for pid in feeds for one in members("load feed", pid)),
                *(one for pid in clients.pids for one in members("load clients", pid)),
            ]

        usage = stack.enter_context(usage_of(deployment.processes, ours))
        run = Session(deployment, client, follower, clients, usage, progress, feeds)
        stack.callback(run.close)
        yield run
