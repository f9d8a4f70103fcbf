"""The instrument table in Redis: a stream of changes, all of it or nothing.

The stream ``<namespace>:instruments`` has one entry a change, with the fields ``isin``
and ``instrument`` (``instrument_store.py``); an entry's id is the change's version, as
a position. The hash ``<namespace>:instruments:meta`` has the table's ``id`` and
``forgotten``, the greatest version whose table cannot be told exactly any more.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import redis

from ingest.instrument_table.instrument_entry import BadInstruments, InstrumentEntry
from ingest.instrument_table.instrument_store import (
    PAGE,
    ChangePage,
    InstrumentChange,
    TableAway,
    TableLost,
    TableMoved,
    decode_change,
    encode_instrument,
)
from ingest.redis_keys import OtherKeys
from tickthrottle_client.log_v1 import append_time_ms, entry_id, position_of

MOST_CHANGES = 200_000
"""Beyond so many changes those are forgotten that newer ones of their ISIN follow."""

_AWAY = (redis.ConnectionError, redis.TimeoutError, OSError)

# All or nothing: nobody reads half a list, and nobody writes over another's change.
_APPEND = """
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local newest = last[1] and last[1][1] or '0-0'
if newest ~= ARGV[1] then return false end
redis.call('HSETNX', KEYS[2], 'id', ARGV[2])
for at = 3, #ARGV, 2 do
  local isin, instrument = ARGV[at], ARGV[at + 1]
  newest = redis.call('XADD', KEYS[1], '*', 'isin', isin, 'instrument', instrument)
end
return newest
"""


class RedisInstrumentStore:
    """The table of a namespace; an ``InstrumentStore``."""

    def __init__(self, client: redis.Redis, namespace: str) -> None:
        self._client = client
        keys = OtherKeys(namespace)
        self._stream, self._meta = keys.instruments, keys.instruments_meta
        self._id: bytes | None = None
        self._append = client.register_script(_APPEND)

    def read(self, after: int) -> ChangePage:
        with _in_our_words():
            pipe = self._client.pipeline(transaction=True)
            pipe.hgetall(self._meta)
            pipe.xrevrange(self._stream, count=1)
            pipe.xrange(self._stream, f"({entry_id(after)}", "+", count=PAGE)
            meta, last, entries = pipe.execute()
        table_id = meta.get(b"id")
        before, self._id = self._id, table_id
        # Emptied and filled anew, emptied, or taken back to what it was before.
        newest = position_of(last[0][0]) if last else 0
        if after and (newest < after or (before is not None and table_id != before)):
            raise TableLost
        changes: list[InstrumentChange] = []
        refused = 0
        for raw_id, fields in entries:
            isin, instrument = fields.get(b"isin", b""), fields.get(b"instrument", b"")
            at = position_of(raw_id)
            try:
                changes.append(decode_change(at, isin, instrument, append_time_ms(at)))
            except BadInstruments:
                refused += 1
        version = position_of(entries[-1][0]) if entries else after
        return ChangePage(changes, version, len(entries) < PAGE, refused)

    def append(
        self, changes: Sequence[tuple[str, InstrumentEntry | None]], after: int
    ) -> int:
        if not changes:
            return after
        arguments: list[Any] = [entry_id(after), uuid4().hex]
        for isin, entry in changes:
            arguments += [isin, encode_instrument(entry)]
        with _in_our_words():
            newest = self._append(keys=[self._stream, self._meta], args=arguments)
            if newest is None:
                raise TableMoved
            if self._client.xlen(self._stream) > MOST_CHANGES:
                self._forget()
        return position_of(newest)

    def forgotten(self) -> int:
        """Return the greatest version whose table cannot be told any more, or 0."""
        with _in_our_words():
            meta: Any = self._client.hgetall(self._meta)
            return int(meta.get(b"forgotten", 0))

    def close(self) -> None:
        self._client.close()

    def _forget(self) -> None:
        """Delete the oldest of the changes that newer ones follow."""
        surplus = self._client.xlen(self._stream) - MOST_CHANGES * 3 // 4
        newest: dict[bytes, bytes] = {}
        followed: list[tuple[bytes, bytes]] = []
        for raw_id, fields in self._entries():
            isin = fields.get(b"isin", b"")
            if isin in newest:
                followed.append((newest[isin], raw_id))
            newest[isin] = raw_id
        gone = sorted(followed, key=lambda pair: position_of(pair[0]))[:surplus]
        if not gone:
            return
        # Up to the last one's successor a table would lack it.
        forgotten = max(position_of(successor) - 1 for _, successor in gone)
        pipe = self._client.pipeline(transaction=True)
        pipe.hset(self._meta, "forgotten", max(forgotten, self.forgotten()))
        for begin in range(0, len(gone), PAGE):
            pipe.xdel(self._stream, *(raw_id for raw_id, _ in gone[begin:][:PAGE]))
        pipe.execute()

    def _entries(self) -> Iterator[Any]:
        after = "-"
        while True:
            entries: Any = self._client.xrange(self._stream, after, "+", count=PAGE)
            if not entries:
                return
            yield from entries
            after = f"({entries[-1][0].decode()}"


@contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        yield
    except _AWAY as error:
        raise TableAway(str(error)) from error
