"""The trade log on Redis Streams, written: many entries at a time."""

from collections import Counter
from collections.abc import Mapping, Sequence

import redis
import structlog

from ingest.tradelog.contract import AppendTally, LogInfo, partition_of
from ingest.tradelog.redis_append import RedisAppend, append_head
from tickthrottle_client.log_v1 import (
    CAP_CHECK_ENTRIES,
    FIELD,
    partition_cap,
    position_of,
    stream_key,
)
from tickthrottle_client.redis_faults import is_passing

_REMEMBERED_INSTRUMENTS = 65_536

log = structlog.get_logger()


class RedisLogWriter:
    """Appends many entries at a time; every entry is acknowledged or the call raises.

    The log is bounded twice: the job trims what it has committed, and a partition
    above its share of ``cap`` entries loses its oldest ones, with a warning and a
    count in ``dropped_at_cap``. An entry is acknowledged when so many ``replicas``
    have it, too.
    """

    def __init__(
        self,
        client: redis.Redis,
        namespace: str,
        info: LogInfo,
        cap: int,
        replicas: int = 0,
    ) -> None:
        self._client = client
        self._replicas = replicas
        self._info = info
        self._keys = [stream_key(namespace, p) for p in range(info.partitions)]
        self._heads = [append_head(key, FIELD) for key in self._keys]
        self._partitions: dict[str, int] = {}
        self._partition_cap = partition_cap(cap, info.partitions)
        self._since_check = 0
        self._under_way: RedisAppend | None = None
        self._entries: Sequence[tuple[str, bytes]] = ()
        self._entry_partitions: Sequence[int] = ()
        self.dropped_at_cap = 0
        self.refused: Mapping[str, int] = {}
        self.tallies = [AppendTally() for _ in self._keys]

    def append(self, entries: Sequence[tuple[str, bytes]]) -> int:
        """Append (ISIN, payload) pairs in order; return how many were acknowledged.

        Raises redis.RedisError when the server refused or did not answer. To append the
        very same list object again appends what the log has not got, as far as that is
        known: not where the connection was lost, whose entries are in doubt.
        """
        append = self._under_way
        is_first = append is None or entries is not self._entries
        if append is None or is_first:
            self.abandon()
            self._entries = entries
            self._entry_partitions = [self._partition(isin) for isin, _ in entries]
            heads = [self._heads[partition] for partition in self._entry_partitions]
            payloads = [payload for _, payload in entries]
            append = RedisAppend(self._client, heads, payloads, self._replicas)
            self._under_way = append
        try:
            ids = append.finish()
        except BaseException:
            if not append.is_open:
                self.abandon()
            raise
        self._under_way = None
        places = list(zip(self._entry_partitions, ids, strict=True))
        # Entries that were refused at first lie behind those that were not.
        self._count(places if is_first else sorted(places, key=_position))
        self._since_check += len(ids)
        if self._since_check >= CAP_CHECK_ENTRIES:
            self._check_cap()
        return len(ids)

    def abandon(self) -> None:
        """Give up the append that failed last: what the log has of it is in doubt."""
        append, self._under_way = self._under_way, None
        if append is not None:
            append.close()
            for entry in append.in_doubt():
                self.tallies[self._entry_partitions[entry]].in_doubt += 1

    def _partition(self, isin: str) -> int:
        partition = self._partitions.get(isin)
        if partition is None:
            partition = partition_of(isin, self._info.partitions)
            # A feed has a few thousand instruments; whatever it has, this stays small.
            if len(self._partitions) < _REMEMBERED_INSTRUMENTS:
                self._partitions[isin] = partition
        return partition

    def _count(self, places: Sequence[tuple[int, bytes]]) -> None:
        """Take in where each entry of an append is: partition and id, in order."""
        ends = dict(places)
        starts = dict(reversed(places))
        for partition, count in Counter(partition for partition, _ in places).items():
            tally = self.tallies[partition]
            tally.acknowledged += count
            tally.last = position_of(ends[partition])
            if tally.first is None:
                tally.first = position_of(starts[partition])

    def _check_cap(self) -> None:
        try:
            self._enforce_cap()
        except redis.RedisError as error:
            # The trades are in the log: what cannot be looked at now is looked at after
            # the next append.
            if not is_passing(error):
                raise
        else:
            self._since_check = 0

    def _enforce_cap(self) -> None:
        for partition, key in enumerate(self._keys):
            dropped = self._client.xtrim(
                key, maxlen=self._partition_cap, approximate=True
            )
            if dropped:
                self.dropped_at_cap += dropped
                log.warning(
                    "the log is full: its oldest trades were dropped. "
                    "Is the throttle running?",
                    partition=partition,
                    dropped=dropped,
                    cap=self._partition_cap,
                )


def _position(place: tuple[int, bytes]) -> int:
    return position_of(place[1])
