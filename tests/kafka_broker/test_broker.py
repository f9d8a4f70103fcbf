"""The broker to test with: what it keeps, what it survives, what it leaves behind."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from cli.local.guardian import is_alive
from tests.conftest import PATIENCE, eventually
from tests.kafka import bounds, make_topic, options, produce, read, sasl_options
from tests.kafka_broker.broker import Broker, BrokerFailed, BrokerMissing

STARTS_ONE = """
import sys, time
from pathlib import Path
from tests.kafka_broker.broker import Broker
broker = Broker(Path(sys.argv[1]))
broker.start()
print(broker.process_group, flush=True)
time.sleep(60)
"""


@pytest.fixture
def no_broker(tmp_path: Path) -> Broker:
    """A broker that could start if its jars were more than a name."""
    (tmp_path / "kafka_2.13.jar").touch()
    return Broker(tmp_path / "broker", jars=tmp_path)


@pytest.mark.kafka
def test_what_was_acknowledged_is_read_in_order(kafka: Broker) -> None:
    """An idempotent producer and a reader agree."""
    topic = make_topic(kafka)
    values = [str(n).encode() for n in range(1_000)]
    produce(kafka, topic, values)
    assert read(kafka, topic) == values


@pytest.mark.kafka
def test_a_topic_is_not_made_by_asking_for_it(kafka: Broker) -> None:
    """A name that is spelled wrong is an error, as in production."""
    topics = AdminClient(options(kafka)).list_topics("no-such-topic", timeout=10).topics
    error = topics["no-such-topic"].error
    assert error is not None
    assert error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART


@pytest.mark.kafka
def test_a_killed_broker_comes_back_with_its_data(own_kafka: Broker) -> None:
    """Same address, same topics, same entries, and more can follow."""
    servers, topic = own_kafka.servers, make_topic(own_kafka)
    produce(own_kafka, topic, [b"before"])
    group = own_kafka.process_group
    own_kafka.kill()
    assert not is_alive(group)
    own_kafka.start()
    assert own_kafka.servers == servers
    produce(own_kafka, topic, [b"after"])
    assert read(own_kafka, topic) == [b"before", b"after"]


@pytest.mark.kafka
def test_a_frozen_broker_is_silent_until_it_goes_on(own_kafka: Broker) -> None:
    """Its connections stay open; a call gets no answer in time."""
    admin = AdminClient(options(own_kafka))
    assert admin.list_topics(timeout=10).brokers
    own_kafka.pause()
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=0.5)
    own_kafka.resume()
    assert admin.list_topics(timeout=30).brokers


@pytest.mark.kafka
def test_it_stops_when_asked_even_if_frozen(own_kafka: Broker) -> None:
    """It ends by itself, in order; to stop it once more is no error."""
    group = own_kafka.process_group
    own_kafka.pause()
    assert own_kafka.stop(within_s=30) == 128 + signal.SIGTERM
    assert not is_alive(group)
    assert own_kafka.stop() is None
    with pytest.raises(BrokerFailed, match="is not running"):
        own_kafka.pause()


@pytest.mark.kafka
def test_the_password_is_checked(kafka: Broker) -> None:
    """The right one gets in, a wrong one is told that it is wrong."""
    good = AdminClient(sasl_options(kafka, kafka.password))
    assert good.list_topics(timeout=10).brokers
    told: list[KafkaError] = []
    wrong = sasl_options(kafka, kafka.password + "?")
    bad = AdminClient({**wrong, "error_cb": told.append})
    with pytest.raises(KafkaException):
        bad.list_topics(timeout=1)
    bad.poll(1)
    assert KafkaError._AUTHENTICATION in {error.code() for error in told}


@pytest.mark.kafka
def test_old_entries_go_within_seconds(kafka: Broker) -> None:
    """A test of retention need not wait for minutes."""
    topic = make_topic(kafka, retention_ms="100")
    produce(kafka, topic, [b"old"])
    eventually(lambda: bounds(kafka, topic) == (1, 1), 20)


@pytest.mark.kafka
def test_a_compacted_topic_is_compacted_within_seconds(kafka: Broker) -> None:
    """Nor does a test of compaction: of a key's values only the last ones stay."""
    topic = make_topic(kafka, cleanup_policy="compact", segment_ms="100")
    count = 0

    def is_compacted() -> bool:
        nonlocal count
        # Only an append closes a segment, and only closed ones are cleaned.
        count += 1
        produce(kafka, topic, [str(count).encode()], key=b"isin")
        return len(read(kafka, topic)) < count

    eventually(is_compacted, 20)
    assert read(kafka, topic)[-1] == str(count).encode()


@pytest.mark.kafka
def test_it_does_not_outlive_a_parent_that_is_killed(
    tmp_path: Path, kafka_storage: Path
) -> None:
    """However the tests end, no broker stays."""
    folder = shutil.copytree(kafka_storage, tmp_path / "kafka")
    with subprocess.Popen(
        [sys.executable, "-c", STARTS_ONE, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        group = int(parent.stdout.readline())
        assert is_alive(group)
        parent.kill()
    eventually(lambda: not is_alive(group), 10)


@pytest.mark.kafka
def test_a_broker_that_cannot_start_says_why(
    tmp_path: Path, kafka_storage: Path
) -> None:
    """The message has the end of its log, whichever program it was that failed."""
    wrong = ["-XX:NoSuchOption"]
    with pytest.raises(BrokerFailed, match=r"storage tool failed:\n.*NoSuchOption"):
        Broker(tmp_path / "new", more_java_options=wrong).start()
    broker = Broker(kafka_storage, more_java_options=wrong)
    with pytest.raises(BrokerFailed, match=r"exit code 1\).*\n.*NoSuchOption"):
        broker.start()
    assert broker.exit_code() is None


@pytest.mark.kafka
def test_a_running_broker_is_not_started_twice(kafka: Broker) -> None:
    """Two brokers on one folder would spoil it."""
    with pytest.raises(BrokerFailed, match="is running already"):
        kafka.start()


@pytest.mark.kafka
def test_make_kafka_runs_one_until_ctrl_c(tmp_path: Path, kafka_storage: Path) -> None:
    """It says where it is, and leaves nothing behind but its data."""
    port = Broker(tmp_path).servers.rpartition(":")[2]
    folder = shutil.copytree(kafka_storage, tmp_path / f"kafka-{port}")
    command = [
        "-m",
        "tests.kafka_broker.serve",
        "--port",
        port,
        "--state-dir",
        str(tmp_path),
    ]
    with subprocess.Popen(
        [sys.executable, *command], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = [process.stderr.readline() for _ in range(4)]
        assert said[0].startswith("Kafka is ready after"), said
        os.kill(process.pid, signal.SIGINT)
        assert process.stderr.read() == "stopped\n"
        assert process.wait(timeout=20 * PATIENCE) == 0
    assert f"127.0.0.1:{port} " in said[1]
    assert "SASL_PLAINTEXT" in said[2]
    assert str(folder) in said[3]


def test_where_kafka_is_not_installed_one_sentence_says_how(tmp_path: Path) -> None:
    """A machine without Maven has no broker, and every other test still runs."""
    with pytest.raises(BrokerMissing, match="run `make kafka-jars`"):
        Broker(tmp_path, jars=tmp_path)


def test_a_port_of_somebody_else_is_refused(no_broker: Broker) -> None:
    """His answers would pass for the broker's."""
    port = int(no_broker.servers.rpartition(":")[2])
    in_use = f"port {port}: Address already in use"
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(BrokerFailed, match=in_use),
    ):
        no_broker.start()
