"""Taking a job's seat: its log, its lease, and where it goes on."""

import threading
import time

import redis
import structlog

from ingest.log import LogInfo
from ingest.redis_log import RedisLogReader, open_log
from throttle.cut import origin
from throttle.lease import Grant, Held, Lease
from throttle.outage import Stopped, until_done
from throttle.publish import Publisher, PublishOptions
from throttle.settings import ThrottleSettings
from throttle.snapshot import Keys

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
        lease: Lease,
        stop: threading.Event,
    ) -> None:
        self._client = client
        self._settings = settings
        self._keys = Keys(settings.namespace)
        self._lease = lease
        self._stop = stop
        self.lost_stream = False

    def open_log(self) -> LogInfo:
        """Return the trade log's identity, creating it on first use."""
        settings = self._settings
        return until_done(
            lambda: open_log(self._client, settings.namespace, settings.partitions),
            self._stop,
        )

    def check_free(self) -> None:
        """Refuse to start beside a living job of the same name, unless standing by.

        A job that was killed a moment ago still holds its lease: wait until it would
        have run out. Raises JobRefused.
        """
        until_s = time.monotonic() + self._patience_s()
        while not self._settings.standby:
            holder = until_done(self._lease.holder, self._stop)
            if holder is None:
                return
            if time.monotonic() > until_s:
                raise self._refusal(holder)
            self._pause()

    def take(self) -> tuple[LogInfo, Grant, bool]:
        """Wait for the lease; return log, grant, and whether another had it before.

        Raises JobRefused when another job has it and this one is no standby.
        """
        self._check_window()
        until_s = time.monotonic() + self._patience_s()
        held_by = None
        while True:
            info, got = until_done(self._ask, self._stop)
            if isinstance(got, Grant):
                self.lost_stream = False
                return info, got, held_by is not None
            if held_by is None and self._settings.standby:
                log.info("standby", active=got.by)
            held_by = got.by
            if not self._settings.standby and time.monotonic() > until_s:
                raise self._refusal(got.by)
            self._pause()

    def publisher(self, term: int) -> Publisher:
        """Create the publisher of a term."""
        settings = self._settings
        options = PublishOptions(
            settings.job, settings.window_ms, settings.window_log, settings.dead_letters
        )
        return Publisher(self._client, self._keys, options, term)

    def _ask(self) -> tuple[LogInfo, Grant | Held]:
        settings = self._settings
        info = open_log(self._client, settings.namespace, settings.partitions)
        reader = RedisLogReader(self._client, settings.namespace, info)
        first = origin(reader.head(), reader.clock_ms(), settings.window_ms)
        return info, self._lease.acquire(info.log_id, first, self.lost_stream)

    def _check_window(self) -> None:
        known = until_done(
            lambda: self._client.hget(self._keys.meta, "window_ms"), self._stop
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
