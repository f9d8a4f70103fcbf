"""Opens the issue table, in Redis or in a topic of Kafka."""

from redis.backoff import NoBackoff
from redis.retry import Retry

from ingest.issue_table.issue_store import IssueStore
from ingest.issue_table.redis_issue_store import RedisIssueStore
from ingest.kafka.address import KafkaTopic, read_options
from ingest.settings import TopicSettings
from tickthrottle_client.redis_primary import connect

CONNECT_S = 2
ANSWER_S = 10
"""How long the server may take to answer; a large table takes a second."""


def open_issue_store(settings: TopicSettings) -> IssueStore:
    """Return the store of a pipeline's issue table; nothing is asked of it yet.

    Raises LogUnusable for options of Kafka that cannot be used.
    """
    if settings.kafka_issues_topic:
        from ingest.issue_table.kafka_issue_store import KafkaIssueStore

        options = read_options(settings.kafka_config)
        name = settings.kafka_issues_topic
        return KafkaIssueStore(KafkaTopic(settings.kafka_servers, name, options))
    client = connect(
        settings.redis_url,
        socket_connect_timeout=CONNECT_S,
        socket_timeout=ANSWER_S,
        # Whoever reads asks again anyway, and says that the table is away.
        retry=Retry(NoBackoff(), 0),
    )
    return RedisIssueStore(client, settings.namespace)
