"""Reads what was published in the past, and the instrument tables of that time.

Nothing is written and nothing kept. Streams are read in pieces, so memory is bounded
by what the caller keeps. Methods raise redis.RedisError, and ValueError for what the
throttle would not have written. The trade log's entries are in ``log_entries.py``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha1
from heapq import merge
from typing import Any

import redis

from ingest.instrument_table.instrument_store import (
    InstrumentChange,
    InstrumentStore,
    TableLost,
)
from ingest.instrument_table.known_instruments import Instruments
from ingest.redis_keys import Keys
from ingest.tradelog.contract import LogKind
from ingest.tradelog.redis_log_reader import scan_stream
from throttle.audit.chain_audit import AuditedWindow
from throttle.audit.compare import PublishedVersions
from throttle.contract.cut import NOWHERE
from throttle.contract.dead_letter import DeadLetter, letter_id
from throttle.contract.ledger import BatchEntry, Ledger
from throttle.contract.snapshot import LastValue, WindowSnapshot
from tickthrottle_client.chain_v1 import ChainPlace

# Windows are big, some hundred kilobytes each.
_WINDOWS_PIECE = 20


class PublishedHistory:
    """The published past of one namespace; ``log`` is the kind of its trade log."""

    def __init__(
        self, client: redis.Redis, namespace: str, log: LogKind = "redis"
    ) -> None:
        self._client = client
        self._log = log
        self._keys = Keys(namespace)

    def window_ms(self) -> int | None:
        """Return the length of the published windows, None if there are none yet."""
        value: Any = self._client.hget(self._keys.meta, "window_ms")
        return None if value is None else int(value)

    def jobs(self) -> dict[str, str]:
        """Return the jobs that ever published to the stream, each with its log's id."""
        fields: Any = self._client.hgetall(self._keys.meta)
        return {
            name.decode().removeprefix("log:"): value.decode()
            for name, value in sorted(fields.items())
            if name.startswith(b"log:")
        }

    def ledger(self, job: str) -> Ledger | None:
        """Return a job's books, None if it has none yet."""
        stored: Any = self._client.hgetall(self._keys.ledger(job))
        return Ledger.decode(job, stored)

    def batches(self, job: str, limit: int | None = None) -> list[BatchEntry]:
        """Return a job's recorded batches, or the newest ``limit``; oldest first."""
        entries: Any = self._client.xrevrange(self._keys.batches(job), count=limit)
        return [BatchEntry.decode(*entry) for entry in reversed(entries)]

    def windows(
        self,
        first_ms: int | None = None,
        last_ms: int | None = None,
        isin: str | None = None,
        newest_first: bool = False,
    ) -> Iterator[WindowSnapshot]:
        """Yield the windows that end in a range, both ends included.

        With ``isin`` only those in which the instrument changed, with its row alone.
        """
        key = self._keys.windows
        for _, fields in scan_stream(
            self._client, key, newest_first, piece=_WINDOWS_PIECE
        ):
            window = WindowSnapshot.decode(fields.get(b"snapshot", b""))
            rows = tuple(r for r in window.rows if isin in (None, r.isin))
            is_late = last_ms is not None and window.window > last_ms
            is_early = first_ms is not None and window.window < first_ms
            if not is_early and not is_late and (isin is None or rows):
                yield replace(window, rows=rows)

    def chain_end(self) -> ChainPlace | None:
        """Return the place of the newest window that has a link, None if none has."""
        text: Any = self._client.hget(self._keys.meta, "chain")
        return ChainPlace.parse((text or b"").decode())

    def audited_windows(self, first_ms: int, last_ms: int) -> Iterator[AuditedWindow]:
        """Yield the windows that end in a range as they are found, altered or not."""
        stream = scan_stream(self._client, self._keys.windows, piece=_WINDOWS_PIECE)
        for entry_id, fields in stream:
            offset, message = (
                int(entry_id.partition(b"-")[0]),
                fields.get(b"snapshot", b""),
            )
            told, problem = fields.get(b"sha1"), ""
            if told is not None and told != sha1(message).hexdigest().encode():
                problem = "it is not as it was written, by its checksum"
            try:
                snapshot = WindowSnapshot.decode(message)
                if not first_ms <= snapshot.window <= last_ms:
                    continue
                if snapshot.offset != offset:
                    problem = problem or f"it says the offset {snapshot.offset}"
                # By its id, which nobody can alter in place.
                yield AuditedWindow.of(snapshot, problem)._replace(offset=offset)
            except ValueError as error:
                problem = problem or f"cannot be read: {error!s:.120}"
                yield AuditedWindow("?", offset, None, problem=problem)

    def versions_before(self) -> PublishedVersions:
        """Return what was published before the oldest window; ask before reading them.

        The last-value table tells it of an instrument that has not changed since.
        """
        table: Any = self._client.hgetall(self._keys.last)
        first = self.oldest_offset()
        if first is None or first == 1:
            return PublishedVersions()
        values = [LastValue.decode(*field) for field in table.items()]
        return PublishedVersions(
            {value.isin: value for value in values if value.offset < first},
            [value.isin for value in values if value.offset >= first],
        )

    def oldest_offset(self) -> int | None:
        """Return the offset of the oldest window left, None if there is none."""
        oldest: Any = self._client.xrange(self._keys.windows, count=1)
        return int(oldest[0][0].partition(b"-")[0]) if oldest else None

    def dead_letters(
        self,
        job: str,
        partitions: Sequence[int],
        after: Mapping[int, int],
        newest_first: bool = False,
    ) -> Iterator[DeadLetter]:
        """Yield a job's refused trades beyond some positions, by append time."""

        def letters_of(partition: int) -> Iterator[DeadLetter]:
            first = after.get(partition, NOWHERE)
            low = "-" if first < 0 else f"({letter_id(first, self._log)}"
            key = f"{self._keys.dead(job)}:{partition}"
            for stream_id, fields in scan_stream(self._client, key, newest_first, low):
                yield DeadLetter.decode(partition, stream_id, fields, self._log)

        def by_time(letter: DeadLetter) -> tuple[int, int, int]:
            return letter.append_ms, letter.position, letter.partition

        return merge(*map(letters_of, partitions), key=by_time, reverse=newest_first)


class InstrumentTables:
    """Reads the table at a version, exactly or not at all.

    Changes are forgotten in time, and a table may be emptied: a version's digest says
    whether what is left is the table that was joined.
    """

    def __init__(self, store: InstrumentStore) -> None:
        self._store = store
        self._changes: list[InstrumentChange] = []
        self._upto = 0
        self._newest: dict[int, Instruments] = {}

    def at(self, version: int, digest: str) -> Instruments | None:
        """Return the table at a version, None if it is gone. Raises TableAway."""
        if version not in self._newest:
            if version > self._upto:
                self._read_on()
            changes = (c for c in self._changes if c.version <= version)
            self._newest = {version: Instruments().after(changes).at(version)}
        instruments = self._newest[version]
        return instruments if instruments.digest == digest else None

    def _read_on(self) -> None:
        while True:
            try:
                page = self._store.read(self._upto)
            except TableLost:
                self._changes, self._upto = [], 0
                continue
            self._changes += page.changes
            self._upto = page.version
            if page.is_last:
                return
