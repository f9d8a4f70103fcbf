"""An instrument table that changes while jobs are killed; groups checked against it."""

import redis

from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.instrument_list import InstrumentList
from ingest.instrument_table.redis_instrument_store import RedisInstrumentStore
from ingest.instrument_table.table_loader import load_list
from ingest.redis_keys import Keys
from tests.e2e.books import JOB
from throttle.audit.log_entries import RedisLogEntries, find_log
from throttle.audit.published import InstrumentTables, PublishedHistory
from throttle.audit.recompute import WindowRule
from throttle.audit.verify import Verification

KEYS = Keys("tt")


def change_table(client: redis.Redis, number: int) -> None:
    """Name all that have traded but every fifth, in other sectors each time."""
    isins = sorted(isin.decode() for isin in client.hkeys(KEYS.last))
    entries = [
        InstrumentEntry(
            isin,
            market=("KOSPI", "KOSDAQ", None)[place % 3],
            sector=f"Sector {(place + number) % 7}",
            prev_close=None if place % 4 == 0 else str(1_000 + number + place),
        )
        for place, isin in enumerate(isins)
        if place % 5
    ]
    store = RedisInstrumentStore(client, KEYS.namespace)
    load_list(store, InstrumentList(entries), is_forced=True)


def check_groups(client: redis.Redis, window_ms: int) -> int | None:
    """Compare every group with the trades and the table of its time; return how many.

    None if the trade log is not in this server. Fails at any difference.
    """
    info = find_log(client, KEYS.namespace)
    if info is None:
        return None
    history = PublishedHistory(client, KEYS.namespace)
    log = RedisLogEntries(client, KEYS.namespace, info)
    tables = InstrumentTables(RedisInstrumentStore(client, KEYS.namespace))
    rule = WindowRule(window_ms, 5_000)
    # Windows that are published meanwhile are in no batch that was read, and left out.
    verification = Verification(history.batches(JOB), log, rule, table_at=tables.at)
    before = history.versions_before()
    report = verification.run(history.windows(), before, history.oldest_offset)
    assert report.problems == [], report.problems[:3]
    assert not report.counts
    assert not report.gone_tables
    return report.groups
