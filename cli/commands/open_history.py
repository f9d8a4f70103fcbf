"""Opens the past for a command, and says in one sentence why it cannot be read."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import redis

from archive.account import LoggedBatch, Place
from archive.contract.logged import LoggedStatus
from cli.commands.arguments import BadArgument
from cli.commands.entry import fail
from ingest.process.redis_fault import explain
from ingest.redis_keys import AnalyticsKeys, StatusKeys
from ingest.series import instrument_of, series_of
from ingest.trade import InvalidTrade, check_isin
from ingest.tradelog.contract import LogAway, LogInfo, LogUnusable
from ingest.tradelog.redis_log_reader import check_server, scan_stream
from throttle.audit.log_entries import LogEntries, open_log_entries
from throttle.audit.published import PublishedHistory
from throttle.contract.products.bar_log import BarLogEntry
from throttle.lease.retry import create_client
from throttle.settings import ThrottleSettings

T = TypeVar("T")

# Batches of bars are big, some hundred kilobytes each.
_BATCHES_PIECE = 20


@dataclass(frozen=True, slots=True)
class Past:
    """What a command may look at: what was published, and the log it came from."""

    settings: ThrottleSettings
    history: PublishedHistory
    client: redis.Redis

    def log(self) -> LogEntries:
        """Return the log's entries; end with a sentence if there is no log."""
        namespace = self.settings.namespace
        entries = open_log_entries(self.client, namespace, self.settings.topic())
        if entries is None:
            fail(f"there is no trade log yet under {namespace}:log")
        return entries

    def log_read_by(self, job: str) -> LogEntries:
        """Return the log if a job has read this one; end with a sentence if not."""
        log, jobs = self.log(), self.history.jobs()
        if job not in jobs:
            known = ", ".join(jobs) or "none"
            fail(f"job {job}: has never run on this stream (jobs that have: {known})")
        if jobs[job] != log.info.log_id:
            fail(
                f"job {job}: what it published is from the log {jobs[job]}, "
                f"the log there is now is {log.info.log_id}"
            )
        return log

    def jobs_of(self, info: LogInfo) -> list[str]:
        """Return the jobs that have read a log; end with a sentence if none has."""
        jobs = [job for job, log in self.history.jobs().items() if log == info.log_id]
        if not jobs:
            fail(f"no job has read the log {info.log_id} yet")
        return jobs

    def bar_batches(self) -> Iterator[LoggedBatch]:
        """Yield the entries of the bar log, oldest first; none where no job runs."""
        key = AnalyticsKeys(self.settings.namespace).bar_log
        for _, fields in scan_stream(self.client, key, piece=_BATCHES_PIECE):
            entry = BarLogEntry.decode(fields)
            yield LoggedBatch(entry.epoch, entry.number, tuple(entry.bars()))

    def statuses(self) -> list[Place]:
        """Return epoch and number of each trading status in the log, oldest first."""
        stream = StatusKeys(self.settings.namespace).stream
        entries = scan_stream(self.client, stream)
        logged = (LoggedStatus.of_entry(id_, fields) for id_, fields in entries)
        return [(status.epoch, status.offset) for status in logged]


@contextmanager
def open_past(settings: ThrottleSettings) -> Iterator[Past]:
    """Open the past for reading; end with one sentence on what cannot be read."""
    try:
        with create_client(settings.redis_url) as client:
            check_server(client)
            history = PublishedHistory(client, settings.namespace, settings.trade_log)
            yield Past(settings, history, client)
    except redis.RedisError as error:
        fail(explain(settings.redis_url, error))
    except BadArgument as error:
        fail(str(error), code=2)
    except (LogAway, LogUnusable, ValueError) as error:
        fail(str(error))


def check_instrument(isin: str | None) -> None:
    """Raise BadArgument for what is no ISIN; None is no instrument."""
    if isin is not None:
        try:
            check_isin(isin)
        except InvalidTrade as error:
            raise BadArgument(str(error)) from None


def check_published(key: str | None) -> None:
    """Raise BadArgument for what is neither an ISIN nor the key of a series of one."""
    if key is not None:
        check_instrument(instrument_of(key))
        try:
            series_of(key)
        except ValueError as error:
            raise BadArgument(f"isin {key}: series {error}") from None


def newest_last(items: Iterable[T], limit: int, *, newest_first: bool) -> list[T]:
    """Return the first ``limit``, oldest first, whatever order they come in."""
    first = list(islice(items, limit))
    return first[::-1] if newest_first else first
