"""Why a command cannot use the server at an address, in one sentence."""

import redis

from ingest.process.redact import server_address
from tickthrottle_client.redis_faults import in_words

__all__ = ["explain", "in_words"]


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
