"""`archive --show` and `reconcile --archive-dir`, over a real job's windows."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import redis

from ingest.redis_keys import Keys
from ingest.statuses.status_log import StatusLog
from ingest.statuses.trading_status import TradingStatus
from ingest.tradelog.contract import partition_of
from tests.archive.bar_rig import (
    BAR_LOG,
    amend,
    close_minutes,
    wait_until_bars_stored,
)
from tests.archive.rig import archiving, publish, settings_of, wait_until_stored
from tests.cli.running import run
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG
from tests.redis_users import documented_users, url_of
from tests.throttle.analytics.bars.bar_writer import BarWriter
from throttle.testing.driver import ThrottleDriver

pytestmark = pytest.mark.redis


@pytest.fixture(autouse=True)
def _server(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)


def test_show_names_days_and_gaps(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    publisher, where = Publisher(client), ("--dir", str(tmp_path))
    assert run("archive", "--show", *where).stdout.splitlines()[-1] == "no gap"
    publish(publisher, 2)
    writer = BarWriter(client)
    close_minutes(writer, 0)
    settings = settings_of(redis_url, tmp_path)
    with archiving(settings):
        wait_until_stored(client, 2)
        wait_until_bars_stored(client, 1)
    publish(publisher, 3)
    halt = TradingStatus(SAMSUNG, "halted", 1_773_964_803_811_204)
    StatusLog(client, "tt", 0).add(halt, halt.time_us + 1)
    client.xtrim(Keys("tt").windows, minid="5-0", approximate=False)
    close_minutes(writer, 1, 2)
    client.xtrim(BAR_LOG, maxlen=1, approximate=False)
    with archiving(settings):
        wait_until_stored(client, 5)
        wait_until_bars_stored(client, 3)
    shown = run("archive", "--show", *where).stdout
    assert "2026-03-20        3         2     6         1" in shown
    assert "2 windows of epoch k3x9" in shown
    assert "1 batches of bars of epoch b7x1" in shown
    found = json.loads(run("archive", "--show", "--json", *where).stdout)
    assert found["days"] == [
        {"day": "2026-03-20", "windows": 3, "bars": 6, "statuses": 1}
    ]
    gaps = [(gap["product"], gap["kind"], gap["windows"]) for gap in found["gaps"]]
    assert gaps == [("windows", "trimmed", 2), ("bars", "trimmed", 1)]


def test_an_archive_needs_no_more_rights_than_are_documented(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    publisher = Publisher(client)
    publisher.list_instruments()
    publish(publisher, 3)
    with documented_users(client):
        analytics = redis.Redis.from_url(url_of("tt-analytics", redis_url))
        close_minutes(BarWriter(client), 0)
        close_minutes(BarWriter(analytics, term=2), 1)
        analytics.close()
        settings = settings_of(url_of("tt-archive", redis_url), tmp_path)
        with archiving(settings) as ends:
            wait_until_stored(client, 3)
            wait_until_bars_stored(client, 2)
            assert ends == []


PARTITIONS = 2


@pytest.fixture
def driver(redis_url: str) -> Iterator[ThrottleDriver]:
    """A job that has published three windows, the second quiet."""
    with ThrottleDriver(redis_url=redis_url, partitions=PARTITIONS) as started:
        for n in (0, 2):
            for isin in (SAMSUNG, HYNIX, NAVER):
                partition = partition_of(isin, PARTITIONS)
                started.trade(isin, "1.50", at_ms=n * 2_000 + 10, partition=partition)
            started.turn_clock((n + 1) * 2_000)
        yield started


def test_a_log_with_partitions_of_its_own_is_right(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """A writer need not follow crc32: no row is taken for another partition's."""
    with ThrottleDriver(redis_url=redis_url, partitions=3) as driver:
        for n in range(3):
            for number, isin in enumerate((SAMSUNG, HYNIX, NAVER)):
                elsewhere = (partition_of(isin, 3) + 1 + number % 2) % 3
                at_ms = n * 2_000 + 10
                driver.trade(isin, "1.50", at_ms=at_ms, partition=elsewhere)
            driver.turn_clock((n + 1) * 2_000)
        with archiving(settings_of(redis_url, tmp_path)):
            wait_until_stored(client, 3)
        done = run("reconcile", "--archive-dir", str(tmp_path), "--json")
    account = json.loads(done.stdout)["archive"]
    assert (done.exit_code, account["right"], account["problems"]) == (0, True, [])
    assert sum(day["stored_rows"] for day in account["days"]) == 9


@pytest.mark.usefixtures("driver")
def test_reconcile_goes_on_to_the_archive(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """Windows and rows, by day; what is lost is a difference."""
    writer = BarWriter(client)
    close_minutes(writer, 0, 2)
    amend(writer, 1)
    with archiving(settings_of(redis_url, tmp_path)):
        wait_until_stored(client, 3)
        wait_until_bars_stored(client, 3)
    close_minutes(writer, 2)
    where = "reconcile", "--archive-dir", str(tmp_path)
    done = run(*where)
    assert (done.exit_code, done.stderr) == (0, ""), done.stdout
    assert "every window is stored\n" in done.stdout
    assert done.stdout.splitlines()[-1] == "every bar is stored"
    told: Any = json.loads(run(*where, "--json").stdout)
    assert told["bars"] == {
        "right": True,
        "days": [
            {
                "day": "2026-03-20",
                "width_ms": 60_000,
                "logged_bars": 6,
                "stored_bars": 6,
                "waiting_bars": 3,
                "kept_bars": 6,
            }
        ],
        "problems": [],
        "notes": [],
    }
    found = told["archive"]
    [day] = found["days"]
    assert (day["published_windows"], day["stored_windows"]) == (3, 3)
    assert day["published_rows"] == day["stored_rows"]
    assert day["stored_rows"] == day["kept_rows"] == 6
    # A day at a time, and no other.
    for option, name, days in (
        ("--day", day["day"], [day]),
        ("--since", day["day"], [day]),
        ("--day", "2020-02-02", []),
        ("--since", "2099-01-01", []),
    ):
        done = run(*where, option, name, "--json")
        assert (done.exit_code, json.loads(done.stdout)["archive"]["days"]) == (0, days)
    for options, words in (
        (("--day", "today"), "day today: must be a day such as 2026-03-20"),
        (("--day", "2020-02-02", "--since", "2020-02-02"), "only one of them"),
    ):
        refused = run(*where, *options)
        assert (refused.exit_code, words in refused.stderr) == (2, True)
    # As if a row had got lost on the way.
    [file] = tmp_path.glob("day=*/*/rows.parquet")
    table = pq.read_table(file)
    pq.write_table(table[1:], file)
    done = run(*where)
    assert done.exit_code == 1
    assert "3 windows of epoch" in done.stdout
    assert "cannot be read: their file is damaged" in done.stdout
    assert "the archive is not right\n" in done.stdout
    # And as if an amendment had.
    [file] = tmp_path.glob("bars/day=*/*/bars.parquet")
    table = pq.read_table(file)
    pq.write_table(table.filter(pc.less(table["trades"], 5)), file)
    done = run(*where)
    assert done.exit_code == 1
    assert "as revision 1 with 5 trades, the stored one is" in done.stdout
    assert done.stdout.splitlines()[-1] == "bars are missing"
