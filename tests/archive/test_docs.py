"""The queries of the document do what it says, on a real archive."""

import json
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
import redis

from archive.topics.record_values import ROW_TOPIC, avro_schema_of
from ingest.redis_keys import Keys
from ingest.statuses.status_log import StatusLog
from ingest.statuses.trading_status import TradingStatus
from tests.archive.bar_rig import amend, close_minutes, wait_until_bars_stored
from tests.archive.postgres.server import PostgresServer
from tests.archive.rig import archiving, settings_of, wait_until_stored
from tests.data_frames import run_with_frames
from tests.doc_pages import text_of
from tests.gateway.bar_publisher import make_bar
from tests.gateway.publisher import load_instruments
from tests.gateway.samples import (
    HYNIX,
    INSTRUMENT_LIST,
    NAVER,
    SAMSUNG,
    make_row,
    make_snapshot,
)
from tests.paths import ROOT
from tests.throttle.analytics.bars.bar_writer import BarWriter

pytestmark = pytest.mark.redis
TEXT = (ROOT / "docs" / "archive.md").read_text("utf-8")


def query(language: str, place: int = 0) -> str:
    """Return one of the document's examples in a language; the last is of bars."""
    return str(re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)[place])


def test_the_row_of_a_topic_has_the_fields_of_its_records() -> None:
    """In their order; what nobody has said is left out."""
    [shown] = re.findall(r'^\{"isin".*\}$', text_of("docs/kafka.md"), re.MULTILINE)
    fields = json.loads(avro_schema_of(ROW_TOPIC))["fields"]
    row = json.loads(shown)
    assert [*row] == [field["name"] for field in fields if field["name"] in row]
    assert {f["name"] for f in fields if "default" not in f} <= row.keys()


@pytest.fixture
def published(client: redis.Redis) -> None:
    """Two windows of a day with three instruments, whose names are known by then.

    In the second one a trade of an instrument came late, and how many trades another
    row has is all that anybody knows. And bars of two minutes, of which one is amended.
    """
    load_instruments(client, INSTRUMENT_LIST)
    seconds, _ = client.time()
    client.hset(Keys("tt").meta, "window_ms", 2_000)
    samsung, hynix = make_row(SAMSUNG, "100.5", 1), make_row(HYNIX, "0.10", 1)
    newer, naver = make_row(SAMSUNG, "199500.25", 2), make_row(NAVER, "7", 1)
    for snapshot in (
        make_snapshot(1, samsung._replace(sums=b"3,60,6012.5,101,99"), hynix, naver),
        make_snapshot(
            2,
            newer._replace(sums=b"4,100,19950015,199600,199500.10"),
            hynix._replace(sums=b"1,10,1.5,0.15,0.15"),
            naver._replace(sums=b"2"),
        ),
    ):
        told = replace(snapshot, published_us=(seconds + 1) * 1_000_000)
        entry_id = f"{snapshot.offset}-0"
        client.xadd(Keys("tt").windows, {"snapshot": told.encode()}, entry_id)
    writer = BarWriter(client)
    close_minutes(writer, 0, 2)
    # With more trades than it has once most of them were taken back.
    writer.publish(
        make_bar(SAMSUNG, 1, trades=9, volume="90"), clock_ms=writer.clock_ms + 1
    )
    amend(writer, 1)
    halt = TradingStatus(SAMSUNG, "halted", 1_773_964_803_811_204, reason="disclosure")
    StatusLog(client, "tt", 0).add(halt, halt.time_us + 1)


@pytest.fixture
def archived(
    client: redis.Redis,
    published: None,
    redis_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with archiving(settings_of(redis_url, tmp_path / "archive")):
        wait_until_stored(client, 2)
        wait_until_bars_stored(client, 4)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("archived")
def test_the_query_for_duckdb() -> None:
    found = duckdb.connect().sql(query("duckdb")).fetchall()
    # 6012.5 + 4 + 19,950,015 + 1.5, not the sum of the windows' newest trades.
    assert found == [("chips", 9, 19_956_033), ("internet & media", 3, 280)]
    ranges = duckdb.connect().sql(query("duckdb", 1)).fetchall()
    assert ranges == [
        (HYNIX, Decimal("0.10"), Decimal("0.15"), 50, 0),
        (SAMSUNG, 99, 199_600, 160, 0),
        (NAVER, 7, 7, 40, 1),
    ]
    [status] = duckdb.connect().sql(query("duckdb", 2)).fetchall()
    assert status[1:] == (None, "halted", None, "disclosure")
    bars = duckdb.connect().sql(query("duckdb", -1)).fetchall()
    assert bars == [
        (HYNIX, 90, 120, 80),
        (SAMSUNG, 90, 120, 90),
        (NAVER, 90, 120, 80),
    ]


@pytest.mark.usefixtures("archived")
def test_the_query_for_pandas() -> None:
    told = run_with_frames(
        query("python") + "\nprint(sum(rows.price))\n",
        query("python", -1) + "\nprint(sum(bars.volume), sum(bars.trades))\n",
    )
    assert "199500.250000000000000000" in "\n".join(told)
    of_rows, of_bars = [n for n, line in enumerate(told) if re.match(r"\d+\.", line)][
        :2
    ]
    assert Decimal(told[of_rows]) == Decimal("199600.75")
    volume, trades = told[of_bars].split()
    assert (Decimal(volume), int(trades)) == (90, 9)


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
    candles = server.ask(query("sql", -1))
    assert [(isin, *map(int, amounts)) for isin, _, *amounts in candles] == [
        (HYNIX, 100, 120, 90, 110, 80),
        (SAMSUNG, 100, 120, 90, 110, 90),
        (NAVER, 100, 120, 90, 110, 80),
    ]
