"""The trade logs that are measured: how each is filled, and what the job is told."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import fill as fill_redis
import fill_kafka
from fill import Backlog, Feeder
from machine import NAMESPACE, Server

from deploy.broker import Broker
from ingest.log import LogInfo
from ingest.redis_log import open_log


class Log(Protocol):
    """A trade log of a benchmark."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What the job has to be told."""

    def fill(self, entries: int, rate: float, issues: int) -> Backlog:
        """Fill it, while it is empty, with trades recorded until just now."""

    def feed(self, rate: int, seconds: float, issues: int) -> Feeder:
        """Start a live feed."""


@dataclass(frozen=True, slots=True)
class RedisLog:
    """Streams of the server that also has the windows."""

    port: int
    info: LogInfo
    settings: Mapping[str, str]

    def fill(self, entries: int, rate: float, issues: int) -> Backlog:
        """Fill it, while it is empty, with trades recorded until just now."""
        return fill_redis.fill(self.port, self.info, entries, rate, issues)

    def feed(self, rate: int, seconds: float, issues: int) -> Feeder:
        """Start a live feed."""
        options: dict[str, Any] = {"port": self.port, "rate": rate}
        more = {
            "seconds": seconds,
            "issues": issues,
            "partitions": self.info.partitions,
        }
        return Feeder(fill_redis.__file__, {**options, **more})


@dataclass(frozen=True, slots=True)
class KafkaLog:
    """Topics of a broker: one with recorded times for a backlog, one to feed live."""

    servers: str
    partitions: int

    @property
    def settings(self) -> Mapping[str, str]:
        """What the job has to be told."""
        return fill_kafka.settings(self.servers)

    def fill(self, entries: int, rate: float, issues: int) -> Backlog:
        """Fill it, while it is empty, with trades recorded until just now."""
        fill_kafka.stamp_by_producer(self.servers)
        return fill_kafka.fill(self.servers, self.partitions, entries, rate, issues)

    def feed(self, rate: int, seconds: float, issues: int) -> Feeder:
        """Start a live feed."""
        options: dict[str, Any] = {
            "servers": self.servers,
            "rate": rate,
            "seconds": seconds,
            "issues": issues,
            "partitions": self.partitions,
        }
        return Feeder(fill_kafka.__file__, options)


@contextmanager
def running_log(kind: str, server: Server, partitions: int) -> Iterator[Log]:
    """Yield an empty log. Kafka's broker is started in the server's folder."""
    if kind == "redis":
        info = open_log(server.client, NAMESPACE, partitions)
        settings = {"TICKTHROTTLE_PARTITIONS": str(partitions)}
        yield RedisLog(server.port, info, settings)
        return
    with Broker(server.folder / "kafka", heap_mb=1_024, is_quick=False) as broker:
        fill_kafka.create_topic(broker.servers, partitions)
        yield KafkaLog(broker.servers, partitions)
