"""What a job does in Redis, asked for before it starts: a user may lack a right.

The server judges a command when it is queued in a transaction. So all of them are
queued and none is executed.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import redis

from ingest.process.redis_fault import check_memory
from ingest.redis_keys import (
    ANALYTICS_JOB,
    PRODUCTS,
    AnalyticsKeys,
    Keys,
    OtherKeys,
)
from ingest.tradelog.contract import LogKind
from ingest.tradelog.redis_log_reader import check_server
from tickthrottle_client.log_v1 import info_key, stream_key

Command = Sequence[str]
"""A command and what it is given; its key comes first."""

_ARGUMENTS = {
    **dict.fromkeys(("HGET", "HMGET", "HDEL", "SET"), ("x",)),
    **dict.fromkeys(("HSET", "HSETNX"), ("x", "x")),
    **dict.fromkeys(("ZRANGEBYSCORE", "ZREMRANGEBYSCORE"), ("0", "1")),
    "HINCRBY": ("x", "1"),
    "XADD": ("*", "x", "x"),
    "XRANGE": ("-", "+"),
    "XREVRANGE": ("+", "-"),
    "XTRIM": ("MINID", "0"),
    "ZADD": ("0", "x"),
    "ZREMRANGEBYRANK": ("0", "-2"),
    "EXPIRE": ("1",),
    "PUBLISH": ("",),
}
"""What stands behind a command's key; nothing behind that of others."""

_OF_THE_SERVER = (
    *(("TIME",), ("INFO", "server"), ("SCRIPT", "LOAD", "return 1")),
    ("EVALSHA", "0" * 40, "0"),
)


def _on(names: str, *keys: str) -> Iterator[Command]:
    """Yield commands, with spaces between their names, on each of some keys."""
    for key in keys:
        for name in names.split():
            yield (name, key, *_ARGUMENTS.get(name, ()))


def commands_of_a_job(keys: Keys, job: str, log: LogKind) -> Iterator[Command]:
    """Yield every command a job runs, once for each kind of key."""
    ledger, table = keys.ledger(job), OtherKeys(keys.namespace)
    yield from _OF_THE_SERVER
    yield from _on("HSET HGET HMGET", keys.meta)
    yield from _on("HSET HLEN HMGET DEL", keys.last, keys.days_so_far)
    yield from _on("HSET HLEN HKEYS HDEL DEL", keys.groups)
    yield from _on("HSET EXISTS HGET HGETALL HINCRBY DEL", ledger)
    yield from _on("HSET DEL", keys.stages(job))
    yield from _on("XLEN XADD DEL", keys.windows, keys.batches(job))
    yield from _on("XLEN XADD", f"{keys.dead(job)}:0")
    yield from _on("GET SET DEL", keys.lease(job))
    yield from _on("PUBLISH", keys.updates, keys.market_updates("x"))
    yield ("PUBSUB", "CHANNELS", "x")
    yield from _on("HGETALL", table.instruments_meta)
    yield from _on("XRANGE XREVRANGE", table.instruments)
    if log == "redis":
        yield from _to_read_log(keys.namespace)
        yield from _on("XTRIM", stream_key(keys.namespace, 0))


def commands_of_analytics(keys: AnalyticsKeys, log: LogKind) -> Iterator[Command]:
    """Yield every command the analytics job runs, once for each kind of key."""
    own = keys.lease_keys
    ledgers = own.ledger(ANALYTICS_JOB), *map(keys.ledger, PRODUCTS)
    yield from _OF_THE_SERVER
    yield from _on("HGET HSET", own.meta)
    yield from _on("GET SET DEL", own.lease(ANALYTICS_JOB))
    yield from _on("DEL", own.last, own.windows, own.groups, own.batches(ANALYTICS_JOB))
    yield from _on("HMGET HGET HSET", *map(keys.progress, PRODUCTS))
    yield from _on("HSET", *map(keys.state, PRODUCTS))
    yield from _on("DEL XADD", *map(keys.batches, PRODUCTS))
    yield from _on("PUBLISH", *map(keys.updates, PRODUCTS))
    yield from _on("EXISTS DEL HSET HINCRBY", *ledgers)
    of_bars = "ZRANGEBYSCORE ZADD ZREMRANGEBYSCORE ZREMRANGEBYRANK EXPIRE"
    yield from _on(of_bars, keys.bars("x"))
    yield from _on("HGETALL HSET", keys.last_bars, keys.days)
    yield from _on("SET", keys.movers)
    yield from _on("XADD", keys.bursts, keys.moves)
    yield from _on("XRANGE XADD DEL", keys.bar_log)
    if log == "redis":
        yield from _to_read_log(keys.namespace)


def _to_read_log(namespace: str) -> Iterator[Command]:
    stream = stream_key(namespace, 0)
    # Whoever comes first makes the log.
    yield from _on("HSETNX HGETALL", info_key(namespace))
    yield from _on("XRANGE XREVRANGE", stream)
    yield ("XINFO", "STREAM", stream)


def check_server_and_rights(client: redis.Redis, commands: Iterable[Command]) -> None:
    """Check what a job needs of a server before it starts.

    Raises LogUnusable for a server of another kind, and redis.NoPermissionError.
    """
    # One of another kind answers what it is, and nothing else.
    check_server(client)
    check_memory(client, may_evict=True)
    check_rights(client, commands)


def check_rights(client: redis.Redis, commands: Iterable[Command]) -> None:
    """Ask whether the client's user may run some commands; none is executed.

    Raises redis.NoPermissionError, which names the first command that it may not run,
    and the key.
    """
    # Its type is of the pool's own kind of connection.
    connection: Any = client.connection_pool.get_connection()
    try:
        for command in (("MULTI",), *commands):
            connection.send_command(*command)
            try:
                connection.read_response()
            except redis.exceptions.NoPermissionError as error:
                raise redis.exceptions.NoPermissionError(
                    f"the user may not run {' '.join(command[:2])} ({error}): "
                    "docs/redis.md lists the rights it needs"
                ) from None
    finally:
        # What was queued is forgotten with the connection.
        connection.disconnect()
        client.connection_pool.release(connection)
