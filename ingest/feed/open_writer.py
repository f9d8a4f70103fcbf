"""Where a feed's trades go: the log that the settings name, opened for appending."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass

import structlog
from redis.backoff import NoBackoff
from redis.retry import Retry

from ingest.kafka.address import KafkaTopic
from ingest.process.redact import server_address
from ingest.process.redis_fault import check_memory
from ingest.settings import IngestSettings
from ingest.tradelog.contract import LogInfo, LogWriter
from ingest.tradelog.redis_log_reader import check_server, open_log
from ingest.tradelog.redis_log_writer import RedisLogWriter
from tickthrottle_client.redis_primary import connect

_CONNECT_TIMEOUT_S = 2.0
_ANSWER_TIMEOUT_S = 3.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Outlet:
    """A log opened for appending. ``place`` says in words where it is."""

    info: LogInfo
    writer: LogWriter
    place: Mapping[str, str]


@contextmanager
def open_outlet(settings: IngestSettings) -> Iterator[Outlet]:
    """Open the log; a log of Redis is created on first use, a topic is not.

    Raises LogAway and LogUnusable, or redis.RedisError.
    """
    topic = settings.topic()
    with _open_redis(settings) if topic is None else _open_kafka(topic) as outlet:
        yield outlet


@contextmanager
def _open_kafka(topic: KafkaTopic) -> Iterator[Outlet]:
    # Loaded where it is needed only.
    from ingest.kafka.writer import KafkaLogWriter

    place = {"server": topic.servers, "topic": topic.topic}
    with closing(KafkaLogWriter.open(topic)) as writer:
        yield Outlet(writer.info, writer, place)


@contextmanager
def _open_redis(settings: IngestSettings) -> Iterator[Outlet]:
    client = connect(
        settings.redis_url,
        socket_connect_timeout=_CONNECT_TIMEOUT_S,
        socket_timeout=_ANSWER_TIMEOUT_S,
        # The pacer tries again and counts it; a client that did so unseen would
        # hide duplicates and hold up a stop.
        retry=Retry(NoBackoff(), 0),
    )
    with client:
        check_server(client)
        check_memory(client, may_evict=settings.may_evict)
        info = open_log(client, settings.namespace, settings.partitions)
        if info.partitions != settings.partitions:
            log.info(
                "the log exists and keeps its number of partitions",
                partitions=info.partitions,
                asked_for=settings.partitions,
            )
        writer = RedisLogWriter(
            client,
            settings.namespace,
            info,
            settings.trade_log_cap,
            settings.redis_replicas,
        )
        address = server_address(settings.redis_url)
        place = {"server": address, "namespace": settings.namespace}
        yield Outlet(info, writer, place)
