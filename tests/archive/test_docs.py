"""The queries of the document do what it says, on a real archive."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
import redis

from tests.archive.postgres.server import PostgresServer
from tests.archive.rig import archiving, settings_of, wait_until_stored
from tests.conftest import skip_or_fail
from tests.gateway.publisher import load_issues
from tests.gateway.samples import (
    HYNIX,
    ISSUE_LIST,
    NAVER,
    SAMSUNG,
    make_row,
    make_snapshot,
)
from tests.paths import ROOT
from throttle.contract.redis_keys import Keys

pytestmark = pytest.mark.redis
TEXT = (ROOT / "docs" / "archive.md").read_text("utf-8")


def query(language: str) -> str:
    """Return the document's example in a language."""
    [found] = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    return str(found)


@pytest.fixture
def published(client: redis.Redis) -> None:
    """Two windows of a day with three issues, whose names are known by then."""
    load_issues(client, ISSUE_LIST)
    seconds, _ = client.time()
    rows = make_row(SAMSUNG, "100.5", 1, 3), make_row(HYNIX, "0.10", 1, 1)
    for snapshot in (
        make_snapshot(1, *rows, make_row(NAVER, "7", 1, 2)),
        make_snapshot(2, make_row(SAMSUNG, "199500.25", 2, 4)),
    ):
        told = replace(snapshot, published_us=(seconds + 1) * 1_000_000)
        entry_id = f"{snapshot.offset}-0"
        client.xadd(Keys("tt").windows, {"snapshot": told.encode()}, entry_id)


@pytest.fixture
def archived(
    client: redis.Redis,
    published: None,
    redis_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their archive, where the document has it."""
    with archiving(settings_of(redis_url, tmp_path / "archive")):
        wait_until_stored(client, 2)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("archived")
def test_the_query_for_duckdb() -> None:
    found = duckdb.connect().sql(query("duckdb")).fetchall()
    chips = Decimal("100.5") * 40 + Decimal("0.10") * 40 + Decimal("199500.25") * 40
    assert found == [("chips", 8, chips), ("internet & media", 2, Decimal(280))]


@pytest.mark.usefixtures("archived")
def test_the_query_for_pandas() -> None:
    """In a process of its own: pandas is in a folder that nothing else finds."""
    pandas = ROOT / ".venv" / "pandas"
    if not pandas.exists():
        skip_or_fail("pandas is not there (make pandas)")
    code = query("python") + "\nprint(sum(rows.price))\n"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(pandas)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "199500.250000000000000000" in done.stdout
    assert Decimal(done.stdout.splitlines()[-1]) == Decimal("199600.75")


@pytest.mark.usefixtures("published")
def test_the_query_for_sql(
    client: redis.Redis, server: PostgresServer, redis_url: str, tmp_path: Path
) -> None:
    settings = settings_of(redis_url, tmp_path, postgres_url=server.url())
    with archiving(settings):
        wait_until_stored(client, 2, "postgres")
    assert server.ask(query("sql")) == [
        (HYNIX, "SK hynix, Inc.", Decimal("0.10"), Decimal("-0.20")),
        (SAMSUNG, "Samsung Electronics", Decimal("199500.25"), Decimal("100.25")),
    ]
