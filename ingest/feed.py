"""Run a feed against a real log: the shell around simulator, replay and pacer."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from types import FrameType

import redis
import structlog
from redis.backoff import NoBackoff
from redis.retry import Retry

from ingest.display import log_report, open_display
from ingest.event import Event, Refusals
from ingest.pace import FeedReport, run_feed
from ingest.redis_log import RedisLogWriter, open_log, server_address
from ingest.replay import ReplayOptions, replay
from ingest.settings import IngestSettings
from ingest.simulator import Simulator

_CONNECT_TIMEOUT_S = 2.0
_ANSWER_TIMEOUT_S = 3.0

log = structlog.get_logger()


class FeedError(RuntimeError):
    """A feed that cannot run; the message says what to do about it."""


def run_simulator(
    settings: IngestSettings,
    simulator: Simulator,
    stop: threading.Event | None = None,
) -> FeedReport:
    """Append a simulated market to the log until it closes or is stopped.

    Without ``stop``, SIGINT and SIGTERM end the feed. Raises FeedError when the
    server cannot be reached or refuses the log.
    """
    total = None if simulator.seconds is None else simulator.rate * simulator.seconds
    events = simulator.events(_now_us())
    return _run("simulator", settings, events, Refusals(), total, stop)


def run_replay(
    settings: IngestSettings,
    options: ReplayOptions,
    stop: threading.Event | None = None,
) -> FeedReport:
    """Append a recorded tape to the log until it ends or is stopped.

    Without ``stop``, SIGINT and SIGTERM end the feed. Raises TapeError for a tape
    that cannot be played, and FeedError when the server cannot be reached or refuses
    the log.
    """
    refusals = Refusals()
    events = replay(options, _now_us(), refusals)
    # The tape first: a wrong path is told before a server is asked for.
    events = chain([next(events)], events)
    return _run("replay", settings, events, refusals, None, stop)


def _run(
    title: str,
    settings: IngestSettings,
    events: Iterator[Event],
    refusals: Refusals,
    total: float | None,
    stop: threading.Event | None,
) -> FeedReport:
    address = server_address(settings.redis_url)
    with _connect(settings.redis_url) as client, _stopping(stop) as flag:
        try:
            writer = _open_writer(client, settings)
            log.info(f"{title}: started", server=address, namespace=settings.namespace)
            with open_display(title, total) as display:
                report = run_feed(
                    events,
                    writer,
                    clock=time.monotonic,
                    sleep=time.sleep,
                    stop=flag,
                    on_progress=display,
                    refusals=refusals,
                )
        except redis.RedisError as error:
            raise FeedError(_explain(address, error)) from error
    log_report(title, report)
    return report


def _explain(address: str, error: redis.RedisError) -> str:
    # The client counts a refused password as a connection that failed.
    if isinstance(error, (redis.ConnectionError, redis.TimeoutError)) and not (
        isinstance(error, redis.AuthenticationError)
    ):
        return (
            f"no Redis or Valkey server answers at {address} ({error}); "
            "start one, or set REDIS_URL to where it is"
        )
    return f"the server at {address} refuses: {error}"


def _now_us() -> int:
    return time.time_ns() // 1000


def _connect(url: str) -> redis.Redis:
    try:
        return redis.Redis.from_url(
            url,
            socket_connect_timeout=_CONNECT_TIMEOUT_S,
            socket_timeout=_ANSWER_TIMEOUT_S,
            # The pacer tries again and counts it; a client that did so unseen would
            # hide duplicates and hold up a stop.
            retry=Retry(NoBackoff(), 0),
        )
    except ValueError as error:
        raise FeedError(
            f"REDIS_URL {server_address(url)!r} is no address: {error}"
        ) from error


def _open_writer(client: redis.Redis, settings: IngestSettings) -> RedisLogWriter:
    info = open_log(client, settings.namespace, settings.partitions)
    if info.partitions != settings.partitions:
        log.info(
            "the log exists and keeps its number of partitions",
            partitions=info.partitions,
            asked_for=settings.partitions,
        )
    return RedisLogWriter(client, settings.namespace, info, settings.log_cap)


@contextmanager
def _stopping(given: threading.Event | None) -> Iterator[threading.Event]:
    """Yield what ends the feed: the caller's event, or one that signals set."""
    stop = given or threading.Event()
    if given or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    received: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        # Event.set is not reentrant: a second signal must not interrupt it and wait
        # for itself.
        if not received:
            received.append(number)
            stop.set()

    before = {n: signal.signal(n, handle) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
