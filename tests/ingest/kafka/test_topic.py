"""Topics for trades: made as they should be, judged as they are."""

from dataclasses import replace
from secrets import token_hex

import pytest

from ingest.kafka.address import KafkaTopic
from ingest.kafka.topic import TopicState, create_topic, look_at
from ingest.kafka.topic_plan import TopicPlan
from ingest.tradelog.contract import LogAway, LogUnusable
from tests.ingest.topics import make_topic
from tests.kafka_broker.broker import Broker
from tests.ports import free_port
from tickthrottle_client.kafka_client import (
    Reports,
    create_admin,
    largest_batch,
    open_topic,
)

DAY_MS = 86_400_000
GOOD = TopicState(
    log_id="kafka:x",
    partitions=4,
    replication=3,
    timestamp_type="LogAppendTime",
    cleanup_policy="delete",
    retention_ms=DAY_MS,
    retention_bytes=-1,
    max_message_bytes=65_536,
    min_insync_replicas=2,
)
PLAN = TopicPlan(replication=1, retention_s=7_200)


def test_a_topic_as_we_make_it_needs_no_warning() -> None:
    """What is right is only described."""
    assert list(GOOD.warnings()) == []
    assert list(GOOD.lines()) == [
        "id kafka:x",
        "partitions 4, replicas 3",
        "message.timestamp.type LogAppendTime",
        "cleanup.policy delete",
        "retention.ms 86400000 (1 day, 0:00:00)",
        "max.message.bytes 65536",
        "min.insync.replicas 2",
    ]


def test_what_is_kept_for_ever_or_by_size_is_described_as_such() -> None:
    """Kafka's -1 is put in words."""
    lines = list(replace(GOOD, retention_ms=-1, retention_bytes=5_000).lines())
    assert "retention.ms -1 (for ever)" in lines
    assert "retention.bytes 5000 a partition" in lines
    assert list(replace(GOOD, retention_ms=-1).warnings()) == []
    lines = list(replace(GOOD, retention_ms=2**63 - 1).lines())
    assert "retention.ms 9223372036854775807 (for ever)" in lines


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"timestamp_type": "CreateTime"}, "message.timestamp.type=CreateTime: "),
        ({"cleanup_policy": "compact"}, "cleanup.policy=compact: "),
        ({"cleanup_policy": "compact,delete"}, "cleanup.policy=compact,delete: "),
        ({"retention_ms": 60_000}, "retention.ms=60000: "),
        ({"max_message_bytes": 16_384}, "max.message.bytes=16384: "),
        ({"replication": 1, "min_insync_replicas": 1}, "one replica: "),
        ({"min_insync_replicas": 1}, "min.insync.replicas=1: "),
    ],
)
def test_what_does_not_fit_is_named_with_its_consequence(
    changed: dict[str, int | str], said: str
) -> None:
    """One fault, one warning."""
    [warning] = replace(GOOD, **changed).warnings()  # type: ignore[arg-type]
    assert warning.startswith(said)


@pytest.mark.parametrize(("replication", "in_sync"), [(1, 1), (2, 1), (3, 2), (5, 4)])
def test_an_acknowledged_trade_survives_the_loss_of_a_broker(
    replication: int, in_sync: int
) -> None:
    """One replica may be away, no more: with three, two have every trade."""
    plan = TopicPlan(replication=replication)
    assert plan.config()["min.insync.replicas"] == str(in_sync)


@pytest.mark.kafka
def test_a_topic_is_made_once_and_stays_as_it_is(kafka: Broker) -> None:
    """The second to ask for it changes nothing."""
    topic = KafkaTopic(kafka.servers, f"made-{token_hex(4)}")
    assert look_at(topic) is None
    assert create_topic(topic, 3, PLAN)
    assert not create_topic(topic, 8, PLAN)
    state = look_at(topic)
    assert state == replace(
        GOOD,
        log_id=open_topic(topic).log_id,
        partitions=3,
        replication=1,
        retention_ms=7_200_000,
        min_insync_replicas=1,
    )


@pytest.mark.kafka
def test_a_topic_of_others_is_told_as_it_is(kafka: Broker) -> None:
    """Its own settings count, not those we would have made it with."""
    topic = make_topic(kafka, 2, cleanup_policy="compact", retention_ms="-1")
    state = look_at(topic)
    assert state is not None
    assert (state.partitions, state.cleanup_policy) == (2, "compact")
    assert (state.timestamp_type, state.retention_ms) == ("CreateTime", -1)
    reports = Reports()
    admin = create_admin(topic, reports)
    assert largest_batch(topic, admin) == state.max_message_bytes
    assert largest_batch(replace(topic, topic="missing"), admin) is None


@pytest.mark.kafka
def test_what_the_brokers_refuse_is_told_in_their_words(kafka: Broker) -> None:
    """More replicas than there are brokers."""
    topic = KafkaTopic(kafka.servers, f"made-{token_hex(4)}")
    with pytest.raises(LogUnusable, match=f"topic '{topic.topic}'.* replicat"):
        create_topic(topic, 3, TopicPlan(replication=3))


def test_a_broker_that_is_not_there_is_told() -> None:
    """Whether looking or making, the address is named."""
    topic = KafkaTopic(f"127.0.0.1:{free_port()}", "none")
    with pytest.raises(LogAway, match=topic.servers):
        look_at(topic)
    with pytest.raises(LogAway, match=topic.servers):
        create_topic(topic, 3, PLAN)
