"""Bars for the tests of the archive: made, published for real, and read back."""

from pathlib import Path
from typing import Any

import duckdb
import redis

from archive.contract.archive_state import ArchiveState
from ingest.redis_keys import AnalyticsKeys
from tests.archive.rig import state_of
from tests.conftest import eventually
from tests.gateway.bar_publisher import FIRST_MS, MINUTE_MS, make_bar
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG
from tests.throttle.analytics.bars.bar_writer import BarWriter
from throttle.contract.bars import Bar, newer
from throttle.contract.products.bar_log import BarLogEntry

INSTRUMENTS = (SAMSUNG, HYNIX, NAVER)
BAR_LOG = AnalyticsKeys("tt").bar_log

Key = tuple[str, int, int]


def minute_ends(minute: int) -> int:
    return FIRST_MS + (minute + 1) * MINUTE_MS


def close_minutes(writer: BarWriter, first: int, minutes: int = 1) -> None:
    """Publish the bars of some minutes, each closed in a batch of its own."""
    for minute in range(first, first + minutes):
        bars = (make_bar(isin, minute) for isin in INSTRUMENTS)
        writer.publish(*bars, clock_ms=minute_ends(minute))


def amend(writer: BarWriter, minute: int, trades: int = 5) -> None:
    """Publish a bar of a closed minute again, with a late trade."""
    bar = make_bar(SAMSUNG, minute, trades=trades, revision=trades - 4, volume="50")
    writer.publish(bar, clock_ms=writer.clock_ms + 1)


def take_back(writer: BarWriter, minute: int) -> None:
    """Publish a bar of a closed minute that grew, then without most of its trades."""
    grown = make_bar(SAMSUNG, minute, trades=9, volume="90")
    for bar in (grown, make_bar(SAMSUNG, minute, trades=2, revision=1, volume="20")):
        writer.publish(bar, clock_ms=writer.clock_ms + 1)


def newest_number(client: redis.Redis) -> int:
    meta = AnalyticsKeys("tt").lease_keys.meta
    return int(client.hget(meta, "logged:bars") or 0)


def logged_bars(client: redis.Redis) -> dict[Key, Bar]:
    """Return the newest state of every bar in the bar log."""
    bars: dict[Key, Bar] = {}
    for _, fields in client.xrange(BAR_LOG):
        for bar in BarLogEntry.decode(fields).bars():
            key = bar.isin, bar.start_ms, bar.end_ms - bar.start_ms
            bars[key] = newer(bars.get(key), bar)
    return bars


def wait_until_bars_stored(
    client: redis.Redis, number: int, name: str = "parquet"
) -> ArchiveState:
    """Wait until an archive says that it has stored an entry of the bar log."""

    def look() -> ArchiveState | None:
        state = state_of(client, name)
        return state if state is not None and state.bar_number >= number else None

    state = eventually(look, 20)
    assert state is not None
    return state


def stored_lines(folder: Path) -> list[dict[str, Any]]:
    """Return what the files hold of bars, as DuckDB finds it."""
    if not any(folder.glob("bars/day=*/*/bars.parquet")):
        return []
    files = f"{folder}/bars/day=*/*/bars.parquet"
    query = f"SELECT * FROM read_parquet('{files}') ORDER BY number, isin"
    with duckdb.connect() as database:
        lines: list[dict[str, Any]] = database.sql(query).to_arrow_table().to_pylist()
    return lines
