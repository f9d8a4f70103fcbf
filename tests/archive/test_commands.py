"""`archive --show` and `reconcile --archive-dir`, over a real job's windows."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import redis
from click.testing import Result
from typer.testing import CliRunner

from deploy.cli import app
from ingest.tradelog.contract import partition_of
from tests.archive.rig import archiving, publish, settings_of, wait_until_stored
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG
from tests.redis_users import documented_users, url_of
from throttle.contract.redis_keys import Keys
from throttle.testing.driver import ThrottleDriver

pytestmark = pytest.mark.redis


@pytest.fixture(autouse=True)
def _server(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point the commands to the test's server."""
    monkeypatch.setenv("REDIS_URL", redis_url)


def run(*arguments: str) -> Result:
    """Run a command."""
    return CliRunner().invoke(app, arguments)


def test_show_names_days_and_gaps(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    publisher, where = Publisher(client), ("--dir", str(tmp_path))
    assert run("archive", "--show", *where).stdout.splitlines()[-1] == "no gap"
    publish(publisher, 2)
    settings = settings_of(redis_url, tmp_path)
    with archiving(settings):
        wait_until_stored(client, 2)
    publish(publisher, 3)
    client.xtrim(Keys("tt").windows, minid="5-0", approximate=False)
    with archiving(settings):
        wait_until_stored(client, 5)
    shown = run("archive", "--show", *where).stdout
    assert "2026-03-20        3         2" in shown
    assert "2 windows of epoch k3x9" in shown
    found = json.loads(run("archive", "--show", "--json", *where).stdout)
    assert found["days"] == [{"day": "2026-03-20", "windows": 3}]
    assert [(gap["kind"], gap["windows"]) for gap in found["gaps"]] == [("trimmed", 2)]


def test_an_archive_needs_no_more_rights_than_are_documented(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """The user of the document is enough."""
    publisher = Publisher(client)
    publisher.list_issues()
    publish(publisher, 3)
    with documented_users(client):
        settings = settings_of(url_of("tt-archive", redis_url), tmp_path)
        with archiving(settings) as ends:
            wait_until_stored(client, 3)
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


@pytest.mark.usefixtures("driver")
def test_reconcile_goes_on_to_the_archive(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """Windows and rows, by day and by partition; what is lost is a difference."""
    with archiving(settings_of(redis_url, tmp_path)):
        wait_until_stored(client, 3)
    where = "reconcile", "--archive-dir", str(tmp_path)
    done = run(*where)
    assert (done.exit_code, done.stderr) == (0, ""), done.stdout
    assert done.stdout.splitlines()[-1] == "every window is stored"
    found: Any = json.loads(run(*where, "--json").stdout)["archive"]
    [day] = found["days"]
    assert (day["published_windows"], day["stored_windows"]) == (3, 3)
    assert day["published_rows"] == day["stored_rows"]
    assert sum(day["stored_rows"].values()) == day["kept_rows"] == 6
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
    assert "rows were published, " in done.stdout
    assert done.stdout.splitlines()[-1] == "the archive is not right"
