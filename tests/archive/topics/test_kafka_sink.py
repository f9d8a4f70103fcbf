"""Windows and bars in topics of a real broker: each once, in order."""

import itertools
import json
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import redis
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from typer.testing import CliRunner

from archive.account import rows_of_log, stored_day
from archive.archive_process import ArchiveFailed, open_counts
from archive.settings import ArchiveSettings
from archive.storing.archive_sink import SinkAway
from archive.topics.relay_topics import RelayTopics
from cli.command_line import app
from tests.archive.bar_rig import (
    amend,
    close_minutes,
    logged_bars,
    newest_number,
    take_back,
    wait_until_bars_stored,
)
from tests.archive.rig import (
    ISINS,
    archiving,
    be_frozen,
    be_killed,
    publish,
    settings_of,
    state_of,
    wait_until_stored,
)
from tests.archive.topics.reading import Read, committed
from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import EPOCH, SAMSUNG, make_row
from tests.kafka import options, produce
from tests.kafka_broker.broker import Broker
from tests.published import read_snapshots
from tests.throttle.analytics.bars.bar_writer import BarWriter
from throttle.contract.snapshot import Row

pytestmark = [pytest.mark.redis, pytest.mark.kafka]

NAME = "kafka"
LEASE = f"tt:lease:archive:{NAME}"
EVERY = 0, 2**53
_numbers = itertools.count(1)


def relaying(redis_url: str, folder: Path, broker: Broker) -> ArchiveSettings:
    """Return an archive to topics that no other test has."""
    prefix = f"out-{next(_numbers)}"
    place = {"archive_topics": prefix, "kafka_servers": broker.servers}
    return settings_of(redis_url, folder, **place)


@pytest.fixture
def settings(kafka: Broker, redis_url: str, tmp_path: Path) -> ArchiveSettings:
    return relaying(redis_url, tmp_path, kafka)


def records(broker: Broker, settings: ArchiveSettings, kind: str) -> list[Read]:
    """Return what a consumer gets of one of the topics."""
    return committed(broker, f"{settings.archive_topics}.{kind}")


def check_whole(client: redis.Redis, broker: Broker, settings: ArchiveSettings) -> None:
    """Hold the topics to the window log: each window once, in order, with its rows.

    What is committed is there for readers a moment later.
    """
    snapshots = read_snapshots(client)
    wanted_rows = Counter(
        (s.epoch, s.offset, row.isin) for s in snapshots for row in s.rows
    )
    newest = {row.isin: (s.epoch, s.offset) for s in snapshots for row in s.rows}

    def found() -> tuple[Any, Any, Any]:
        of_each = (records(broker, settings, k) for k in ("windows", "rows", "latest"))
        windows, rows, latest = of_each
        return (
            [(w.value["epoch"], w.value["offset"], w.value["rows"]) for w in windows],
            Counter((r.value["epoch"], r.value["offset"], r.key) for r in rows),
            {r.key: (r.value["epoch"], r.value["offset"]) for r in latest},
        )

    eventually(lambda: sum(found()[1].values()) >= wanted_rows.total())
    windows = [(s.epoch, s.offset, len(s.rows)) for s in snapshots]
    assert found() == (windows, wanted_rows, newest)


def test_every_window_is_relayed_with_its_rows(
    client: redis.Redis, publisher: Publisher, kafka: Broker, settings: ArchiveSettings
) -> None:
    """With every digit and the names of instruments; the command counts them."""
    publisher.list_instruments()
    publish(publisher, 3)
    publisher.publish()
    publisher.publish(make_row(SAMSUNG, "0.30", 9, 7))
    with archiving(settings):
        wait_until_stored(client, 5, NAME)
    check_whole(client, kafka, settings)
    counts = open_counts(settings)
    log = rows_of_log(read_snapshots(client))
    kept = stored_day(counts.windows(*EVERY), counts.rows(*EVERY))
    assert kept == {place: (window, window.rows) for place, window in log.items()}
    assert counts.rows(0, 1) == counts.windows(0, 1) == []
    [row] = [r for r in records(kafka, settings, "rows") if r.value["offset"] == 5]
    assert str(row.value["price"]) == "0.30"
    assert (row.key, row.value["trades"], row.value["listed"]) == (SAMSUNG, 7, False)
    assert row.value["time"] == Decimal(1_773_964_802_000_009)
    assert row.headers == {
        "epoch": EPOCH,
        "offset": "5",
        "window": str(row.value["window"]),
    }
    told = ("--topics", settings.archive_topics, "--kafka-servers", kafka.servers)
    done = CliRunner().invoke(app, ["archive", "--show", "--json", *told])
    shown = json.loads(done.stdout)
    assert [day["windows"] for day in shown["days"]] == [5]
    assert shown["gaps"] == []


def test_a_delisted_instrument_leaves_the_newest_values(
    client: redis.Redis, publisher: Publisher, kafka: Broker, settings: ArchiveSettings
) -> None:
    """With the next window, also over a restart, and where that is tried again; unless
    it is traded unlisted.
    """
    listed = dict.fromkeys(ISINS[:4], "name")
    steps: list[str] = []

    def be_away_once(step: str) -> None:
        steps.append(step)
        if steps.count("produced") == 2 and step == "produced":
            raise SinkAway("the broker is away")

    def say_listed(*isins: str) -> None:
        lines = "".join(f"{isin},{listed[isin]}\n" for isin in isins)
        publisher.list_instruments("isin,name\n" + lines)

    def publish_now(*rows: Row) -> int:
        # Behind a change of the table, as of a job that knows of it.
        end_ms = time.time_ns() // 1_000_000 + 1
        publisher.publish_at(end_ms, *rows)
        eventually(lambda: time.time_ns() // 1_000_000 > end_ms)
        return publisher.offset

    say_listed(*ISINS[:4])
    with archiving(settings, be_away_once):
        first = [make_row(isin, "5", 1, 1) for isin in ISINS[:4]]
        wait_until_stored(client, publish_now(*first), NAME)
        say_listed(*ISINS[1:4])
        wait_until_stored(client, publish_now(), NAME)
    say_listed(ISINS[3])
    publish_now(make_row(ISINS[1], "7", 9, 1))
    with archiving(settings):
        wait_until_stored(client, 3, NAME)
        wait_until_stored(client, publish_now(), NAME)
    assert steps.count("produced") == steps.count("committed") + 1
    found = records(kafka, settings, "latest")
    deleted = [(r.key, r.headers["offset"]) for r in found if r.value is None]
    assert deleted == [(ISINS[0], "2"), (ISINS[2], "3")]
    last = {r.key: r.value and r.value["offset"] for r in found}
    assert last == {ISINS[0]: None, ISINS[1]: 3, ISINS[2]: None, ISINS[3]: 1}


@pytest.mark.parametrize("step", ["produced", "committed"])
def test_a_kill_at_any_step_leaves_no_double_row(
    step: str,
    client: redis.Redis,
    publisher: Publisher,
    kafka: Broker,
    settings: ArchiveSettings,
) -> None:
    be_killed(settings, step, client, publisher, is_killed=step == "produced")
    check_whole(client, kafka, settings)


def test_one_that_is_frozen_in_a_transaction_holds_up_nobody(
    client: redis.Redis, publisher: Publisher, kafka: Broker, settings: ArchiveSettings
) -> None:
    """What it has begun is given up; when it goes on it ends."""
    be_frozen(settings, "produced", client, publisher)
    check_whole(client, kafka, settings)


def test_a_broker_that_is_killed_is_waited_for(
    client: redis.Redis,
    publisher: Publisher,
    own_kafka: Broker,
    redis_url: str,
    tmp_path: Path,
) -> None:
    """And while it is away, the archive says so."""
    settings = relaying(redis_url, tmp_path, own_kafka)
    with archiving(settings) as ends:
        publish(publisher, 2)
        wait_until_stored(client, 2, NAME)
        own_kafka.kill()
        publish(publisher, 2)
        eventually(lambda: state_of(client, NAME).problem, 60)
        own_kafka.start()
        eventually(lambda: state_of(client, NAME).offset == 4, 120)
        eventually(lambda: state_of(client, NAME).problem is None, 60)
        assert ends == []
    check_whole(client, own_kafka, settings)


def test_bars_are_relayed_as_they_close_and_are_amended(
    client: redis.Redis, kafka: Broker, settings: ArchiveSettings
) -> None:
    """The last record of a key is the bar; a restart repeats none."""
    writer = BarWriter(client)
    close_minutes(writer, 0, 3)
    with archiving(settings):
        wait_until_bars_stored(client, newest_number(client), NAME)
    amend(writer, 1)
    take_back(writer, 0)
    with archiving(settings):
        wait_until_bars_stored(client, newest_number(client), NAME)
    wanted = {key: bar.edition for key, bar in logged_bars(client).items()}
    counts = open_counts(settings)
    assert counts.bars(*EVERY) == wanted
    assert counts.gaps("bars") == []
    assert sum(counts.bar_lines().values()) == len(records(kafka, settings, "bars"))
    last: dict[str, Any] = {r.key: r.value for r in records(kafka, settings, "bars")}
    assert len(last) == len(wanted)
    assert wanted == {
        (bar["isin"], bar["start"], bar["width_ms"]): (bar["revision"], bar["trades"])
        for bar in last.values()
    }


def test_topics_that_are_no_archives_are_refused(
    client: redis.Redis,
    publisher: Publisher,
    kafka: Broker,
    redis_url: str,
    tmp_path: Path,
) -> None:
    """In a sentence that says what to do; nothing is appended to them."""
    publish(publisher, 1)
    foreign, several = (relaying(redis_url, tmp_path, kafka) for _ in range(2))
    RelayTopics(kafka.servers, foreign.archive_topics).make()
    produce(kafka, f"{foreign.archive_topics}.windows", [b"{}"])
    windows = NewTopic(f"{several.archive_topics}.windows", 3, 1)
    admin = AdminClient(options(kafka))
    admin.create_topics([windows])[windows.topic].result(30)
    for settings, words in (
        (foreign, "its last record is none of an archive's"),
        (several, "has 3 partitions, and must have 1"),
    ):
        with archiving(settings) as ends:
            eventually(lambda: ends)
        assert isinstance(ends[0], ArchiveFailed)
        assert words in str(ends[0])
        client.delete(LEASE)
    assert len(records(kafka, foreign, "windows")) == 1


def test_an_archive_has_one_place() -> None:
    with pytest.raises(ValueError, match="not with postgres_url"):
        ArchiveSettings(archive_topics="out", postgres_url="postgresql://a@b/c")
