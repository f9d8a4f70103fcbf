"""Opens the past for a command, and says in one sentence why it cannot be read."""

from collections.abc import Iterator
from contextlib import contextmanager

import redis

from deploy.arguments import BadArgument, check_bounds
from deploy.entry import fail, read_settings
from ingest.log import LogInfo, LogUnusable
from ingest.redis_log import server_address
from ingest.trade import InvalidTrade, check_isin
from throttle.history import History
from throttle.outage import create_client
from throttle.settings import ThrottleSettings

_MOST = 100_000


@contextmanager
def open_history(
    job: str | None, redis_url: str | None
) -> Iterator[tuple[History, ThrottleSettings]]:
    """Open the past for reading; end with one sentence on what cannot be read."""
    settings = read_settings(ThrottleSettings, job=job, redis_url=redis_url)
    try:
        with create_client(settings.redis_url) as client:
            yield History(client, settings.namespace), settings
    except redis.RedisError as error:
        fail(f"redis_url {server_address(settings.redis_url)}: {error}")
    except BadArgument as error:
        fail(str(error), code=2)
    except (LogUnusable, ValueError) as error:
        fail(str(error))


def log_of(history: History) -> LogInfo:
    """Return the log's identity; end with a sentence if there is none."""
    info = history.log_info()
    if info is None:
        fail(f"there is no trade log yet under {history.namespace}:log")
    return info


def log_read_by(history: History, job: str) -> LogInfo:
    """Return the log if it is the one a job has read; end with a sentence if not."""
    info, jobs = log_of(history), history.jobs()
    if job not in jobs:
        known = ", ".join(jobs) or "none"
        fail(f"job {job}: has never run on this stream (jobs that have: {known})")
    if jobs[job] != info.log_id:
        fail(
            f"job {job}: what it published is from the log {jobs[job]}, "
            f"the log there is now is {info.log_id}"
        )
    return info


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
