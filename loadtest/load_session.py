"""Everything that stays up during a load test, driven second by second."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from cli.local.process_tree import Named, members
from loadtest.client_mix import Member
from loadtest.clients.crowd import Crowd, crowd
from loadtest.clients.targets import Target
from loadtest.feed.fed import Fed
from loadtest.feed.feed_plan import FeedPlan
from loadtest.feed.feeding import Feed, feeding
from loadtest.judge.books import wait_for_books
from loadtest.judge.following import Follower, following
from loadtest.report.console import RunDisplay, figures
from loadtest.report.recorder import Moment, Recorder
from loadtest.results import ClientTally, Feeding
from loadtest.system.deployment import Deployment
from loadtest.system.usage import Usage, usage_of
from throttle.audit.published import PublishedHistory
from throttle.contract.ledger import Ledger
from tickthrottle_client.redis_primary import connect

JUST_AFTER_MS = 20
"""A feed starts so soon after a window's end that all its windows are full ones."""

JUST_BEFORE_MS = 150
"""The feed before it ends so soon before, that no trade of it is in them."""


class Session:
    """Drives feed and crowd; keeps what it sees. Not to be shared by threads."""

    def __init__(
        self,
        deployment: Deployment,
        past: PublishedHistory,
        follower: Follower,
        crowd: Crowd,
        usage: Usage,
        progress: RunDisplay,
        feeds: list[int],
    ) -> None:
        self.deployment = deployment
        self.follower = follower
        self.crowd = crowd
        self.usage = usage
        self.recorder = Recorder(deployment.window_ms)
        self._past = past
        self.progress = progress
        self._feeds = ExitStack()
        self._feed_pids = feeds
        self._feed: Feed | None = None
        self._began_s = self._last_s = time.time()
        self._aimed = 0
        self.phase = ""
        """What the time that follows is for, in words."""
        self.is_told_to_end = False
        self._so_far = ClientTally()

    def close(self) -> None:
        self._feeds.close()

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
        self._feed = feed
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
        fed = Fed() if self._feed is None else self._feed.tick()
        seen = self.crowd.ticks()
        moment = Moment(now_s * 1_000, now_s - self._last_s, fed, seen)
        self._last_s = now_s
        self.recorder.moments.append(moment)
        self._so_far.add(seen.seen)
        two_windows = max(1, 2 * self.deployment.window_ms // 1_000)
        moments = self.recorder.moments[-two_windows:]
        shown = figures(moments, self._so_far, self._aimed)
        self.progress.show(self.phase, now_s - self._began_s, shown)

    def ledger_at(self, end_ms: float, within_s: float = 10) -> Ledger:
        """Return the first ledger of a window's end or later, as soon as it is there.

        If it does not come, the newest one.
        """
        deadline = time.monotonic() + within_s
        while True:
            ledger = self._past.ledger(self.deployment.job)
            ledger = ledger or self.follower.start.ledger
            if ledger.upto.end_ms >= end_ms or time.monotonic() > deadline:
                return ledger
            self._pause(0.05)

    def drain(self, within_s: float) -> Ledger:
        """Wait until all that was appended is published and told to the clients.

        Return the ledger of then; what is still missing is a finding, no error.
        """
        deadline = time.monotonic() + within_s
        job, now_ms = self.deployment.job, time.time() * 1_000
        ledger = wait_for_books(self._past, job, now_ms, within_s, self._pause)
        ledger = ledger or self.follower.start.ledger
        self.follower.wait_for(ledger.upto.end_ms, 5)
        self.tick()
        left_s = max(1.0, deadline - time.monotonic())
        self.crowd.settle(self.follower.run.offset, left_s)
        newest = self.crowd.freeze()
        # A gateway may be a moment ahead of this process.
        while self.follower.run.offset < newest and time.monotonic() < deadline:
            time.sleep(0.05)
        return ledger

    def _pause(self, seconds: float) -> None:
        # A drain may take long; it is shown too.
        if time.time() - self._last_s >= 1:
            self.tick()
        else:
            time.sleep(seconds)

    def _wait_for_window(self, off_ms: float) -> None:
        """Wait until so long after (or before) the next window's end."""
        window_ms = self.deployment.window_ms
        now_ms = time.time() * 1_000
        time.sleep((off_ms - now_ms) % window_ms / 1_000)


@contextmanager
def session(
    deployment: Deployment, processes: int, progress: RunDisplay, token: str | None
) -> Iterator[Session]:
    """Watch a deployment and open a crowd that nobody has joined yet; end all that.

    ``token`` is what clients show.
    """
    targets = [Target(host, port, token) for host, port in deployment.targets]
    with ExitStack() as stack:
        client = stack.enter_context(connect(deployment.redis_url))
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
        past = PublishedHistory(client, deployment.namespace)
        run = Session(deployment, past, follower, clients, usage, progress, feeds)
        stack.callback(run.close)
        yield run
