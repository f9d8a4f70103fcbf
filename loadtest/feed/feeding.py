"""Feed the trade log in a process of its own: an open loop, whatever reads the log.

The schedule is kept by the clock alone. A feed that cannot keep up with it catches up
as fast as it can, drops nothing, and tells how far it was behind.
"""

import gc
import signal
import threading
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging import CRITICAL
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

import redis
import structlog

from ingest.feed.open_writer import open_outlet
from ingest.feed.pacer import FeedProgress, FeedReport, run_feed
from ingest.process.redact import server_address
from ingest.settings import IngestSettings
from ingest.sources.event import Refusals
from ingest.sources.tape import TapeError
from ingest.tradelog.contract import LogAway, LogUnusable
from loadtest.feed.fed import Fed, add_up
from loadtest.feed.feed_plan import FeedPlan
from loadtest.figures.percentiles import summarize
from loadtest.results import Feeding
from loadtest.system.spawned import spawned

# Twice as often as it is looked at, so that there is always a new one.
_TICK_S = 0.5
_ENDS_WITHIN_S = 10.0
_STOP = "stop"


class FeedFailed(RuntimeError):
    """A feed that cannot run, or died; the message says why."""


@contextmanager
def feeding(plan: FeedPlan, settings: IngestSettings) -> Iterator["Feed"]:
    """Yield a feed that is ready to start; on leaving it has ended.

    Its log is open, its market made, its tapes are read as far as needed. Raises
    FeedFailed.
    """
    with spawned(_run_process, plan, settings) as (pipe, process):
        try:
            feed = Feed(process, pipe)
            feed.wait_ready()
            yield feed
        finally:
            # Closing the pipe tells the process to stop.
            pipe.close()
            process.join(_ENDS_WITHIN_S)


class Feed:
    """A feed in a process of its own. Not to be shared by threads."""

    def __init__(self, process: SpawnProcess, pipe: Connection) -> None:
        self._process = process
        self._pipe = pipe
        self._done: list[Fed] = []
        self._account: Feeding | None = None
        self.pid = process.pid or 0
        self.began_ms = 0.0
        """When the feed started, in ms since 1970; 0 before."""

    def wait_ready(self) -> None:
        """Wait until the feed can start at once. Raises FeedFailed."""
        self._receive()

    def start(self) -> None:
        """Start the clock: what is due at 0 is due now. Raises FeedFailed."""
        self._send("start")
        while not self.began_ms:
            self._receive()

    def tick(self) -> Fed:
        """Return what was done since the last call, at once. Raises FeedFailed."""
        while self._account is None and self._pipe.poll():
            self._receive()
        done, self._done = add_up(self._done), []
        return done

    @property
    def is_over(self) -> bool:
        """Whether everything was fed, as it has told."""
        return self._account is not None

    def stop(self) -> Feeding:
        """End the feed, if it has not ended, and return its account.

        Everything appended is acknowledged, or counted as not. Raises FeedFailed.
        """
        if self._account is None:
            self._send(_STOP)
        while self._account is None:
            self._receive()
        return self._account

    def _send(self, word: str) -> None:
        # If it is over or has failed, what it said last tells.
        with suppress(OSError):
            self._pipe.send(word)

    def _receive(self) -> None:
        try:
            message = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(_ENDS_WITHIN_S)
            code = self._process.exitcode
            raise FeedFailed(f"the feed's process died with exit code {code}") from None
        if isinstance(message, FeedFailed):
            raise message
        if isinstance(message, float):
            self.began_ms = message
        elif isinstance(message, Fed):
            self._done.append(message)
        elif isinstance(message, Feeding):
            self._account = message


def _run_process(pipe: Connection, plan: FeedPlan, settings: IngestSettings) -> None:
    """Run the feed's process: say what there is to say over the pipe, nothing else."""
    # Ctrl-C goes to everybody; when this feed ends is the load test's decision.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(CRITICAL))
    try:
        _run(plan, settings, pipe)
    except redis.RedisError as error:
        address = server_address(settings.redis_url)
        pipe.send(FeedFailed(f"the trade log at {address}: {error}"))
    except (LogAway, LogUnusable, TapeError) as error:
        pipe.send(FeedFailed(str(error)))
    except BrokenPipeError:
        # Nobody is there to be told.
        return


def _run(plan: FeedPlan, settings: IngestSettings, pipe: Connection) -> None:
    refusals = Refusals()
    create_events = plan.prepare(refusals)
    stop = threading.Event()
    with open_outlet(settings) as outlet:
        pipe.send("ready")
        # Nobody is there any more, or it is to stop already.
        if _receive_word(pipe) in (None, _STOP):
            return
        threading.Thread(target=_wait_for_stop, args=(pipe, stop), daemon=True).start()
        # Events hold no cycles, and there are very many of them.
        gc.freeze()
        gc.disable()
        teller = _Teller(pipe)
        began_ns = time.time_ns()
        pipe.send(began_ns / 1e6)
        report = run_feed(
            create_events(began_ns // 1_000),
            outlet.writer,
            clock=time.monotonic,
            sleep=time.sleep,
            stop=stop,
            on_progress=teller.show,
            refusals=refusals,
            on_append=teller.measure,
        )
        pipe.send(teller.account(plan.words, report))


def _receive_word(pipe: Connection) -> str | None:
    with suppress(EOFError, OSError):
        return str(pipe.recv())
    return None


def _wait_for_stop(pipe: Connection, stop: threading.Event) -> None:
    """Set ``stop`` when told to, or when there is nobody any more."""
    _receive_word(pipe)
    stop.set()


class _Teller:
    """Tells over the pipe how the feed is doing."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._behind_ms = array("d")
        self._worst_ms = 0.0
        self._told = Fed()

    def measure(self, lag_s: float) -> None:
        """Take in how late the oldest event of an append was acknowledged."""
        self._behind_ms.append(lag_s * 1_000)
        self._worst_ms = max(self._worst_ms, lag_s * 1_000)

    def show(self, progress: FeedProgress) -> None:
        """Tell what was done, if it is time for that."""
        self._worst_ms = max(self._worst_ms, progress.lag_s * 1_000)
        before = self._told
        seconds = progress.elapsed_s - before.seconds
        if seconds < _TICK_S:
            return
        self._told = Fed(progress.elapsed_s, progress.acknowledged)
        done = progress.acknowledged - before.acknowledged
        self._pipe.send(Fed(seconds, done, self._worst_ms))
        self._worst_ms = 0.0

    def account(self, words: str, report: FeedReport) -> Feeding:
        return Feeding(
            words=words,
            acknowledged=report.acknowledged,
            seconds=report.seconds,
            behind_ms=summarize(self._behind_ms),
            retried=report.retried,
            refused=report.refused,
            dropped_at_cap=report.dropped_at_cap,
        )
