"""What a job does in Redis, asked for before it starts: a user may lack a right.

The server judges a command when it is queued in a transaction. So all of them are
queued and none is executed.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import redis

from ingest.tradelog.contract import LogKind
from ingest.tradelog.redis_positions import info_key, stream_key
from throttle.contract.redis_keys import Keys

Command = Sequence[str]
"""A command and what it is given; its key comes first."""

_FIELD, _ENTRY = ("x", "x"), ("*", "x", "x")


def commands_of_a_job(keys: Keys, job: str, log: LogKind) -> Iterator[Command]:
    """Yield every command a job runs, once for each kind of key."""
    yield from (("TIME",), ("INFO", "server"), ("SCRIPT", "LOAD", "return 1"))
    yield ("EVALSHA", "0" * 40, "0")
    dead = f"{keys.dead(job)}:0"
    hashes = keys.meta, keys.last, keys.groups, keys.ledger(job), keys.stages(job)
    streams = keys.windows, keys.batches(job), dead
    for key in hashes:
        yield ("HSET", key, *_FIELD)
    for key in streams:
        yield from (("XLEN", key), ("XADD", key, *_ENTRY))
    for key in (*hashes[1:], *streams[:2], keys.lease(job)):
        yield ("DEL", key)
    yield from (("HGET", keys.meta, "x"), ("HMGET", keys.meta, "x"))
    yield from (("HLEN", keys.last), ("HMGET", keys.last, "x"))
    yield from (("HLEN", keys.groups), ("HKEYS", keys.groups))
    yield ("HDEL", keys.groups, "x")
    ledger = keys.ledger(job)
    yield from (("EXISTS", ledger), ("HGET", ledger, "x"), ("HGETALL", ledger))
    yield ("HINCRBY", ledger, "x", "1")
    yield from (("GET", keys.lease(job)), ("SET", keys.lease(job), "x"))
    yield from (("PUBLISH", keys.updates, ""), ("PUBSUB", "CHANNELS", "x"))
    yield ("PUBLISH", keys.market_updates("x"), "")
    issues = f"{keys.namespace}:issues"
    yield from (("HGETALL", f"{issues}:meta"), ("XRANGE", issues, "-", "+"))
    yield ("XREVRANGE", issues, "+", "-")
    if log == "redis":
        info, stream = info_key(keys.namespace), stream_key(keys.namespace, 0)
        yield from (("HSETNX", info, *_FIELD), ("HGETALL", info))
        yield from (("XRANGE", stream, "-", "+"), ("XREVRANGE", stream, "+", "-"))
        yield from (("XINFO", "STREAM", stream), ("XTRIM", stream, "MINID", "0"))


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
