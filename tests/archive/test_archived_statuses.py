"""The archive stores every trading status once, whatever happens to it."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
import redis

from archive.archive_process import open_counts
from archive.contract.archive_state import ArchiveState
from archive.settings import ArchiveSettings
from ingest.redis_keys import StatusKeys
from ingest.statuses.status_log import StatusLog, read_reply
from ingest.statuses.trading_status import TradingStatus
from ingest.trade import Trade
from tests.archive.postgres.server import PostgresServer
from tests.archive.rig import archiving, crash, publish, settings_of, state_of
from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, SAMSUNG
from tickthrottle_client.log_v1 import FIELD, stream_key

pytestmark = pytest.mark.redis

DAY_US = 86_400_000_000
TAKEN_US = 1_773_964_803_000_000
KEYS = StatusKeys("tt")
LEASE = "tt:lease:archive:{}"


class Exchange:
    """Adds statuses, a second apart: halts and resumptions in turns."""

    def __init__(self, client: redis.Redis, partitions: int = 0) -> None:
        self._log = StatusLog(client, "tt", partitions)
        self.taken_us = TAKEN_US
        self.number = 0

    def add(self, count: int = 1, isin: str = SAMSUNG, **more: Any) -> int:
        for _ in range(count):
            self.taken_us += 1_000_000
            word = more.get("status", ("trading", "halted")[self.number % 2])
            said = {**more, "status": word, "isin": isin, "time_us": self.taken_us - 7}
            reply = self._log.add(TradingStatus(**said), self.taken_us)
            self.number = read_reply(reply)[1]
        return self.number


@pytest.fixture
def exchange(client: redis.Redis) -> Exchange:
    return Exchange(client)


def wait_until_stored(
    client: redis.Redis, number: int, name: str = "parquet"
) -> ArchiveState:
    """Wait until an archive says that it has stored a status."""

    def look() -> ArchiveState | None:
        state = state_of(client, name)
        return state if state is not None and state.status_number >= number else None

    state = eventually(look, 20)
    assert state is not None
    return state


def stored(folder: Path) -> list[dict[str, Any]]:
    """Return what the files hold of statuses, as DuckDB finds it."""
    files = f"{folder}/statuses/day=*/*/statuses.parquet"
    query = f"SELECT * FROM read_parquet('{files}') ORDER BY number"
    with duckdb.connect() as database:
        lines: list[dict[str, Any]] = database.sql(query).to_arrow_table().to_pylist()
    return lines


def numbers(settings: ArchiveSettings) -> list[int]:
    """Return the numbers that an archive says it has, each as often as it has it."""
    segments = open_counts(settings).segments("statuses")
    return sorted(n for s in segments for n in range(s.first, s.last + 1))


def test_a_status_is_stored_with_all_that_was_said(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """As decimals, with the trade before it; a word of a newer version is no fault."""
    trade = Trade(SAMSUNG, TAKEN_US, 7, "199500.50", "3")
    client.xadd(stream_key("tt", 0), {FIELD: trade.to_wire()})
    exchange = Exchange(client, 1)
    exchange.add(status="auction", expected_price="199400.10", expected_size="1200")
    exchange.add(isin=HYNIX, status="price_bands", lower="1", upper="2.5", venue="KRX")
    newer = {
        "isin": HYNIX,
        "status": "quote_only",
        "time": TAKEN_US,
        "mood": "calm",
        "until": 2**62,
    }
    epoch = client.hget(KEYS.meta, "epoch")
    fields = {"taken": TAKEN_US, "epoch": epoch, "status": json.dumps(newer)}
    # A payload that begins as a trade does, and is none.
    client.xadd(KEYS.stream, {**fields, "last": f'{{"isin":"{HYNIX}",'}, "3-0")
    with archiving(settings_of(redis_url, tmp_path)):
        state = wait_until_stored(client, 3)
    assert (state.statuses, state.status_gaps, state.missing_statuses) == (3, 0, 0)
    auction, bands, unknown = stored(tmp_path)
    assert auction["expected_price"] == Decimal("199400.1")
    assert '"expected_price":199400.10' in auction["json"]
    assert (auction["last_seq"], auction["last_price"]) == (7, Decimal("199500.5"))
    assert (bands["lower"], bands["upper"], bands["venue"]) == (
        1,
        Decimal("2.5"),
        "KRX",
    )
    assert (bands["last_price"], bands["until"], bands["reason"]) == (None, None, None)
    assert bands["taken"].timestamp() * 1e6 == TAKEN_US + 2_000_000
    assert (unknown["until"], unknown["last_seq"]) == (None, None)
    assert (unknown["status"], json.loads(unknown["json"])) == ("quote_only", newer)


def test_statuses_that_redis_lost_are_counted_and_named(
    client: redis.Redis, exchange: Exchange, redis_url: str, tmp_path: Path
) -> None:
    settings = settings_of(redis_url, tmp_path)
    exchange.add(2)
    with archiving(settings):
        wait_until_stored(client, 2)
    exchange.add(5)
    client.xtrim(KEYS.stream, minid="6-0", approximate=False)
    with archiving(settings):
        state = wait_until_stored(client, 7)
    assert (state.status_gaps, state.missing_statuses) == (1, 3)
    assert (state.gaps, state.bar_gaps) == (0, 0)
    [gap] = open_counts(settings).gaps("statuses")
    assert (gap.kind, gap.windows, gap.product) == ("trimmed", 3, "statuses")
    assert "3 statuses of epoch" in gap.text
    assert "status log had lost them" in gap.text
    assert state.last_gap == gap.text


@pytest.mark.parametrize("step", ["copied", "put", "committed"])
def test_a_database_has_every_status_once(
    step: str,
    client: redis.Redis,
    exchange: Exchange,
    server: PostgresServer,
    redis_url: str,
    tmp_path: Path,
) -> None:
    """Also one whose tables were made before statuses were stored; days go."""
    settings = settings_of(
        redis_url, tmp_path, postgres_url=server.url(), archive_days=1
    )
    publish(Publisher(client), 1)
    with archiving(settings):
        eventually(lambda: state_of(client, "postgres"), 20)
    server.ask("DROP TABLE tickthrottle_statuses")
    exchange.add(2, status="auction", expected_price="199400.10")
    crash(settings, step, is_killed=True)
    client.delete(LEASE.format("postgres"))
    exchange.add(isin=HYNIX)
    with archiving(settings):
        wait_until_stored(client, 3, "postgres")
    query = (
        "SELECT number, isin, expected_price::text, json->>'time' FROM {} ORDER BY 1"
    )
    rows = server.ask(query.format("tickthrottle_statuses"))
    assert rows == [
        (1, SAMSUNG, "199400.1", str(TAKEN_US + 1_000_000 - 7)),
        (2, SAMSUNG, "199400.1", str(TAKEN_US + 2_000_000 - 7)),
        (3, HYNIX, None, str(TAKEN_US + 3_000_000 - 7)),
    ]
    assert numbers(settings) == [1, 2, 3]
    exchange.taken_us += 2 * DAY_US
    exchange.add()
    with archiving(settings):
        wait_until_stored(client, 4, "postgres")
        eventually(lambda: numbers(settings) == [4], 20)
