"""Taking a job's seat: its log, its lease, and where it goes on."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

import redis
import structlog

from ingest.log import LogInfo
from ingest.redis_log import RedisLogReader, open_log
from throttle.batch import Batch
from throttle.cut import origin
from throttle.lease import Grant, Held, Keeper, Lease
from throttle.outage import Outage, Stopped, until_done
from throttle.publish import Published, Publisher, PublishOptions
from throttle.settings import ThrottleSettings
from throttle.snapshot import Keys

T = TypeVar("T")

_ASK_AGAIN_S = 0.05

log = structlog.get_logger()


class JobRefused(RuntimeError):
    """The job may not run on this stream; the message says why."""


class Seat:
    """What a job needs before it may publish, asked for as long as Redis is away.

    Every method raises Stopped when the job was told to stop meanwhile.
    """

    def __init__(
        self,
        client: redis.Redis,
        settings: ThrottleSettings,
        stop: threading.Event,
        is_rolled_back: bool = False,
    ) -> None:
        self._client = client
        self._settings = settings
        self._keys = Keys(settings.namespace)
        self._stop = stop
        self._is_rolled_back = is_rolled_back
        self._taken = threading.Event()
        self._outage = Outage()
        self.lease = Lease(client, self._keys, settings.job, settings.lease_ms)

    def open_log(self) -> LogInfo:
        """Return the trade log's identity, creating it on first use."""
        settings = self._settings
        return self._until_done(
            lambda: open_log(self._client, settings.namespace, settings.partitions)
        )

    def check_free(self) -> None:
        """Refuse to start beside a living job of the same name, unless standing by.

        A job that was killed a moment ago still holds its lease: wait until it would
        have run out. Raises JobRefused.
        """
        self._check_window()
        until_s = time.monotonic() + self._patience_s()
        while not self._settings.standby:
            holder = self._until_done(self.lease.holder)
            if holder is None:
                return
            if time.monotonic() > until_s:
                raise self._refusal(holder)
            self._pause()

    def take(
        self, info: LogInfo, check: Callable[[], None]
    ) -> tuple[Grant, bool] | None:
        """Wait for the lease; return the grant, and whether another had it before.

        None when the log is no longer ``info``. ``check`` is called meanwhile and may
        raise. Raises JobRefused when another job has it and this one is no standby.
        """
        self._check_window()
        until_s = time.monotonic() + self._patience_s()
        held_by = None
        while self.open_log() == info:
            check()
            got = self._until_done(lambda: self._ask(info))
            if isinstance(got, Grant):
                self._publisher = self._create_publisher(got.term)
                self._taken.set()
                return got, held_by is not None
            if held_by is None and self._settings.standby:
                log.info("standby", active=got.by)
            held_by = got.by
            if not self._settings.standby and time.monotonic() > until_s:
                raise self._refusal(got.by)
            self._pause()
        return None

    def publish(self, batch: Batch, batch_id: int) -> Published:
        """Publish a batch under the seat's term, for as long as Redis is away."""
        # The source may see the lease before the answer to ``take`` is here.
        self._taken.wait()
        return self._until_done(lambda: self._publisher.publish(batch, batch_id))

    def keeper(self, term: int) -> Keeper:
        """Return what keeps the lease; it also says when Redis is away."""
        return Keeper(self.lease, term, self._settings.lease_ms, self._outage)

    def _until_done(self, call: Callable[[], T]) -> T:
        return until_done(call, self._stop, self._outage)

    def _create_publisher(self, term: int) -> Publisher:
        settings = self._settings
        options = PublishOptions(
            settings.job, settings.window_ms, settings.window_log, settings.dead_letters
        )
        return Publisher(self._client, self._keys, options, term)

    def _ask(self, info: LogInfo) -> Grant | Held:
        settings = self._settings
        reader = RedisLogReader(self._client, settings.namespace, info)
        first = origin(reader.head(), reader.clock_ms(), settings.window_ms)
        return self.lease.acquire(info.log_id, first, self._is_rolled_back)

    def _check_window(self) -> None:
        known = self._until_done(
            lambda: self._client.hget(self._keys.meta, "window_ms")
        )
        if known is not None and int(known) != self._settings.window_ms:
            raise JobRefused(
                f"window_ms {self._settings.window_ms}: this stream has windows of "
                f"{int(known)} ms; use another namespace"
            )

    def _refusal(self, holder: str) -> JobRefused:
        return JobRefused(
            f"another throttle job named {self._settings.job!r} is running ({holder}): "
            "stop it, start this one with --standby, or give it another --job"
        )

    def _patience_s(self) -> float:
        # Twice the lease: it may have been renewed just before its holder died.
        return 2 * self._settings.lease_ms / 1000

    def _pause(self) -> None:
        if self._stop.is_set():
            raise Stopped("told to stop while waiting for the lease")
        time.sleep(_ASK_AGAIN_S)
