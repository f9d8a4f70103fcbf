"""A topic of Kafka: how to reach it, which one it is, what its errors mean.

Everything that talks to Kafka goes through this file, so that a wrong password or a
broker that is away is the same clear sentence everywhere.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import lru_cache
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource

from tickthrottle_client.kafka_topic import KafkaTopic
from tickthrottle_client.log_v1 import LogAway, LogInfo, LogUnusable, topic_log_id

T = TypeVar("T")
C = TypeVar("C")

ANSWER_WITHIN_S = 3.0
"""A broker that has not answered for this long is away."""

# Leaders move, brokers start, networks break: all of it passes.
_PASSING = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._MSG_TIMED_OUT,
        # No leader is known, for the moment.
        KafkaError._NOENT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._TRANSPORT,
        KafkaError._WAIT_CACHE,
        KafkaError._WAIT_COORD,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_CONTROLLER,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
        KafkaError.UNKNOWN_LEADER_EPOCH,
    }
)
_MISSING = frozenset(
    {
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
_NO_ACCESS = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.ILLEGAL_SASL_STATE,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError._SSL,
    }
)


class TopicMissing(LogUnusable):
    """A client knows no such topic, or no such partition of it."""


class Reports:
    """What librdkafka has to say about its connections: the newest error, for a while.

    Its calls only ever say that nobody answered in time; why, it tells here.
    """

    def __init__(self) -> None:
        self._last: KafkaError | None = None
        self._at_s = 0.0
        self._asked: list[AdminClient] = []

    def ask(self, client: AdminClient) -> None:
        """Have ``client`` tell what it knows whenever ``last`` is looked at.

        Those that read or write do so by themselves, it does not.
        """
        self._asked.append(client)

    def __call__(self, error: KafkaError) -> None:
        """Take in an error; an answer refused outweighs a connection that broke."""
        keeps = self._last is not None and self._last.code() in _NO_ACCESS
        if not keeps or error.code() in _NO_ACCESS or self._is_old():
            self._last, self._at_s = error, time.monotonic()

    @property
    def last(self) -> KafkaError | None:
        """The newest error, None if there was none lately."""
        for client in self._asked:
            client.poll(0)
        return None if self._is_old() else self._last

    def _is_old(self) -> bool:
        return time.monotonic() - self._at_s > 2 * ANSWER_WITHIN_S


def sentence(
    topic: KafkaTopic, error: KafkaError, reports: Reports | None = None
) -> LogAway | LogUnusable:
    """Return the exception that says what an error means, and whether it may pass."""
    if error.code() in _PASSING and reports is not None and reports.last is not None:
        error = reports.last
    code = error.code()
    if code in _NO_ACCESS:
        return LogUnusable(
            f"kafka_servers {topic.servers}: access refused: {error.str()}"
        )
    if code in _MISSING:
        return TopicMissing(
            f"kafka_topic {topic.topic}: does not exist at {topic.servers}; "
            "`tickthrottle topic` creates it"
        )
    if code in _PASSING or error.retriable():
        return LogAway(f"no Kafka broker answers at {topic.servers} ({error.str()})")
    return LogUnusable(f"{topic}: {error.str()}")


def create_client(
    kind: Callable[[dict[str, Any]], C], topic: KafkaTopic, own: Mapping[str, Any]
) -> C:
    """Create a client with its ``own`` options. Raises LogUnusable for a bad one."""
    try:
        return kind(topic.client_options(own))
    except KafkaException as error:
        reason = error.args[0].str()
        raise LogUnusable(f"kafka_config: {reason} ({topic})") from None


def create_admin(topic: KafkaTopic, reports: Reports) -> AdminClient:
    """Create what asks brokers about topics. Raises LogUnusable for a bad option."""
    admin = create_client(AdminClient, topic, {"error_cb": reports})
    reports.ask(admin)
    return admin


def create_reader(topic: KafkaTopic, reports: Reports) -> Consumer:
    """Create what reads what is committed of a topic, from where it is assigned.

    It says where a partition ends. Raises LogUnusable for a bad option.
    """
    options = {
        "group.id": "tickthrottle",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "error_cb": reports,
    }
    return create_client(Consumer, topic, options)


def answer(topic: KafkaTopic, future: "Future[T]", reports: Reports | None = None) -> T:
    """Return what a broker answered. Raises LogAway or LogUnusable."""
    try:
        return future.result(timeout=2 * ANSWER_WITHIN_S)
    except KafkaException as error:
        raise sentence(topic, error.args[0], reports) from None
    except TimeoutError:
        raise LogAway(f"no Kafka broker answers at {topic.servers}") from None


def open_topic(topic: KafkaTopic) -> LogInfo:
    """Return a topic's identity. Raises LogAway, and LogUnusable if there is none."""
    return identify(topic, *_asker(topic))


@lru_cache(maxsize=4)
def _asker(topic: KafkaTopic) -> tuple[AdminClient, Reports]:
    # A standby asks again and again: connecting each time would cost the most.
    reports = Reports()
    return create_admin(topic, reports), reports


def identify(topic: KafkaTopic, admin: AdminClient, reports: Reports) -> LogInfo:
    """Return a topic's identity: a topic deleted and made again has another one.

    Brokers that know no topic ids give a topic's name instead.
    """
    return identity(topic, answer(topic, describe(topic, admin), reports))


def describe(topic: KafkaTopic, admin: AdminClient) -> "Future[Any]":
    name = topic.topic
    asked = admin.describe_topics(
        TopicCollection([name]), request_timeout=ANSWER_WITHIN_S
    )
    described: Future[Any] = asked[name]
    return described


def identity(topic: KafkaTopic, described: Any) -> LogInfo:
    log_id = topic_log_id(topic.topic, str(described.topic_id))
    return LogInfo(log_id, len(described.partitions), time.time_ns() // 1_000_000)


def largest_batch(topic: KafkaTopic, admin: AdminClient) -> int | None:
    """Return a topic's ``max.message.bytes``, None if its brokers do not say."""
    try:
        config = answer(topic, ask_config(topic, admin))
    except (LogAway, LogUnusable):
        return None
    return int(config["max.message.bytes"].value)


def ask_config(topic: KafkaTopic, admin: AdminClient) -> Any:
    wanted = ConfigResource(ConfigResource.Type.TOPIC, topic.topic)
    return admin.describe_configs([wanted], request_timeout=ANSWER_WITHIN_S)[wanted]
