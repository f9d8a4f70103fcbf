"""The process of an archive: its settings in, one sentence out if it cannot go on."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import redis
from prometheus_client import CollectorRegistry

from archive.archive_metrics import ArchiveMetrics
from archive.archiver import Archiver
from archive.contract.segment import BadEpoch
from archive.instrument_versions import InstrumentVersions
from archive.parquet.folder_lock import FolderLost
from archive.parquet.parquet_counts import ParquetCounts
from archive.parquet.parquet_sink import ParquetSink
from archive.parquet.tables import BadWindow
from archive.settings import ArchiveSettings
from archive.storing.archive_sink import ArchiveCounts, Sink
from ingest.instrument_table.open_instrument_store import open_instrument_store
from ingest.kafka.address import read_options
from ingest.process.prometheus import MetricsUnavailable, exposed
from ingest.process.redact import server_address
from ingest.process.redis_fault import in_words
from ingest.tradelog.contract import LogUnusable
from throttle.lease.lease import Fenced
from throttle.lease.retry import create_client

if TYPE_CHECKING:
    from archive.topics.relay_topics import RelayTopics

_NICE = 10


FLUSH_S = 60.0
"""How long windows and bars are collected before they are stored together, seconds.
It has to be far below the 15 minutes that the window log keeps.
"""

RELAY_S = 0.1
"""The same of topics: who reads them waits for each window."""


class ArchiveFailed(RuntimeError):
    """The archive cannot run or go on; the message says why."""


def run_archive(
    settings: ArchiveSettings,
    stop: threading.Event,
    at_step: Callable[[str], None] = lambda _: None,
    flush_s: float | None = None,
) -> None:
    """Archive until ``stop`` is set. Raises ArchiveFailed.

    ``at_step`` is told the name of every step once it is done. Windows are collected
    for ``flush_s``; unless given ``FLUSH_S``, or for topics ``RELAY_S``.
    """
    if flush_s is None:
        flush_s = RELAY_S if settings.destination == "kafka" else FLUSH_S
    registry = CollectorRegistry()
    metrics = ArchiveMetrics(registry)
    try:
        sink = open_sink(settings, at_step)
        with (
            exposed(settings, registry),
            closing(open_instrument_store(settings)) as store,
            create_client(settings.redis_url) as client,
        ):
            Archiver(
                client,
                settings.namespace,
                sink,
                InstrumentVersions(store),
                metrics,
                name=settings.name,
                destination=settings.destination,
                flush_s=flush_s,
                stop=stop,
                at_step=at_step,
            ).run()
    except redis.RedisError as error:
        address = server_address(settings.redis_url)
        raise ArchiveFailed(f"redis_url {address}: {in_words(error)}") from error
    except (Fenced, FolderLost, LogUnusable, MetricsUnavailable) as error:
        raise ArchiveFailed(str(error)) from error
    except (BadEpoch, BadWindow) as error:
        raise ArchiveFailed(f"the window log or the bar log: {error}") from error
    except ValueError as error:
        raise ArchiveFailed(
            f"a log is not what a job of ours writes: {error}"
        ) from error


def give_way() -> None:
    """Have what is live come first on this machine: this process takes what is left."""
    with suppress(OSError):
        os.nice(_NICE)
    pa.set_cpu_count(1)


def open_sink(
    settings: ArchiveSettings, at_step: Callable[[str], None] = lambda _: None
) -> Sink:
    """Return where the settings have windows stored; nothing is opened yet."""
    days, name = settings.archive_days, settings.name
    # Extras: who archives to files needs neither.
    match settings.destination:
        case "kafka":
            from archive.topics.kafka_sink import KafkaSink

            is_avro = settings.archive_format == "avro"
            registry_url = settings.schema_registry_url if is_avro else ""
            return KafkaSink(_topics(settings), name, at_step, registry_url)
        case "postgres":
            from archive.postgres.postgres_sink import PostgresSink

            return PostgresSink(settings.postgres_url, days, name, at_step)
        case _:
            folder, most = settings.archive_dir, settings.archive_bytes
            return ParquetSink(folder, most, days, at_step)


def open_counts(settings: ArchiveSettings) -> ArchiveCounts:
    """Return what counts the contents of an archive."""
    match settings.destination:
        case "kafka":
            from archive.topics.kafka_counts import KafkaCounts

            return KafkaCounts(_topics(settings), settings.schema_registry_url)
        case "postgres":
            from archive.postgres.postgres_counts import PostgresCounts

            return PostgresCounts(settings.postgres_url)
        case _:
            return ParquetCounts(settings.archive_dir)


def _topics(settings: ArchiveSettings) -> RelayTopics:
    from archive.topics.relay_topics import RelayTopics

    options = read_options(settings.kafka_config)
    return RelayTopics(settings.kafka_servers, settings.archive_topics, options)
