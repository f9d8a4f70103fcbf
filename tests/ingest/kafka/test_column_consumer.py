"""The consumer of the compiled package, where no broker is needed to see it fail."""

import pytest
from confluent_kafka import KafkaException, TopicPartition, cimpl

from ingest.kafka.address import KafkaTopic
from ingest.kafka.column_consumer import (
    ColumnConsumer,
    columns_fault,
    consumer_kind,
)
from ingest.kafka.message_consumer import MessageConsumer
from ingest.tradelog.contract import LogUnusable
from ingest.tradelog.speedups import find_speedups
from tests.ports import free_port
from tests.speedups import NOT_BUILT
from tickthrottle_client.kafka_client import Reports, create_client

pytestmark = pytest.mark.skipif(not find_speedups(), reason=NOT_BUILT)


def test_it_reads_by_the_library_of_confluent_kafka() -> None:
    """Unless it is turned off; then as ever."""
    assert columns_fault() == ""
    assert consumer_kind(True) is ColumnConsumer
    assert consumer_kind(False) is MessageConsumer


def test_a_library_that_is_not_loaded_is_not_called() -> None:
    """Nothing is called then, and no address is believed."""
    speedups = find_speedups()
    with pytest.raises(OSError, match="has loaded no librdkafka of version 2"):
        speedups.library("/nowhere/librdkafka.so")
    with pytest.raises(ValueError, match="no library"):
        speedups.take(1, 1, 0)
    assert speedups.library(cimpl.__file__) >> 24 == 2
    for queue, most in ((0, 1), (1, 0), (1, -1), (1, 100_001)):
        with pytest.raises(ValueError, match="too many messages"):
            speedups.take(queue, most, 0)


def test_a_wrong_option_is_named() -> None:
    """As without the package."""
    topic = KafkaTopic("127.0.0.1:1", "any", (("no.such", "1"),))
    own = {"group.id": "any", "error_cb": Reports()}
    for kind in (ColumnConsumer, MessageConsumer):
        with pytest.raises(LogUnusable, match=r"kafka_config: .*no\.such"):
            create_client(kind, topic, own)


def test_what_cannot_be_assigned_is_an_error() -> None:
    """Whether a broker answers or not; while none does, nothing comes."""
    topic = KafkaTopic(f"127.0.0.1:{free_port()}", "any")
    own = {"group.id": "any", "error_cb": Reports()}
    consumer = create_client(ColumnConsumer, topic, own)
    consumer.assign([TopicPartition("any", 0, 5)])
    assert consumer.take(10, 0.01) == ([], [])
    consumer.incremental_assign([TopicPartition("any", 1, 0)])
    consumer.incremental_unassign([TopicPartition("any", 0)])
    with pytest.raises(KafkaException):
        consumer.incremental_unassign([TopicPartition("any", 7)])
    consumer.unassign()
