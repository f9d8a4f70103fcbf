"""When a server is away: which failures pass, how to wait, what to say meanwhile."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

import redis
from redis.backoff import ExponentialBackoff, ExponentialWithJitterBackoff
from redis.retry import Retry

from ingest.tradelog.contract import LogAway
from tickthrottle_client.redis_faults import is_passing
from tickthrottle_client.redis_primary import connect

T = TypeVar("T")

SAY_AGAIN_S = 10.0
"""A long outage is mentioned again after this many seconds."""


class Stopped(Exception):
    """The job was told to stop while it waited."""


def create_client(redis_url: str) -> redis.Redis:
    """Connect to Redis with short deadlines: waiting is the caller's business.

    One retry, at once, covers a connection that broke while it was idle.
    """
    return connect(
        redis_url,
        socket_timeout=5,
        socket_connect_timeout=5,
        retry=Retry(ExponentialBackoff(cap=0.1, base=0.01), retries=1),
    )


AWAY = (redis.RedisError, LogAway)
"""What says that a server did not do as it was asked; it may be just away."""


def is_transient(error: Exception) -> bool:
    """Tell whether an error may pass by itself.

    A wrong password, a key of another type or an unknown command do not.
    """
    return isinstance(error, LogAway) or is_passing(error)


class OutageLog:
    """Says in the log that a server is away, now and then again, and that it is back.

    Several ask it at the same time, each under a name; it is back when all of them get
    answers. ``on_change`` is called when it goes away and when it is back.
    """

    def __init__(
        self, server: str = "redis", on_change: Callable[[bool], None] | None = None
    ) -> None:
        # Loaded where it is needed only: a task of Spark says nothing.
        import structlog

        self._log = structlog.get_logger()
        self._server = server
        self._on_change = on_change
        self._lock = threading.Lock()
        self._without_answer: set[str] = set()
        self._began_s = self._said_s = 0.0

    def failed(self, who: str, error: Exception) -> None:
        """Somebody got no answer."""
        with self._lock:
            now_s = time.monotonic()
            if not self._without_answer:
                self._began_s = now_s
                self._tell(is_away=True)
            elif now_s - self._said_s < SAY_AGAIN_S:
                self._without_answer.add(who)
                return
            self._without_answer.add(who)
            self._said_s = now_s
            self._log.warning(
                f"{self._server} is away", error=str(error), away_s=self._away_s()
            )

    def answered(self, who: str) -> None:
        """Somebody got one."""
        with self._lock:
            if who in self._without_answer:
                self._without_answer.remove(who)
                if not self._without_answer:
                    self._log.info(f"{self._server} is back", away_s=self._away_s())
                    self._tell(is_away=False)

    def _tell(self, *, is_away: bool) -> None:
        if self._on_change is not None:
            self._on_change(is_away)

    def _away_s(self) -> float:
        return round(time.monotonic() - self._began_s, 1)


def until_done(
    call: Callable[[], T], stop: threading.Event, outage: OutageLog | None = None
) -> T:
    """Call until it succeeds; wait between attempts, longer each time, up to 1 s.

    Raises Stopped once ``stop`` is set, and what ``is_transient`` says is lasting.
    """
    outage = outage or OutageLog()
    backoff = ExponentialWithJitterBackoff(cap=1, base=0.05)
    failures = 0
    while True:
        try:
            result = call()
        except AWAY as error:
            if not is_transient(error):
                raise
            failures += 1
            outage.failed("job", error)
            pause(backoff.compute(failures), stop)
        except Exception:
            # A refusal is an answer, too.
            outage.answered("job")
            raise
        else:
            outage.answered("job")
            return result


def pause(seconds: float, stop: threading.Event) -> None:
    """Wait. Raises Stopped once ``stop`` is set."""
    # Not stop.wait: a signal handler that sets the event could find its lock taken.
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if stop.is_set():
            raise Stopped("told to stop meanwhile")
        time.sleep(min(left, 0.1))
