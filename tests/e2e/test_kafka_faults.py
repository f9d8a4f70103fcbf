"""What brokers, topics and their other users may do to the job."""

import json
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from ingest.trade import MAX_PAYLOAD_BYTES, Trade
from tests.conftest import PATIENCE, eventually, make_broker
from tests.e2e.books import check_books
from tests.e2e.feeds import Feed
from tests.e2e.kafka_rig import KafkaRig, create_kafka_rig, create_topic
from tests.e2e.rig import PATIENCE_S
from tests.e2e.steady import Steady
from tests.kafka import sasl_options
from tests.kafka_broker.broker import Broker
from throttle.contract.snapshot import LastValue

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]

W = 500
AWAY, BACK = '"event": "the trade log is away"', '"event": "the trade log is back"'
ISIN = "KR7005930003"


@dataclass
class Frail:
    """A job on a broker of its own; ``receipts`` are those of feeds that ended."""

    broker: Broker
    rig: KafkaRig
    steady: Steady
    receipts: list[Path] = field(default_factory=list)

    @contextmanager
    def reconciled_feed(self) -> Iterator[None]:
        """Feed; at the end, what was acknowledged, held and read is the same number."""
        receipt = self.rig.folder / f"receipt-{len(self.receipts)}.json"
        report = "--report", str(receipt)
        with self.rig.process("simulate", "--rate", "300", *report) as feed:
            # Written once the feed has its topic.
            eventually(receipt.exists, PATIENCE_S)
            self.steady.begin()
            self.steady.wait_for_windows(3)
            yield
            feed.process.send_signal(signal.SIGTERM)
            assert feed.process.wait(timeout=30 * PATIENCE) == 0, feed.log()
        self.receipts.append(receipt)
        ended_ms = self.rig.clock_ms()
        eventually(lambda: self.rig.checked_upto() > ended_ms, 60)
        known = [f"--acknowledged={path}" for path in self.receipts]
        with self.rig.process("reconcile", "--json", *known) as reconciled:
            code = reconciled.process.wait(timeout=60 * PATIENCE)
            assert code == 0, reconciled.log()
        sums = json.loads(reconciled.log())["totals"]["total"]
        assert sums["acknowledged"] == sums["held"] == sums["read"] > 0
        assert sums["waiting"] == 0


@pytest.fixture(scope="module")
def frail(
    kafka_storage: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Frail]:
    """One job for most of the file, and for all that happens to its broker."""
    folder = tmp_path_factory.mktemp("frail")
    shutil.copytree(kafka_storage, folder / "kafka")
    with (
        make_broker(folder / "kafka") as broker,
        create_kafka_rig(folder / "rig", W, broker.servers, 4) as rig,
        Steady(rig) as steady,
    ):
        yield Frail(broker, rig, steady)


@pytest.fixture
def broker(frail: Frail) -> Broker:
    """The broker, which runs."""
    return frail.broker


@pytest.fixture
def rig(frail: Frail) -> KafkaRig:
    """What is around the job."""
    return frail.rig


@pytest.fixture
def steady(frail: Frail) -> Steady:
    """The job, live."""
    frail.steady.begin()
    return frail.steady


@pytest.fixture
def feed(rig: KafkaRig, steady: Steady) -> Iterator[Feed]:
    """A feed that goes on."""
    with rig.feed() as feed:
        rig.wait_for_offset(rig.offset() + 3, job=steady.job)
        yield feed


def test_a_job_that_is_there_before_its_broker_waits_for_it(frail: Frail) -> None:
    """It says for what, and begins once the broker is there."""
    frail.broker.kill()
    frail.steady.start()
    frail.steady.wait_until_said(AWAY, PATIENCE_S)
    frail.broker.start()
    frail.steady.wait_until_said(BACK, PATIENCE_S)


def test_a_broker_that_is_killed_and_comes_back_costs_nothing(frail: Frail) -> None:
    """Never lost, exactly once, accounted: job and feed wait, and go on as before."""
    with frail.reconciled_feed():
        frail.broker.kill()
        frail.steady.wait_until_said(AWAY, 40)
        frail.broker.start()
        frail.steady.wait_until_said(BACK, 60)
        assert frail.steady.check_goes_on().trades > 0


def test_a_broker_that_freezes_for_a_while_costs_nothing(frail: Frail) -> None:
    """It holds its connections and answers nothing: job and feed notice anyway."""
    with frail.reconciled_feed():
        frail.broker.pause()
        try:
            frail.steady.wait_until_said(AWAY, 60)
        finally:
            frail.broker.resume()
        frail.steady.wait_until_said(BACK, 60)
        assert frail.steady.check_goes_on().trades > 0


def test_partitions_added_while_running_are_read(
    rig: KafkaRig, steady: Steady, feed: Feed
) -> None:
    """Never lost: the topic grows, nothing is restarted, the books know them."""
    admin = AdminClient(options_of(rig))
    count = rig.partitions = rig.partitions + 2
    admin.create_partitions([NewPartitions(rig.topic, count)])[rig.topic].result()

    def is_read() -> bool:
        steady.check_alive()
        put(rig, {"partition": count - 1, "value": trade(seq=1).to_wire()})
        return len(check_books(rig.client, log=rig.log).upto.partitions) == count

    eventually(is_read, 60)
    rig.wait_for_offset(rig.offset() + 3, 30, steady.job)
    assert check_books(rig.client, log=rig.log).partitions[-1].read > 0
    assert steady.check_goes_on().trades > 0


def test_what_is_no_trade_is_refused_and_nothing_else(
    rig: KafkaRig, steady: Steady
) -> None:
    """Accounted: tombstones, null keys, headers alone, too large, from 2099."""
    rig.wait_for_offset(rig.offset() + 1, 30, steady.job)
    before = check_books(rig.client, log=rig.log).total
    good = trade(seq=time.time_ns()).to_wire()
    ahead = trade(time_us=4_070_908_800_000_000).to_wire()
    put(
        rig,
        {"key": ISIN.encode(), "value": None},
        {"value": None, "headers": {"only": b"this"}},
        {"value": b"x" * (MAX_PAYLOAD_BYTES + 1)},
        {"value": b"\xff\x00"},
        {"value": ahead},
        {"value": good},
    )

    def is_read() -> bool:
        stored = rig.client.hget("tt:last", ISIN) or b"0 0 "
        row = Trade.from_wire(good).to_row()
        return LastValue.decode(ISIN.encode(), stored).body == row

    eventually(is_read, 30)
    rig.wait_for_offset(rig.offset() + 2, 30, steady.job)
    after = check_books(rig.client, log=rig.log).total
    news = {r: n - before.refused.get(r, 0) for r, n in after.refused.items()}
    assert {r: n for r, n in news.items() if n} == {
        "empty": 2,
        "too_large": 1,
        "not_json": 1,
        "future_time": 1,
    }
    steady.check_goes_on()


def test_a_topic_made_again_is_refused(rig: KafkaRig, steady: Steady) -> None:
    """Never backwards: positions of one topic mean nothing in another."""
    admin = AdminClient(options_of(rig))
    assert steady.job is not None
    admin.delete_topics([rig.topic])[rig.topic].result()
    assert steady.job.process.wait(timeout=60 * PATIENCE) == 3
    assert f"kafka_topic {rig.topic}: " in steady.new_lines()
    eventually(lambda: rig.topic not in admin.list_topics(timeout=5).topics)
    create_topic(rig.servers, rig.topic, rig.partitions)
    with rig.job() as job:
        assert job.process.wait(timeout=60 * PATIENCE) == 3
        assert "has read another log" in job.log()
        assert "start it under another --job" in job.log()
    with rig.job("--job", "another") as job:
        job.wait_for('"event": "starting spark"')


def test_two_jobs_share_a_topic_without_keys(broker: Broker, tmp_path: Path) -> None:
    """Calm, latest, accounted: of two jobs with all instruments, one stream comes."""
    # Two jobs share the cores, with other tests beside them.
    with create_kafka_rig(
        tmp_path / "rig", 2 * W, broker.servers, 4, is_keyed=False
    ) as rig:
        half = {"TICKTHROTTLE_ONLY_PARTITIONS": "0-1"}
        other = {"TICKTHROTTLE_ONLY_PARTITIONS": "2,3"}
        with (
            rig.job("--job", "low", **half) as low,
            rig.job("--job", "high", **other) as high,
        ):
            with rig.feed():
                # Two jobs keep pace once a busy machine lets them.
                for name, job in (("low", low), ("high", high)):
                    rig.wait_until_live(job, 2 * PATIENCE_S, name)
                rig.wait_for_offset(rig.offset() + 20, 60, low)
            last_ms = rig.clock_ms()
            for name in ("low", "high"):
                eventually(
                    lambda name=name: (
                        check_books(rig.client, name, log=rig.log).upto.end_ms > last_ms
                    ),
                    PATIENCE_S,
                )
        entries = rig.log()
        totals = [check_books(rig.client, n, log=rig.log) for n in ("low", "high")]
        assert [t.upto.partitions for t in totals] == [(0, 1), (2, 3)]
        assert sum(t.total.read for t in totals) == len(entries) > 0
        newest: dict[str, tuple[int, int]] = {}
        for entry in entries:
            found = Trade.from_wire(entry.payload)
            newest[found.isin] = max(found.version, newest.get(found.isin, (0, 0)))
        table = rig.client.hgetall("tt:last")
        stored = [LastValue.decode(*item) for item in table.items()]
        assert {v.isin: Trade.from_wire(v.body).version for v in stored} == newest


def test_a_wrong_password_ends_the_job_with_a_sentence(
    broker: Broker, tmp_path: Path
) -> None:
    """The operator learns what is wrong; the password is not in it."""
    given = sasl_options(broker, "wrong-horse")
    lines = [f"{n}={v}" for n, v in given.items() if "bootstrap" not in n]
    config = tmp_path / "client.properties"
    config.write_text("\n".join(lines).replace("log_level=0\n", ""))
    with (
        create_kafka_rig(tmp_path / "rig", W, broker.servers, 4) as rig,
        rig.job(
            TICKTHROTTLE_KAFKA_SERVERS=broker.sasl_servers,
            TICKTHROTTLE_KAFKA_CONFIG=str(config),
        ) as job,
    ):
        assert job.process.wait(timeout=60 * PATIENCE) == 3
        assert "access refused" in job.log()
        assert "wrong-horse" not in job.log()
        assert "Traceback" not in job.log()


def options_of(rig: KafkaRig) -> dict[str, object]:
    """Return what a client needs to know."""
    return {"bootstrap.servers": rig.servers, "log_level": 0}


def put(rig: KafkaRig, *messages: dict[str, object]) -> None:
    """Append messages as somebody else's producer may."""
    producer = Producer(options_of(rig))
    for message in messages:
        producer.produce(rig.topic, **message)
    assert producer.flush(30) == 0


def trade(seq: int = 0, time_us: int | None = None) -> Trade:
    """Return a trade of one instrument, stamped now unless told otherwise."""
    now_us = time.time_ns() // 1_000
    return Trade(ISIN, time_us or now_us, seq, "70000", "1")
