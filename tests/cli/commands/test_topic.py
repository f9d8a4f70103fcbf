"""The command that makes the topic for trades, or says what it is like."""

from secrets import token_hex

import pytest
from typer.testing import CliRunner

from cli.command_line import app
from tests.ingest.topics import make_topic
from tests.kafka_broker.broker import Broker
from tests.ports import free_port

runner = CliRunner()


@pytest.mark.kafka
def test_a_topic_is_made_and_described(kafka: Broker) -> None:
    """Run twice, the second run finds what the first has made."""
    name = f"made-{token_hex(4)}"
    place = ["--kafka-servers", kafka.servers, "--kafka-topic", name]
    plan = ["--partitions", "6", "--retention-s", "3600"]
    first = runner.invoke(app, ["topic", *place, *plan])
    second = runner.invoke(app, ["topic", *place])
    assert (first.exit_code, second.exit_code) == (0, 0)
    head, *facts = first.stdout.splitlines()
    assert head == f"topic '{name}' at {kafka.servers}: created"
    assert "  partitions 6, replicas 1" in facts
    assert "  message.timestamp.type LogAppendTime" in facts
    assert "  retention.ms 3600000 (1:00:00)" in facts
    assert second.stdout.splitlines() == [head.replace("created", "exists"), *facts]


@pytest.mark.kafka
def test_what_does_not_fit_is_a_warning(
    kafka: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic of others can be used; the address may come from the environment."""
    topic = make_topic(kafka, 1, cleanup_policy="compact")
    monkeypatch.setenv("TICKTHROTTLE_KAFKA_SERVERS", topic.servers)
    monkeypatch.setenv("TICKTHROTTLE_KAFKA_TOPIC", topic.topic)
    result = runner.invoke(app, ["topic"])
    assert result.exit_code == 0
    warnings = [w for w in result.stdout.splitlines() if w.startswith("  warning: ")]
    assert [w.split()[1].rstrip(":") for w in warnings] == [
        "message.timestamp.type=CreateTime",
        "cleanup.policy=compact",
        "one",
    ]


def test_a_broker_that_is_not_there_is_one_sentence() -> None:
    """The sentence names the address; the exit code is 3."""
    servers = f"127.0.0.1:{free_port()}"
    result = runner.invoke(app, ["topic", "--kafka-servers", servers])
    assert result.exit_code == 3
    assert result.stderr.startswith(
        f"tickthrottle: no Kafka broker answers at {servers} "
    )
    assert len(result.stderr.splitlines()) == 1
