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

from ingest.redis_keys import Keys
from tests.archive.bar_rig import amend, close_minutes, wait_until_bars_stored
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
from tests.throttle.analytics.bars.bar_writer import BarWriter

pytestmark = pytest.mark.redis
TEXT = (ROOT / "docs" / "archive.md").read_text("utf-8")


def query(language: str, *, of_bars: bool = False) -> str:
    """Return the document's example in a language: of windows, or of bars."""
    windows, bars = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    return str(bars if of_bars else windows)


@pytest.fixture
def published(client: redis.Redis) -> None:
    """Two windows of a day with three issues, whose names are known by then.

    And their bars of two minutes, of which one is amended.
    """
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
    writer = BarWriter(client)
    close_minutes(writer, 0, 2)
    amend(writer, 1)


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
        wait_until_bars_stored(client, 3)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("archived")
def test_the_query_for_duckdb() -> None:
    found = duckdb.connect().sql(query("duckdb")).fetchall()
    # Four bars of 4,200 and two, not the sums of the windows' last trades.
    assert found == [("chips", 17, 16_800), ("internet & media", 8, 8_400)]
    bars = duckdb.connect().sql(query("duckdb", of_bars=True)).fetchall()
    assert bars == [
        (HYNIX, 90, 120, 80),
        (SAMSUNG, 90, 120, 90),
        (NAVER, 90, 120, 80),
    ]


@pytest.mark.usefixtures("archived")
def test_the_query_for_pandas() -> None:
    """With the one of bars."""
    told = run_with_pandas(
        query("python") + "\nprint(sum(rows.price))\n",
        query("python", of_bars=True) + "\nprint(sum(bars.volume), sum(bars.trades))\n",
    )
    assert "199500.250000000000000000" in "\n".join(told)
    of_rows, of_bars = [n for n, line in enumerate(told) if re.match(r"\d+\.", line)][
        :2
    ]
    assert Decimal(told[of_rows]) == Decimal("199600.75")
    volume, trades = told[of_bars].split()
    assert (Decimal(volume), int(trades)) == (90, 9)


def run_with_pandas(*codes: str) -> list[str]:
    """Run code in a process of its own: pandas is where nothing else finds it."""
    pandas = ROOT / ".venv" / "pandas"
    if not pandas.exists():
        skip_or_fail("pandas is not there (make pandas)")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(codes)],
        env={**os.environ, "PYTHONPATH": str(pandas)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.usefixtures("published")
def test_the_query_for_sql(
    client: redis.Redis, server: PostgresServer, redis_url: str, tmp_path: Path
) -> None:
    settings = settings_of(redis_url, tmp_path, postgres_url=server.url())
    with archiving(settings):
        wait_until_stored(client, 2, "postgres")
        wait_until_bars_stored(client, 3, "postgres")
    assert server.ask(query("sql")) == [
        (HYNIX, "SK hynix, Inc.", Decimal("0.10"), Decimal("-0.20")),
        (SAMSUNG, "Samsung Electronics", Decimal("199500.25"), Decimal("100.25")),
    ]
    candles = server.ask(query("sql", of_bars=True))
    assert [(isin, *map(int, amounts)) for isin, _, *amounts in candles] == [
        (HYNIX, 100, 120, 90, 110, 80),
        (SAMSUNG, 100, 120, 90, 110, 90),
        (NAVER, 100, 120, 90, 110, 80),
    ]
