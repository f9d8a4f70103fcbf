"""Asks a server of Redis whether it may forget what it acknowledged."""

from contextlib import suppress
from typing import Any

import redis
import structlog

from ingest.tradelog.contract import LogUnusable
from tickthrottle_client.server_memory import ServerMemory

log = structlog.get_logger()


def check_memory(client: redis.Redis, *, may_evict: bool) -> None:
    """Raise LogUnusable for a server that may forget trades.

    With ``may_evict`` it is said in the log alone. Raises redis.RedisError.
    """
    reason = _why_forgetful(client)
    if reason is None:
        return
    if not may_evict:
        raise LogUnusable(f"{reason}. TICKTHROTTLE_MAY_EVICT=1 appends all the same")
    log.warning(reason)


def warn_of_memory(client: redis.Redis) -> None:
    """Say in the log that a server may forget. Raises redis.RedisError."""
    if (reason := _why_forgetful(client)) is not None:
        log.warning(reason)


def _why_forgetful(client: redis.Redis) -> str | None:
    with suppress(redis.exceptions.NoPermissionError):
        info: Any = client.info()
        return ServerMemory.decode(info).why_forgetful()
    return None
