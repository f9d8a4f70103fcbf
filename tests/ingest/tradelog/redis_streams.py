"""Test data: a trade log on Redis Streams, and what is in it."""

from collections.abc import Iterable

import redis

from ingest.tradelog.contract import Chunk
from ingest.tradelog.redis_log_reader import RedisLogReader, open_log
from ingest.tradelog.redis_log_writer import RedisLogWriter
from tickthrottle_client.log_v1 import FIELD, position_of, stream_key

ISIN = "KR7005930003"
NAMESPACE = "test"


def make_log(
    client: redis.Redis, partitions: int = 1, cap: int = 1_000_000
) -> tuple[RedisLogWriter, RedisLogReader]:
    """A writer and a reader of one new log."""
    info = open_log(client, NAMESPACE, partitions)
    return (
        RedisLogWriter(client, NAMESPACE, info, cap),
        RedisLogReader(client, NAMESPACE, info),
    )


def add_at(client: redis.Redis, ms: int, payload: bytes, number: str = "*") -> int:
    """Append with an append time of our choice; return the position."""
    key = stream_key(NAMESPACE, 0)
    added = client.xadd(key, {FIELD: payload}, id=f"{ms}-{number}")
    return position_of(added)


def everything(reader: RedisLogReader, partition: int = 0) -> list[bytes]:
    """All payloads of a partition, in order."""
    end = reader.tail(1 << 41).positions[partition]
    return payloads_of(read(reader, 0, end, partition))


def read(
    reader: RedisLogReader, after: int, upto: int, partition: int = 0
) -> list[Chunk]:
    """The chunks of a range of one partition; fails if they are another's."""
    found = list(reader.read({partition: (after, upto)}))
    assert {p for p, _ in found} <= {partition}
    return [chunk for _, chunk in found]


def payloads_of(chunks: Iterable[Chunk]) -> list[bytes]:
    """The payloads of some chunks, in order."""
    return [payload for chunk in chunks for payload in chunk.payloads.to_pylist()]
