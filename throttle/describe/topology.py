"""The pipeline describes itself: what runs with the settings in force, and where.

Everything that can be is taken from the code that does it: keys and what they hold
from ``Keys``, settings from their class, stages from the first lines of their
modules, the order of trades from ``trade_order.ORDER``. What is added there is here.
"""

from dataclasses import dataclass
from types import ModuleType

from ingest.process.docstrings import (
    Key,
    Setting,
    keys_of,
    paragraph,
    settings_of,
    summary,
)
from ingest.process.redact import server_address
from ingest.redis_keys import Keys
from ingest.tradelog import redis_log_reader
from ingest.tradelog.contract import LogInfo, partition_of
from throttle.contract import cut
from throttle.contract.trade_order import ORDER
from throttle.publish import publisher
from throttle.settings import ThrottleSettings
from throttle.spark import source
from throttle.window import batch, conflate
from tickthrottle_client.log_v1 import stream_key

STAGES: tuple[ModuleType, ...] = (source, conflate, batch, publisher)
"""What a trade goes through, in this order."""

_THEIR_OWN = "by whoever appends; the feeds that come with this"


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """One step of the pipeline and what it does."""

    name: str
    does: str


@dataclass(frozen=True, slots=True)
class Topology:
    """The whole pipeline. ``is_actual`` tells whether the log itself was asked.

    ``address`` is where the log is, ``redis`` where keys and channels are. A job reads
    ``only`` some partitions, or all if there are none. ``margin_ms`` is how much a cut
    waits for the clocks of others.
    """

    log: str
    address: str
    topic: str | None
    redis: str
    namespace: str
    log_id: str | None
    partitions: int
    only: tuple[int, ...]
    is_actual: bool
    streams: tuple[str, ...]
    placed_by: str
    margin_ms: int
    cut: str
    window_ms: int
    grouping: str
    order: tuple[str, ...]
    stages: tuple[PipelineStage, ...]
    keys: tuple[Key, ...]
    settings: tuple[Setting, ...]


def describe(settings: ThrottleSettings, info: LogInfo | None) -> Topology:
    """Describe the job that would run; ``info`` is the log's identity, if known."""
    partitions = settings.partitions if info is None else info.partitions
    is_kafka, topic = settings.trade_log == "kafka", settings.kafka_topic
    redis_address = server_address(settings.redis_url)
    placed_by = summary(partition_of.__doc__).removeprefix("Return ")
    return Topology(
        log=summary(_log_module(settings).__doc__),
        address=settings.kafka_servers if is_kafka else redis_address,
        topic=topic if is_kafka else None,
        redis=redis_address,
        namespace=settings.namespace,
        log_id=None if info is None else info.log_id,
        partitions=partitions,
        only=settings.only(),
        is_actual=info is not None,
        streams=tuple(
            f"{topic}-{p}" if is_kafka else stream_key(settings.namespace, p)
            for p in range(partitions)
        ),
        placed_by=f"{_THEIR_OWN}: {placed_by}" if is_kafka else placed_by,
        # With Redis one clock stamps entries and ends windows.
        margin_ms=settings.kafka_margin_ms if is_kafka else 0,
        cut=paragraph(cut.__doc__, 1),
        window_ms=settings.window_ms,
        grouping=summary(conflate.create_conflate.__doc__).removeprefix("Return "),
        # The payload and what follows it is carried along, it decides nothing.
        order=ORDER,
        stages=tuple(
            PipelineStage(module.__name__.rpartition(".")[2], summary(module.__doc__))
            for module in STAGES
        ),
        keys=tuple(keys_of(Keys(settings.namespace), settings.job)),
        settings=tuple(settings_of(settings)),
    )


def _log_module(settings: ThrottleSettings) -> ModuleType:
    if settings.trade_log == "redis":
        return redis_log_reader
    # Loaded where it is needed only.
    from ingest.kafka import kafka_log_reader

    return kafka_log_reader
