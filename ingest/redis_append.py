"""Append to Redis streams, many entries at a time: the commands and their replies.

A client library builds each command from its parts and looks over each reply, at 10 us
an entry. All that differs between these commands is a stream and a payload.
"""

from collections.abc import Sequence
from typing import Any

import redis

_AT_ONCE = 250
"""So many commands are sent together: the server works while the next are encoded."""


def append_head(key: str, field: bytes) -> bytes:
    """Return the beginning of every command that appends to a stream.

    What is missing is the payload: its length, then itself, each with a line's end.
    """
    words = (b"XADD", key.encode(), b"*", field)
    text = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
    return b"*%d\r\n%b$" % (len(words) + 1, text)


def append_all(
    client: redis.Redis, heads: Sequence[bytes], payloads: Sequence[bytes]
) -> list[bytes]:
    """Append each payload to the stream of its head; return the new entries' ids.

    Raises redis.RedisError if the server refused an entry or did not answer; any of
    the entries may then be in their streams.
    """
    pool = client.connection_pool
    connection: Any = pool.get_connection()
    try:
        for begin in range(0, len(payloads), _AT_ONCE):
            end = begin + _AT_ONCE
            commands = [
                b"%b%d\r\n%b\r\n" % (head, len(payload), payload)
                for head, payload in zip(
                    heads[begin:end], payloads[begin:end], strict=True
                )
            ]
            connection.send_packed_command([b"".join(commands)])
        replies = [_reply(connection) for _ in payloads]
    except BaseException:
        # What is on its way must not be taken for the reply to another command.
        connection.disconnect()
        raise
    finally:
        pool.release(connection)
    for reply in replies:
        if isinstance(reply, redis.ResponseError):
            raise reply
    return replies


def _reply(connection: Any) -> Any:
    try:
        return connection.read_response(disable_decoding=True)
    except redis.ResponseError as error:
        # Of this entry alone: the replies to all others are still to be read.
        return error
