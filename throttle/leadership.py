"""Becoming the one that publishes: a job's log, its lease, and where it goes on."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar, cast

import orjson
import redis
import structlog

from ingest.redis_keys import Keys, form_refusal
from ingest.tradelog.contract import LogInfo, LogReader
from throttle.contract.cut import Cut, newest_cut, origin
from throttle.lease.lease import Candidacy, Keeper, Lease, LeaseGrant, LeaseHeld
from throttle.lease.retry import OutageLog, Stopped, until_done
from throttle.publish.publisher import Publisher, PublishOptions, PublishOutcome
from throttle.publish.rights import check_server_and_rights, commands_of_a_job
from throttle.settings import ThrottleSettings
from throttle.spark.options import source_options
from throttle.spark.task_log import entry_rules, open_log, open_reader
from throttle.standing.taken_from_batch import TakingBack
from throttle.telemetry.metrics import Server, ThrottleMetrics
from throttle.watch.log_watch import LOG, LogWatch
from throttle.window.batch import Batch

T = TypeVar("T")

_ASK_AGAIN_S = 0.05

log = structlog.get_logger()


class JobRefused(RuntimeError):
    """The job may not run on this stream; the message says why."""


class Candidate:
    """What a job needs before it may publish, asked for as long as Redis is away.

    Every method raises Stopped when the job was told to stop meanwhile.
    """

    def __init__(
        self,
        client: redis.Redis,
        settings: ThrottleSettings,
        stop: threading.Event,
        is_rolled_back: bool = False,
        metrics: ThrottleMetrics | None = None,
    ) -> None:
        self._client = client
        self._metrics = metrics
        self._settings = settings
        self._keys = Keys(settings.namespace)
        self._stop = stop
        self._is_rolled_back = is_rolled_back
        self._taken = threading.Event()
        self._outage = OutageLog(on_change=self._teller("redis"))
        self._log_outage = OutageLog(on_change=self._teller("redis"))
        if settings.trade_log != "redis":
            self._log_outage = OutageLog(LOG, self._teller("trade_log"))
        self.lease = Lease(client, self._keys, settings.job, settings.lease_ms)
        self.candidacy = Candidacy(
            client, self._keys, settings.job, self.lease.owner, settings.lease_ms
        )

    def check_rights(self) -> None:
        """Ask for every right the job needs.

        Raises redis.NoPermissionError, and LogUnusable for a server of another kind.
        """
        job, log = self._settings.job, self._settings.trade_log
        commands = tuple(commands_of_a_job(self._keys, job, log))
        self._until_done(lambda: check_server_and_rights(self._client, commands))

    def open_log(self) -> LogInfo:
        """Return the trade log's identity, creating it on first use.

        Raises JobRefused when it is not the one this job has read.
        """
        info = self._ask_log(lambda: open_log(self._client, self._settings))
        self._check_log(info)
        return info

    def check_free(self) -> None:
        """Refuse to start beside a living job of the same name, unless standing by.

        The lease of a job that was killed a moment ago runs out first. Raises
        JobRefused.
        """
        self._check_stream()
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
    ) -> tuple[LeaseGrant, bool] | None:
        """Wait for the lease; return the grant, and whether another had it before.

        None when the log is no longer ``info``. ``check`` is called meanwhile and may
        raise. Raises JobRefused when another job has it and this one is no standby.
        """
        self._check_stream()
        reader = open_reader(self._client, self._settings, info)
        until_s = time.monotonic() + self._patience_s()
        held_by = None
        while self.open_log() == info:
            check()
            got = self._ask_log(lambda: self._ask(reader))
            if isinstance(got, LeaseGrant):
                self._publisher = self._create_publisher(got, info)
                self._taken.set()
                return got, held_by is not None
            if held_by is None and self._settings.standby:
                log.info("standby", active=got.by)
            held_by = got.by
            if not self._settings.standby and time.monotonic() > until_s:
                raise self._refusal(got.by)
            self._pause()
        return None

    def publish(self, batch: Batch, batch_id: int) -> PublishOutcome:
        """Publish a batch under the term of the lease, for as long as Redis is away."""
        # The source may see the lease before the answer to ``take`` is here.
        self._taken.wait()
        return self._until_done(lambda: self._publisher.publish(batch, batch_id))

    def keeper(self, term: int) -> Keeper:
        """Return what keeps the lease; it also says when Redis is away."""
        return Keeper(self.lease, term, self._settings.lease_ms, self._outage)

    def watch(self, info: LogInfo, newest: Callable[[], tuple[Cut, float]]) -> LogWatch:
        """Return what says when the trade log is away."""
        reader = open_reader(self._client, self._settings, info)
        return LogWatch(reader, self._settings.window_ms, newest, self._metrics)

    def _teller(self, server: Server) -> Callable[[bool], None] | None:
        metrics = self._metrics
        return None if metrics is None else partial(metrics.server_away, server)

    def _until_done(self, call: Callable[[], T]) -> T:
        return until_done(call, self._stop, self._outage)

    def _ask_log(self, call: Callable[[], T]) -> T:
        return until_done(call, self._stop, self._log_outage)

    def _create_publisher(self, grant: LeaseGrant, info: LogInfo) -> Publisher:
        rules = entry_rules(source_options(self._settings, info, self.lease.owner))
        standing = TakingBack(rules._replace(since=grant.since))
        options = PublishOptions.of(self._settings)
        return Publisher(self._client, self._keys, options, grant.term, standing)

    def _ask(self, reader: LogReader) -> LeaseGrant | LeaseHeld:
        is_rolled_back = self._is_rolled_back
        first = first_cut(reader, self._settings, is_rolled_back=is_rolled_back)
        return self.lease.acquire(reader.info.log_id, first, is_rolled_back)

    def _check_log(self, info: LogInfo) -> None:
        """Refuse a log that is not the one this job has read.

        Another log in Redis was emptied with all that was published from it. A topic
        was not: positions of another one mean nothing.
        """
        settings, job = self._settings, self._settings.job
        only = settings.only()
        if only and only[-1] >= info.partitions:
            raise JobRefused(
                f"only_partitions {settings.only_partitions}: the log has the "
                f"partitions 0 to {info.partitions - 1}"
            )
        fields = f"log:{job}", f"cut:{job}"
        known, stored = cast(
            "list[bytes | None]",
            self._until_done(lambda: self._client.hmget(self._keys.meta, fields)),
        )
        if known is not None and stored is not None:
            is_kafka = settings.trade_log == "kafka"
            if known.decode() == info.log_id:
                self._check_partitions(Cut.from_offset(orjson.loads(stored)))
            elif is_kafka or known.startswith(b"kafka:"):
                place = (
                    f"kafka_topic {settings.kafka_topic}" if is_kafka else "log redis"
                )
                raise JobRefused(
                    f"{place}: the job {job!r} has read another log ({known.decode()}, "
                    f"this one is {info.log_id}); its positions mean nothing here: "
                    "start it under another --job"
                )

    def _check_partitions(self, stored: Cut) -> None:
        """Refuse to read other partitions than before; all of them may become more."""
        only, known = self._settings.only(), stored.partitions
        if known != (only or tuple(range(len(known)))):
            raise JobRefused(
                f"only_partitions {self._settings.only_partitions!r}: the job "
                f"{self._settings.job!r} has read the partitions "
                f"{', '.join(map(str, known))}; start it under another --job"
            )

    def _check_stream(self) -> None:
        names = "window_ms", "epoch", "form"
        known, epoch, form = cast(
            "list[bytes | None]",
            self._until_done(lambda: self._client.hmget(self._keys.meta, *names)),
        )
        if (refusal := form_refusal(epoch, form)) is not None:
            raise JobRefused(refusal)
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


def first_cut(
    reader: LogReader, settings: ThrottleSettings, *, is_rolled_back: bool
) -> Cut:
    """Return the cut from which a job starts that has never published from a log.

    One that lost its stream leaves nothing out, whatever its settings say. Raises what
    reading the log raises.
    """
    clock_ms, window_ms = reader.clock_ms(), settings.window_ms
    if settings.start == "earliest" or is_rolled_back:
        return origin(reader.head(), clock_ms, window_ms)
    end_ms = clock_ms // window_ms * window_ms
    return newest_cut(reader.tail(end_ms), end_ms)
