"""Opens the instrument table, in Redis or in a topic of Kafka."""

from typing import TYPE_CHECKING

from redis.backoff import NoBackoff
from redis.retry import Retry

from ingest.instrument_table.instrument_store import InstrumentStore
from ingest.instrument_table.redis_instrument_store import RedisInstrumentStore
from ingest.kafka.address import KafkaTopic, read_options
from tickthrottle_client.redis_primary import connect

if TYPE_CHECKING:
    # A task of Spark should not load what checks settings.
    from ingest.settings import TopicSettings

CONNECT_S = 2
ANSWER_S = 10
"""How long the server may take to answer; a large table takes a second."""


def open_instrument_store(settings: "TopicSettings") -> InstrumentStore:
    """Return the store of a pipeline's instrument table; nothing is asked of it yet.

    Raises LogUnusable for options of Kafka that cannot be used.
    """
    place = settings.redis_url, settings.namespace
    return open_store_at(*place, instruments_topic(settings))


def instruments_topic(settings: "TopicSettings") -> KafkaTopic | None:
    """Return the topic that the instrument table is in, None if it is in Redis.

    Raises LogUnusable for options of Kafka that cannot be used.
    """
    if not (name := settings.kafka_instruments_topic):
        return None
    return KafkaTopic(settings.kafka_servers, name, read_options(settings.kafka_config))


def open_store_at(
    redis_url: str, namespace: str, topic: KafkaTopic | None
) -> InstrumentStore:
    """Return the store of an instrument table; nothing is asked of it yet."""
    if topic is not None:
        from ingest.instrument_table.kafka_instrument_store import KafkaInstrumentStore

        return KafkaInstrumentStore(topic)
    client = connect(
        redis_url,
        socket_connect_timeout=CONNECT_S,
        socket_timeout=ANSWER_S,
        # Whoever reads asks again anyway, and says that the table is away.
        retry=Retry(NoBackoff(), 0),
    )
    return RedisInstrumentStore(client, namespace)
