"""Whole feeds into a topic of Kafka, and the receipts they leave."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from ingest.feed.pacer import FeedReport
from ingest.feed.receipt import read_receipt
from ingest.feed.run import FeedError, run_replay, run_simulator
from ingest.kafka.address import KafkaTopic
from ingest.settings import IngestSettings
from ingest.sources.replay import ReplayOptions
from ingest.sources.simulator import Simulator
from tests.conftest import PATIENCE, eventually
from tests.ingest.topics import logged, make_topic, payloads
from tests.kafka_broker.broker import Broker
from tests.ports import free_port
from tickthrottle_client.kafka_client import open_topic


def settings_of(topic: KafkaTopic, **changes: Any) -> IngestSettings:
    """Settings of a feed into a topic."""
    return IngestSettings(
        trade_log="kafka",
        kafka_servers=topic.servers,
        kafka_topic=topic.topic,
        **changes,
    )


def sasl_file(folder: Path, user: str, password: str) -> Path:
    """A ``kafka_config`` with credentials."""
    path = folder / "kafka.properties"
    path.write_text(
        "# how to log in\n"
        "security.protocol = SASL_PLAINTEXT\n"
        "sasl.mechanisms = PLAIN\n"
        f"sasl.username = {user}\n"
        f"sasl.password = {password}\n"
    )
    return path


@pytest.mark.kafka
def test_every_row_of_a_tape_is_acknowledged_once(
    kafka: Broker, tmp_path: Path
) -> None:
    """The topic holds the tape, the receipt says so, partition by partition."""
    market = Simulator(rate=500, seconds=10, repeats=0)
    rows = [event.payload for event in market.events(1_448_539_200_000_000)]
    tape, receipt = tmp_path / "tape.jsonl", tmp_path / "receipt.json"
    tape.write_bytes(b"\n".join(rows))
    topic = make_topic(kafka, 3)
    options = ReplayOptions(speed=1_000, stamp="recorded")
    with capture_logs() as logs:
        report = run_replay(settings_of(topic), [tape], options, report_to=receipt)
    found = logged(topic, 3)
    assert report.acknowledged == len(rows) == sum(len(each) for each in found)
    assert (logs[0]["server"], logs[0]["topic"]) == (topic.servers, topic.topic)
    assert logs[-1]["event"] == "replay: finished"
    keyed = {message.key() for each in found for message in each}
    assert keyed == {orjson.loads(row)["isin"].encode() for row in rows}
    last = read_receipt(receipt.read_bytes())
    assert last.ended
    assert last.log_id == open_topic(topic).log_id
    assert last.started_ms <= last.written_ms <= time.time_ns() // 1_000_000
    for messages, tally in zip(found, last.partitions, strict=True):
        assert tally.acknowledged == len(messages)
        assert (tally.first, tally.last) == (0, len(messages) - 1)


@pytest.mark.kafka
def test_credentials_come_from_the_file(kafka: Broker, tmp_path: Path) -> None:
    """With the right ones a feed runs, with wrong ones it does not start."""
    topic = make_topic(kafka, 1)
    secured = KafkaTopic(kafka.sasl_servers, topic.topic)
    good = sasl_file(tmp_path, kafka.user, kafka.password)
    market = Simulator(rate=1_000, seconds=0.2)
    report = run_simulator(settings_of(secured, kafka_config=good), market)
    assert report.acknowledged == len(payloads(topic, 1)) > 0
    bad = sasl_file(tmp_path, kafka.user, "sesame")
    with pytest.raises(FeedError, match="access refused") as caught:
        run_simulator(settings_of(secured, kafka_config=bad), market)
    assert "sesame" not in str(caught.value)
    assert str(caught.value).startswith(f"kafka_servers {kafka.sasl_servers}: ")


def test_broker_that_is_not_there_is_one_clear_sentence() -> None:
    """The sentence names the address, and what to do."""
    topic = KafkaTopic(f"127.0.0.1:{free_port()}", "none")
    began = time.monotonic()
    with pytest.raises(FeedError, match="set TICKTHROTTLE_KAFKA_SERVERS") as caught:
        run_simulator(settings_of(topic), Simulator())
    assert str(caught.value).startswith(f"no Kafka broker answers at {topic.servers} ")
    assert time.monotonic() - began < 10 * PATIENCE


def test_config_that_is_not_ours_to_set_is_one_clear_sentence(tmp_path: Path) -> None:
    """What would break the promise of once is refused by name."""
    path = tmp_path / "kafka.properties"
    path.write_text("retries=0\n")
    settings = settings_of(KafkaTopic("127.0.0.1:1", "none"), kafka_config=path)
    with pytest.raises(FeedError, match=r"kafka_config .*: retries may not be set: "):
        run_simulator(settings, Simulator())


@pytest.mark.kafka
def test_killed_feed_leaves_what_it_had_acknowledged(
    kafka: Broker, tmp_path: Path
) -> None:
    """SIGKILL with trades in flight: none is lost that was told, none is doubled."""
    topic, receipt = make_topic(kafka, 2), tmp_path / "receipt.json"
    program = [sys.executable, "-m", "tickthrottle"]
    command = [*program, "simulate", "--report", str(receipt)]
    market = ["--rate", "20000", "--repeats", "0"]
    log = {
        "TICKTHROTTLE_TRADE_LOG": "kafka",
        "TICKTHROTTLE_KAFKA_SERVERS": topic.servers,
        "TICKTHROTTLE_KAFKA_TOPIC": topic.topic,
    }
    process = subprocess.Popen([*command, *market], env={**os.environ, **log})

    def has_begun() -> bool:
        told = receipt.exists() and read_receipt(receipt.read_bytes())
        return bool(told and told.partitions[0].acknowledged > 1_000)

    eventually(has_begun, 30)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    told = read_receipt(receipt.read_bytes())
    assert not told.ended
    found = logged(topic, 2)
    for messages, tally in zip(found, told.partitions, strict=True):
        offsets = [message.offset() for message in messages]
        assert tally.last is not None
        assert offsets[: tally.acknowledged] == list(range(tally.last + 1))
    trades = [orjson.loads(m.value() or b"") for each in found for m in each]
    times = Counter((trade["isin"], trade["seq"]) for trade in trades)
    assert max(times.values()) == 1


@pytest.mark.kafka
def test_stop_ends_a_feed_whose_broker_is_frozen(
    own_kafka: Broker, tmp_path: Path
) -> None:
    """The feed ends within seconds; report and receipt tell what is in doubt."""
    topic, receipt = make_topic(own_kafka, 2), tmp_path / "receipt.json"
    stop, reports = threading.Event(), list[FeedReport]()

    def run() -> None:
        market = Simulator(rate=5_000)
        reports.append(
            run_simulator(settings_of(topic), market, stop, report_to=receipt)
        )

    feed = threading.Thread(target=run)
    feed.start()
    eventually(
        lambda: (
            receipt.exists()
            and read_receipt(receipt.read_bytes()).partitions[0].acknowledged
        )
    )
    own_kafka.pause()
    time.sleep(1)
    stop.set()
    began = time.monotonic()
    feed.join()
    assert time.monotonic() - began < 4 * PATIENCE
    own_kafka.resume()
    [report], last = reports, read_receipt(receipt.read_bytes())
    assert report.stopped
    assert last.ended
    assert sum(tally.acknowledged for tally in last.partitions) == report.acknowledged
    assert sum(tally.in_doubt for tally in last.partitions) == report.in_doubt > 0
