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

_FIELD, _ENTRY = ("x", "x"), ("*", "x", "x")


def commands_of_a_job(keys: Keys, job: str, log: LogKind) -> Iterator[Command]:
    """Yield every command a job runs, once for each kind of key."""
    yield from (("TIME",), ("INFO", "server"), ("SCRIPT", "LOAD", "return 1"))
    yield ("EVALSHA", "0" * 40, "0")
    dead = f"{keys.dead(job)}:0"
    hashes = (
        *(keys.meta, keys.last, keys.groups, keys.days_so_far),
        *(keys.ledger(job), keys.stages(job)),
    )
    streams = keys.windows, keys.batches(job), dead
    for key in hashes:
        yield ("HSET", key, *_FIELD)
    for key in streams:
        yield from (("XLEN", key), ("XADD", key, *_ENTRY))
    for key in (*hashes[1:], *streams[:2], keys.lease(job)):
        yield ("DEL", key)
    yield from (("HGET", keys.meta, "x"), ("HMGET", keys.meta, "x"))
    yield from (("HLEN", keys.last), ("HMGET", keys.last, "x"))
    yield from (("HLEN", keys.days_so_far), ("HMGET", keys.days_so_far, "x"))
    yield from (("HLEN", keys.groups), ("HKEYS", keys.groups))
    yield ("HDEL", keys.groups, "x")
    ledger = keys.ledger(job)
    yield from (("EXISTS", ledger), ("HGET", ledger, "x"), ("HGETALL", ledger))
    yield ("HINCRBY", ledger, "x", "1")
    yield from (("GET", keys.lease(job)), ("SET", keys.lease(job), "x"))
    yield from (("PUBLISH", keys.updates, ""), ("PUBSUB", "CHANNELS", "x"))
    yield ("PUBLISH", keys.market_updates("x"), "")
    table = OtherKeys(keys.namespace)
    yield ("HGETALL", table.instruments_meta)
    yield from (
        ("XRANGE", table.instruments, "-", "+"),
        ("XREVRANGE", table.instruments, "+", "-"),
    )
    if log == "redis":
        yield from _to_read_log(keys.namespace)
        yield ("XTRIM", stream_key(keys.namespace, 0), "MINID", "0")


def commands_of_analytics(keys: AnalyticsKeys, log: LogKind) -> Iterator[Command]:
    """Yield every command the analytics job runs, once for each kind of key."""
    yield from (("TIME",), ("INFO", "server"), ("SCRIPT", "LOAD", "return 1"))
    yield ("EVALSHA", "0" * 40, "0")
    own = keys.lease_keys
    meta, lease = own.meta, own.lease(ANALYTICS_JOB)
    yield from (("HGET", meta, "x"), ("HSET", meta, *_FIELD))
    yield from (("GET", lease), ("SET", lease, "x"), ("DEL", lease))
    for key in (own.last, own.windows, own.groups, own.batches(ANALYTICS_JOB)):
        yield ("DEL", key)
    for product in PRODUCTS:
        progress, batches = keys.progress(product), keys.batches(product)
        yield from (("HMGET", progress, "x"), ("HGET", progress, "x"))
        yield from (("HSET", progress, *_FIELD), ("HSET", keys.state(product), *_FIELD))
        yield from (("DEL", batches), ("XADD", batches, *_ENTRY))
        yield ("PUBLISH", keys.updates(product), "")
    for ledger in (own.ledger(ANALYTICS_JOB), *map(keys.ledger, PRODUCTS)):
        yield from (("EXISTS", ledger), ("DEL", ledger), ("HSET", ledger, *_FIELD))
        yield ("HINCRBY", ledger, "x", "1")
    bars = keys.bars("x")
    yield from (("ZRANGEBYSCORE", bars, "0", "1"), ("ZADD", bars, "0", "x"))
    yield from (("ZREMRANGEBYSCORE", bars, "0", "1"), ("EXPIRE", bars, "1"))
    yield ("ZREMRANGEBYRANK", bars, "0", "-2")
    for key in (keys.last_bars, keys.days):
        yield from (("HGETALL", key), ("HSET", key, *_FIELD))
    yield ("SET", keys.movers, "x")
    for key in (keys.bursts, keys.moves):
        yield ("XADD", key, *_ENTRY)
    bar_log = keys.bar_log
    yield from (("XRANGE", bar_log, "-", "+"), ("XADD", bar_log, *_ENTRY))
    yield ("DEL", bar_log)
    if log == "redis":
        yield from _to_read_log(keys.namespace)


def _to_read_log(namespace: str) -> Iterator[Command]:
    info, stream = info_key(namespace), stream_key(namespace, 0)
    # Whoever comes first makes the log.
    yield from (("HSETNX", info, *_FIELD), ("HGETALL", info))
    yield from (("XRANGE", stream, "-", "+"), ("XREVRANGE", stream, "+", "-"))
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
