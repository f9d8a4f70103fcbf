"""The commands that look and change nothing, over a log in a topic of Kafka."""

import time

import pytest
import redis
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from ingest.kafka.address import KafkaTopic
from ingest.trade import Trade
from ingest.tradelog.contract import partition_of
from tests.cli.running import objects, run
from tests.kafka_broker.broker import Broker
from tests.ports import free_port
from tests.throttle.topic_job import TopicJob, append, make_log

pytestmark = [pytest.mark.redis, pytest.mark.kafka]
PARTITIONS = 4
A, B, C = "KR7005930003", "KR7000660001", "KR7035420009"
PLACE = {isin: partition_of(isin, PARTITIONS) for isin in (A, B, C)}


@pytest.fixture
def topic(kafka: Broker, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> KafkaTopic:
    """An empty topic, and commands that are pointed to it."""
    made = make_log(kafka, PARTITIONS)
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setenv("TICKTHROTTLE_TRADE_LOG", "kafka")
    monkeypatch.setenv("TICKTHROTTLE_KAFKA_SERVERS", made.servers)
    monkeypatch.setenv("TICKTHROTTLE_KAFKA_TOPIC", made.topic)
    return made


@pytest.fixture
def job(redis_url: str, client: redis.Redis, topic: KafkaTopic) -> TopicJob:
    """A job that has published some trades, and refused others."""
    append(topic, [wire(isin, n) for n in range(20) for isin in (A, B, C)])
    append(topic, [(A, b"?"), (C, b"\x1b[31m\xff")])
    started = TopicJob(redis_url, client, topic)
    started.publish()
    append(topic, [wire(A, 20)])
    started.publish()
    return started


def wire(isin: str, seq: int) -> tuple[str, bytes]:
    trade = Trade(isin, time.time_ns() // 1_000, seq, f"{seq}.50", "5")
    return isin, trade.to_wire()


def delete(topic: KafkaTopic, partition: int, before: int) -> None:
    admin = AdminClient(topic.client_options({}))
    for future in admin.delete_records(
        [TopicPartition(topic.topic, partition, before)]
    ).values():
        future.result(30)


def test_trades_are_shown_by_their_offsets(job: TopicJob) -> None:
    """Newest last, from a place or a moment on, of an instrument or refused."""
    every = objects("trades", "--limit", "99")
    assert len(every) == 63
    assert [t["append_ms"] for t in every] == sorted(t["append_ms"] for t in every)
    assert objects("trades", "--limit", "3") == every[-3:]
    assert every[-1]["trade"]["price"] == "20.50"
    mine = objects("trades", "--isin", A, "--limit", "99")
    assert [t["position"] for t in mine] == [
        f"{PLACE[A]}:{n}" for n in (*range(20), 21)
    ]
    assert objects("trades", "--from", mine[7]["position"], "--isin", A) == mine[7:]
    assert objects("trades", "--from", f"{PLACE[A]}:0", "--limit", "5") == mine[:5]
    assert objects("trades", "--from", str(every[-1]["append_ms"])) == every[-1:]
    refused = objects("trades", "--reason", "not_json")
    assert len(refused) == 2
    assert "\x1b" not in run("trades", "--reason", "not_json").stdout


def test_windows_computed_again_are_right_as_far_as_the_topic_holds_them(
    job: TopicJob, topic: KafkaTopic
) -> None:
    """All of them, those of a trade, and those that retention has left."""
    result = run("rebuild")
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith("\nright\n")
    newest = f"{PLACE[A]}:21"
    [report] = objects("rebuild", "--from", newest, "--to", newest)
    assert (report["compared"], report["rows"], report["right"]) == (1, 1, True)
    delete(topic, PLACE[A], 3)
    [report] = objects("rebuild")
    assert report["right"]
    # In one window or in two: they were appended at any moment of one.
    assert report["not_comparable"].keys() == {"their trades are no longer in the log"}
    gone = run("rebuild", "--from", f"{PLACE[A]}:2")
    assert gone.exit_code == 2
    assert f"from {PLACE[A]}:2: the log has no such entry any more" in gone.stderr


def test_jobs_of_some_partitions_each_are_compared_one_by_one(
    redis_url: str, client: redis.Redis, topic: KafkaTopic
) -> None:
    """What another one has published is another one's."""
    append(topic, [wire(isin, n) for n in range(5) for isin in (A, B, C)])
    jobs = [
        TopicJob(redis_url, client, topic, job=f"job{n}", only_partitions=only)
        for n, only in enumerate(("0-1", "2-3"))
    ]
    for each in (*jobs, *jobs):
        each.publish()
    for name in ("job0", "job1"):
        [report] = objects("rebuild", "--job", name)
        assert report["right"], report
        assert report["others"] > 0
        [ledger] = objects("ledger", "--job", name)
        assert ledger["balanced"]
    assert [one["partition"] for one in ledger["partitions"]] == [2, 3]
    assert run("ledger", "--job", "job1").stdout.splitlines()[2].split()[0] == "2"
    [found] = objects("reconcile")
    assert found["right"]
    assert [(one["partition"], one["job"]) for one in found["partitions"]] == [
        *((0, "job0"), (1, "job0"), (2, "job1"), (3, "job1"))
    ]
    assert found["totals"]["total"]["read"] == 15
    alone = run("reconcile", "--job", "job0")
    assert alone.exit_code == 0
    client.hdel("tt:meta", "log:job1")
    lonely = run("reconcile")
    assert lonely.exit_code == 1
    assert "partition 2: no job reads it; it holds" in lonely.stdout


def semicolons(payload: bytes) -> dict[str, str]:
    """Decode ``isin;time;seq;price;size``."""
    names = ("isin", "time", "seq", "price", "size")
    return dict(zip(names, payload.decode().split(";"), strict=True))


def test_trades_of_another_form_are_shown_as_what_they_stand_for(
    redis_url: str,
    client: redis.Redis,
    topic: KafkaTopic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the decoder that the job has; as they are, where it cannot be had."""
    decoder = f"{__name__}:semicolons"
    monkeypatch.setenv("TICKTHROTTLE_DECODER", decoder)
    now_us = time.time_ns() // 1_000
    lines = [f"{A};{now_us};{n};1.50;5".encode() for n in range(3)]
    append(topic, [(A, line) for line in lines])
    append(topic, [(A, b"1;2")])
    TopicJob(redis_url, client, topic, decoder=decoder).publish()
    *trades, refused = objects("trades")
    assert [one["trade"]["price"] for one in trades] == ["1.50"] * 3
    assert (refused["reason"], refused["payload"]) == ("not_decoded", "1;2")
    assert run("rebuild").exit_code == 0
    monkeypatch.setenv("TICKTHROTTLE_DECODER", "nowhere:at_all")
    result = run("trades")
    assert result.exit_code == 0
    assert result.stderr.startswith("tickthrottle: decoder nowhere:at_all: ")
    assert "entries are shown as they are" in result.stderr
    assert result.stdout.count(";1.50;5") == 3
    monkeypatch.setenv("TICKTHROTTLE_DECODER", decoder)
    *raw, last = objects("trades", "--raw")
    assert [one["payload"].split(";")[0] for one in raw] == [A] * 3
    assert (last["payload"], "reason" in last) == ("1;2", False)


def test_a_topic_that_is_not_there_is_one_sentence(
    topic: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is a broker that is not there."""
    monkeypatch.setenv("TICKTHROTTLE_KAFKA_TOPIC", "no-such-topic")
    sentence = "tickthrottle: kafka_topic no-such-topic: does"
    for command in ("trades", "rebuild", "reconcile"):
        missing = run(command)
        assert missing.exit_code == 3
        assert missing.stderr.startswith(sentence)
        assert len(missing.stderr.splitlines()) == 1


def test_a_broker_that_is_away_is_one_sentence_and_no_hindrance_to_others(
    job: TopicJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Books are in Redis; the topology tells what is configured."""
    away = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("TICKTHROTTLE_KAFKA_SERVERS", away)
    result = run("trades")
    assert result.exit_code == 3
    assert result.stderr.startswith(f"tickthrottle: no Kafka broker answers at {away}")
    assert len(result.stderr.splitlines()) == 1
    described = run("topology")
    assert described.exit_code == 0
    assert "partitions: 4, as configured" in described.stdout


def test_the_pipeline_describes_a_topic_without_its_secrets(
    topic: KafkaTopic,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where it is, who places, how long a cut waits; of options only their file."""
    config = tmp_path_factory.mktemp("kafka") / "client.properties"
    config.write_text("sasl.password=hidden\n")
    monkeypatch.setenv("TICKTHROTTLE_KAFKA_CONFIG", str(config))
    monkeypatch.setenv("TICKTHROTTLE_ONLY_PARTITIONS", "1-2")
    text = run("topology").stdout
    for line in (
        "kind: The trade log in a topic of Kafka",
        f"server: {topic.servers}",
        f"topic: {topic.topic}",
        "partitions: 4, the log's own (kafka:",
        "read: the partitions 1, 2, by this job",
        "placing: by whoever appends; the feeds",
        "margin: 30 ms",
        "server: redis://",
    ):
        assert line in text
    # A long path goes on in the next line.
    assert f"TICKTHROTTLE_KAFKA_CONFIG={config}" in "".join(text.split())
    chart = run("topology", "--mermaid").stdout
    assert f"{topic.topic}-0 to {topic.topic}-3" in chart
    assert "hidden" not in text + chart


def test_the_ledger_names_what_waits_behind_a_transaction(
    job: TopicJob, topic: KafkaTopic
) -> None:
    """It is in no book yet, and the books balance without it."""
    assert "transaction" not in run("ledger").stdout
    producer = Producer(topic.client_options({"transactional.id": topic.topic}))
    producer.init_transactions(30)
    producer.begin_transaction()
    isin, payload = wire(A, 21)
    producer.produce(topic.topic, payload, partition=PLACE[isin])
    assert producer.flush(30) == 0
    append(topic, [wire(A, 22)])
    result = run("ledger")
    assert result.exit_code == 0
    line = f"partition {PLACE[A]} of {topic.topic}: 2 offsets wait behind a transaction"
    assert line in result.stdout
    [ledger] = objects("ledger")
    assert len(ledger["waiting"]) == 1
    producer.abort_transaction(30)
    job.publish()
    assert objects("ledger")[0]["waiting"] == []
