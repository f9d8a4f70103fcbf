"""Opens the past for a command, and says in one sentence why it cannot be read."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import redis

from deploy.arguments import BadArgument, check_bounds
from deploy.entry import fail, read_settings
from ingest.log import LogAway, LogInfo, LogUnusable
from ingest.masking import server_address
from ingest.trade import InvalidTrade, check_isin
from throttle import log_past
from throttle.history import History
from throttle.log_past import LogPast
from throttle.outage import create_client
from throttle.settings import ThrottleSettings

_MOST = 100_000


@dataclass(frozen=True, slots=True)
class Past:
    """What a command may look at: what was published, and the log it came from."""

    settings: ThrottleSettings
    history: History
    client: redis.Redis

    def log(self) -> LogPast:
        """Return the log's past; end with a sentence if there is no log."""
        found = log_past.open_past(self.client, self.settings)
        if found is None:
            fail(f"there is no trade log yet under {self.settings.namespace}:log")
        return found

    def log_read_by(self, job: str) -> LogPast:
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


@contextmanager
def open_past(**given: Any) -> Iterator[Past]:
    """Open the past for reading; end with one sentence on what cannot be read.

    ``given`` are options that win over the environment's settings.
    """
    settings = read_settings(ThrottleSettings, **given)
    try:
        with create_client(settings.redis_url) as client:
            history = History(client, settings.namespace, settings.log)
            yield Past(settings, history, client)
    except redis.RedisError as error:
        fail(f"redis_url {server_address(settings.redis_url)}: {error}")
    except BadArgument as error:
        fail(str(error), code=2)
    except (LogAway, LogUnusable, ValueError) as error:
        fail(str(error))


def check_number(option: str, number: int) -> None:
    """Raise BadArgument for a number of lines nobody can mean."""
    check_bounds(option, number, 1, _MOST)


def check_issue(isin: str | None) -> None:
    """Raise BadArgument for what is no ISIN; None is no issue."""
    if isin is not None:
        try:
            check_isin(isin)
        except InvalidTrade as error:
            raise BadArgument(str(error)) from None
