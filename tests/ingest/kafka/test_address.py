"""Where a topic is, and how it is reached."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from ingest.kafka.address import KafkaTopic, read_options
from ingest.tradelog.contract import LogUnusable


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A file for options."""
    return tmp_path / "kafka.conf"


def test_options_are_lines_of_a_name_and_a_value(config: Path) -> None:
    """Comments and blank lines are passed over; a value may hold anything."""
    config.write_text(
        "# how we get in\n"
        "\n"
        "security.protocol=SASL_SSL\n"
        "  sasl.username =  me  \n"
        "   \n"
        "\t# a password with everything in it\n"
        "sasl.password=a=b#c==\n"
        "client.rack=\n",
        "utf-8",
    )
    assert read_options(config) == (
        ("security.protocol", "SASL_SSL"),
        ("sasl.username", "me"),
        ("sasl.password", "a=b#c=="),
        ("client.rack", ""),
    )


@pytest.mark.parametrize("line", ["security.protocol", "=SASL_SSL", "name: value"])
def test_a_line_of_another_form_is_refused(config: Path, line: str) -> None:
    """The line is named: an option that is left out would be missed much later."""
    config.write_text(f"# first\n{line}\n")
    with pytest.raises(LogUnusable) as caught:
        read_options(config)
    assert str(caught.value) == f"kafka_config {config}: line 2 is not name=value"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("bootstrap.servers", "the address says it"),
        ("acks", "a trade counts once every replica in sync has it"),
        ("enable.idempotence", "a trade that is sent again must not be in the log"),
        ("enable.auto.commit", "positions are kept with the windows"),
        ("auto.offset.reset", "entries that are gone must not be passed over unseen"),
    ],
)
def test_an_option_that_a_guarantee_rests_on_is_refused(
    config: Path, name: str, why: str
) -> None:
    """It says which, and what it is needed for."""
    config.write_text(f"{name}=1\n")
    with pytest.raises(LogUnusable) as caught:
        read_options(config)
    sentence = f"kafka_config {config}: {name} may not be set: {why}"
    assert str(caught.value).startswith(sentence)


def test_a_file_that_cannot_be_read_is_refused(config: Path, tmp_path: Path) -> None:
    """Missing, a folder, or not text."""
    with pytest.raises(LogUnusable, match=r"kafka_config .*No such file"):
        read_options(config)
    with pytest.raises(LogUnusable, match=r"kafka_config .*Is a directory"):
        read_options(tmp_path)
    config.write_bytes(b"client.id=\xff\n")
    with pytest.raises(LogUnusable, match=r"kafka_config .*'utf-8' codec"):
        read_options(config)


def test_a_client_gets_address_options_and_its_own() -> None:
    """The user's options change ours, what a client needs changes the user's."""
    options = (("reconnect.backoff.max.ms", "5"), ("group.id", "theirs"))
    topic = KafkaTopic("one:1,two:2", "deals", options)
    assert topic.client_options({"group.id": "ours"}) == {
        "bootstrap.servers": "one:1,two:2",
        "log_level": 0,
        "socket.nagle.disable": True,
        "reconnect.backoff.max.ms": "5",
        "group.id": "ours",
    }
    ours = KafkaTopic("one:1", "deals").client_options({})
    assert ours["reconnect.backoff.max.ms"] == 1_000


@pytest.mark.parametrize("options", [(), (("sasl.username", "me"), ("a", ""))])
def test_a_topic_survives_json(options: tuple[tuple[str, str], ...]) -> None:
    """Spark carries it to its workers; there it is the same and can be a key."""
    topic = KafkaTopic("one:1", "deals", options)
    again = KafkaTopic.from_json(json.loads(json.dumps(asdict(topic))))
    assert again == topic
    assert hash(again) == hash(topic)


def test_a_topic_shows_no_password() -> None:
    """What is written in errors and logs."""
    topic = KafkaTopic("one:1", "deals", (("sasl.password", "secret"),))
    assert str(topic) == "topic 'deals' at one:1"
    assert "secret" not in repr(topic)
