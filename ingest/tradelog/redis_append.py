"""One append to streams of Redis: many entries, until each is acknowledged.

A client library takes 10 us an entry for its command and its reply. All that differs
between these commands is a stream and a payload, so they are built here.
"""

from collections.abc import Sequence
from typing import Any

import redis

_AT_ONCE = 250
"""Commands that are sent together: the server works while the next are encoded."""

_WAIT_MS = 1_000
"""How long replicas may take; the server answers sooner once they have all of it."""

_NOT_NOW = ("NOREPLICAS ", "MISCONF ", "BUSY ")
"""Refusals of a server that keeps what it has appended, beside that of no memory."""


class RedisAppend:
    """Appends each payload to the stream of its head, once, by one connection.

    What has got its id is in its stream, and ``finish`` does not append it again. That
    holds for this connection alone: behind the next one there may be a server that was
    a replica, and lacks what no replica had.
    """

    def __init__(
        self,
        client: redis.Redis,
        heads: Sequence[bytes],
        payloads: Sequence[bytes],
        replicas: int = 0,
    ) -> None:
        """Connect. Raises redis.RedisError; nothing was sent then."""
        self._heads = heads
        self._payloads = payloads
        self._replicas = replicas
        self._ids: list[bytes | None] = [None] * len(payloads)
        self._is_lost = False
        self._pool = client.connection_pool
        self._connection: Any = self._pool.get_connection()

    @property
    def is_open(self) -> bool:
        """Whether ``finish`` may be called again."""
        return self._connection is not None

    def finish(self) -> list[bytes]:
        """Append what has no id yet; return all ids, in the order of the payloads.

        Raises redis.RedisError if the server refused an entry or did not answer, or if
        fewer than ``replicas`` have all of them within a second. While ``is_open``, the
        next call appends only what was refused, behind the others, and asks for the
        replicas again.
        """
        missing = [n for n, entry_id in enumerate(self._ids) if entry_id is None]
        replies, reached = self._exchange(missing)
        refusals = [r for r in (*replies, reached) if isinstance(r, redis.RedisError)]
        for n, reply in zip(missing, replies, strict=True):
            if isinstance(reply, bytes):
                self._ids[n] = reply
        if not all(map(_is_not_now, refusals)):
            self.close()
        if refusals:
            raise refusals[0]
        if reached < self._replicas:
            words = f"{reached} of {self._replicas} replicas have the trades"
            raise redis.TimeoutError(words)
        self.close()
        return [entry_id for entry_id in self._ids if entry_id is not None]

    def in_doubt(self) -> Sequence[int]:
        """Return which entries are in their streams, or may be."""
        if self._is_lost:
            return range(len(self._ids))
        return [n for n, entry_id in enumerate(self._ids) if entry_id is not None]

    def close(self) -> None:
        """Give the connection back; nothing is appended any more."""
        if self._connection is not None:
            self._pool.release(self._connection)
        self._connection = None

    def _exchange(self, missing: Sequence[int]) -> tuple[list[Any], Any]:
        connection = self._connection
        try:
            for begin in range(0, len(missing), _AT_ONCE):
                commands = [
                    b"%b%d\r\n%b\r\n" % (self._heads[n], len(payload), payload)
                    for n in missing[begin : begin + _AT_ONCE]
                    for payload in (self._payloads[n],)
                ]
                connection.send_packed_command([b"".join(commands)])
            if self._replicas:
                # By the connection that wrote: the server waits for what that wrote.
                connection.send_command("WAIT", self._replicas, _WAIT_MS)
            replies = [_reply(connection) for _ in missing]
            return replies, _reply(connection) if self._replicas else 0
        except BaseException:
            # What is on its way must not be taken for the reply to another command.
            self._is_lost = True
            connection.disconnect()
            self.close()
            raise


def append_head(key: str, field: bytes) -> bytes:
    """Return the beginning of every command that appends to a stream.

    What is missing is the payload: its length, then itself, each with a line's end.
    """
    words = (b"XADD", key.encode(), b"*", field)
    text = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
    return b"*%d\r\n%b$" % (len(words) + 1, text)


def _reply(connection: Any) -> Any:
    try:
        return connection.read_response(disable_decoding=True)
    except redis.ResponseError as error:
        # Of this entry alone: the replies to all others are still to be read.
        return error


def _is_not_now(refusal: redis.RedisError) -> bool:
    if isinstance(refusal, redis.OutOfMemoryError):
        return True
    return any(code in str(refusal) for code in _NOT_NOW)
