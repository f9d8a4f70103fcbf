"""Opens the instrument table, in Redis or in a topic of Kafka."""

from redis.backoff import NoBackoff
from redis.retry import Retry

from ingest.instrument_table.instrument_store import InstrumentStore
from ingest.instrument_table.redis_instrument_store import RedisInstrumentStore
from ingest.kafka.address import KafkaTopic, read_options
from ingest.settings import TopicSettings
from tickthrottle_client.redis_primary import connect

CONNECT_S = 2
ANSWER_S = 10
"""How long the server may take to answer; a large table takes a second."""


def open_instrument_store(settings: TopicSettings) -> InstrumentStore:
    """Return the store of a pipeline's instrument table; nothing is asked of it yet.

    Raises LogUnusable for options of Kafka that cannot be used.
    """
    if settings.kafka_instruments_topic:
        from ingest.instrument_table.kafka_instrument_store import KafkaInstrumentStore

        options = read_options(settings.kafka_config)
        name = settings.kafka_instruments_topic
        return KafkaInstrumentStore(KafkaTopic(settings.kafka_servers, name, options))
    client = connect(
        settings.redis_url,
        socket_connect_timeout=CONNECT_S,
        socket_timeout=ANSWER_S,
        # Whoever reads asks again anyway, and says that the table is away.
        retry=Retry(NoBackoff(), 0),
    )
    return RedisInstrumentStore(client, settings.namespace)
