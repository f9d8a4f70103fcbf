"""What feeds, log and ledgers have counted, compared over real servers."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from cli.commands.open_history import Past
from ingest.feed.receipt import Receipt
from ingest.kafka.address import KafkaTopic
from ingest.trade import Trade
from ingest.tradelog.contract import AppendTally, partition_of
from tests.cli.running import run
from tests.doc_pages import blocks_in, section_of
from tests.kafka_broker.broker import Broker
from tests.throttle.topic_job import TopicJob, append, make_log, make_receipt
from throttle.testing.driver import ThrottleDriver

pytestmark = pytest.mark.redis
PARTITIONS = 4
A, B, C = "KR7005930003", "KR7000660001", "KR7035420009"
P = partition_of(A, PARTITIONS)
W = 2_000


@pytest.fixture(autouse=True)
def _server(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)


@pytest.fixture
def topic(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> KafkaTopic:
    made = make_log(kafka, PARTITIONS)
    monkeypatch.setenv("TICKTHROTTLE_TRADE_LOG", "kafka")
    monkeypatch.setenv("TICKTHROTTLE_KAFKA_SERVERS", made.servers)
    monkeypatch.setenv("TICKTHROTTLE_KAFKA_TOPIC", made.topic)
    return made


def wires(count: int, isins: tuple[str, ...] = (A, B, C)) -> list[tuple[str, bytes]]:
    """Make entries of trades of this moment, and one of each instrument without any."""
    now_us = time.time_ns() // 1_000
    trades = [Trade(i, now_us, n, "1.50", "5") for n in range(count) for i in isins]
    return [*((t.isin, t.to_wire()) for t in trades), *((i, b"?") for i in isins)]


def delete(topic: KafkaTopic, before: int) -> None:
    """Delete the oldest entries of A's partition, as retention does."""
    admin = AdminClient(topic.client_options({}))
    asked = admin.delete_records([TopicPartition(topic.topic, P, before)])
    for future in asked.values():
        future.result(30)


def keep(path: Path, receipt: Receipt) -> list[str]:
    """Keep a receipt in a file; return the option that names it."""
    path.write_bytes(receipt.encode())
    return ["--acknowledged", str(path)]


def look(*arguments: str) -> Any:
    """Return the JSON object it prints, checked against its exit code."""
    result = run("reconcile", *arguments, "--json")
    assert result.stdout, result.stderr
    found = json.loads(result.stdout)
    assert result.exit_code == (0 if found["right"] else 1)
    return found


@pytest.mark.kafka
def test_figures_agree_while_all_is_well(
    redis_url: str, client: redis.Redis, topic: KafkaTopic, tmp_path: Path
) -> None:
    """Read, waiting, trimmed after it was read: none is a difference."""
    first = keep(tmp_path / "a.json", append(topic, wires(400)))
    job = TopicJob(redis_url, client, topic)
    job.publish()
    result = run("reconcile", *first)
    assert result.exit_code == 0
    assert result.stdout.endswith("\nevery trade is accounted for\n")
    name, *figures = result.stdout.splitlines()[-2].split()
    assert name == "total"
    assert ", ".join(figures) == "1,203, 1,203, 0, 1,203, 3, 1,197, 0, 3, 0"
    page = section_of("docs/inspecting.md", "Reconciliation")
    shown = blocks_in(page, "")[0].splitlines()
    assert shown[2].split() == result.stdout.splitlines()[1].split()
    assert shown[-1] == result.stdout.splitlines()[-1]
    more = [*first, *keep(tmp_path / "b.json", append(topic, wires(10)))]
    found = look(*more)
    assert (found["problems"], found["notes"]) == ([], [])
    assert found["totals"]["total"]["waiting"] == 33
    assert found["totals"]["total"]["acknowledged"] == 1_236
    job.publish()
    delete(topic, 300)
    found = look(*more)
    assert (found["problems"], found["notes"]) == ([], [])
    [line] = [one for one in found["partitions"] if one["partition"] == P]
    assert (line["trimmed"], line["held"] + line["trimmed"]) == (300, line["read"])


@pytest.fixture
def driver(redis_url: str) -> Iterator[ThrottleDriver]:
    with ThrottleDriver(redis_url=redis_url, partitions=PARTITIONS) as started:
        yield started


def feed(
    client: redis.Redis, driver: ThrottleDriver, count: int, window: int = 0
) -> Receipt:
    """Append trades of A and B in a window; return the receipt."""
    tallies = [AppendTally() for _ in range(PARTITIONS)]
    for n in range(count):
        for isin in (A, B):
            place = driver.trade(isin, "1.50", at_ms=window * W + n, seq=n)
            tally = tallies[partition_of(isin, PARTITIONS)]
            tally.acknowledged += 1
            tally.first, tally.last = (
                place if tally.first is None else tally.first,
                place,
            )
    return make_receipt(client.hget("tt:log", "id").decode(), *tallies)


def test_a_log_on_redis_is_reconciled_by_the_same_rules(
    client: redis.Redis, driver: ThrottleDriver, tmp_path: Path
) -> None:
    """Trimmed behind the job, which is fine, or before it."""
    sure = keep(tmp_path / "a.json", feed(client, driver, 100))
    driver.turn_clock(W)
    found = look(*sure)
    assert (found["problems"], found["notes"]) == ([], [])
    assert found["totals"]["total"]["read"] == 200
    assert found["totals"]["total"]["acknowledged"] == 200
    key = f"tt:log:{P}"
    client.xtrim(key, maxlen=40, approximate=False)
    found = look(*sure)
    assert (found["problems"], found["notes"]) == ([], [])
    assert found["totals"]["total"]["trimmed"] == 60
    feed(client, driver, 10, window=1)
    client.xtrim(key, maxlen=4, approximate=False)
    found = look()
    assert found["problems"] == [
        f"partition {P}, job throttle: 6 entries behind the newest cut were deleted "
        "before they were read"
    ]
    driver.turn_clock(2 * W)
    assert any("the log counted 110 entries" in one for one in look()["problems"])


def test_a_job_is_looked_at_again_while_it_goes_on(
    client: redis.Redis, driver: ThrottleDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(client, driver, 10)
    driver.turn_clock(W)
    key = "tt:ledger:throttle"
    client.hincrby(key, f"{P}:read", -1)
    original, looks = Past.log, []

    def log_of(past: Past) -> Any:
        source = original(past)
        count = source.count

        def count_and_go_on(marks: Any) -> Any:
            looks.append(1)
            found = count(marks)
            if len(looks) == 2:
                client.hincrby(key, f"{P}:read", 1)
            elif len(looks) == 1:
                client.hset(key, "batches", 7)
            return found

        monkeypatch.setattr(source, "count", count_and_go_on)
        return source

    monkeypatch.setattr(Past, "log", log_of)
    assert look()["right"]
    assert len(looks) == 3


def test_what_cannot_be_reconciled_is_one_sentence(
    client: redis.Redis, driver: ThrottleDriver, tmp_path: Path
) -> None:
    """A receipt that is none, of another log, not there; a job that has not run."""
    other = tmp_path / "other"
    keep(other, make_receipt("another", AppendTally()))
    broken = tmp_path / "broken"
    broken.write_text("{}")
    for file, sentence in (
        (tmp_path / "missing", "No such file"),
        (broken, "log_id : Field required"),
        (other, "is of the log another, this one is "),
    ):
        result = run("reconcile", "--acknowledged", str(file))
        assert result.exit_code == 2
        assert result.stderr.startswith(f"tickthrottle: acknowledged {file}: ")
        assert sentence in result.stderr
    assert run("reconcile", "--job", "night").exit_code == 3
    assert "has never run on this stream" in run("reconcile", "--job", "night").stderr
    client.delete("tt:ledger:throttle")
    assert "job throttle: has no ledger" in run("reconcile").stderr
    client.hset("tt:log", "id", "another")
    assert run("reconcile").exit_code == 3
    assert "no job has read the log another yet" in run("reconcile").stderr
