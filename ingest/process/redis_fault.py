"""Why a server of Redis cannot be used, or not without care, in one sentence."""

from contextlib import suppress
from typing import Any

import redis
import structlog

from ingest.process.redact import server_address
from ingest.tradelog.contract import LogUnusable
from tickthrottle_client.redis_faults import in_words
from tickthrottle_client.server_memory import ServerMemory

__all__ = ["in_words"]

log = structlog.get_logger()


def explain(url: str, error: redis.RedisError) -> str:
    """Say what is wrong with the server at ``url``, and what to do."""
    address = server_address(url)
    # The client counts a refused password as a connection that failed.
    if isinstance(error, (redis.ConnectionError, redis.TimeoutError)) and not (
        isinstance(error, redis.AuthenticationError)
    ):
        return (
            f"no Redis or Valkey server answers at {address} ({error}); "
            "start one, or `tickthrottle run`, or set REDIS_URL to where it is"
        )
    return f"the server at {address} refuses: {in_words(error)}"


def check_memory(client: redis.Redis, *, may_evict: bool) -> None:
    """Raise LogUnusable for a server that may forget what it acknowledged.

    With ``may_evict`` it is said in the log alone. Raises redis.RedisError.
    """
    with suppress(redis.exceptions.NoPermissionError):
        info: Any = client.info()
        reason = ServerMemory.decode(info).why_forgetful()
        if reason is not None and not may_evict:
            rule = "TICKTHROTTLE_MAY_EVICT=1 appends all the same"
            raise LogUnusable(f"{reason}. {rule}")
        if reason is not None:
            log.warning(reason)
