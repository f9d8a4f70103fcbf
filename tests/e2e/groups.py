"""An issue table that changes while jobs are killed, and groups checked against it."""

import redis

from ingest.issue_table.issue_entry import IssueEntry
from ingest.issue_table.issue_list import IssueList
from ingest.issue_table.redis_issue_store import RedisIssueStore
from ingest.issue_table.table_loader import load_list
from ingest.redis_keys import Keys
from tests.e2e.books import JOB
from throttle.audit.issue_tables import IssueTables
from throttle.audit.log_entries import find_log
from throttle.audit.published import PublishedHistory
from throttle.audit.recompute import WindowRule
from throttle.audit.redis_entries import RedisLogEntries
from throttle.audit.verify import Verification

KEYS = Keys("tt")


def change_table(client: redis.Redis, number: int) -> None:
    """Name all issues but every fifth that have traded, in other sectors each time."""
    isins = sorted(isin.decode() for isin in client.hkeys(KEYS.last))
    entries = [
        IssueEntry(
            isin,
            market=("KOSPI", "KOSDAQ", None)[place % 3],
            sector=f"Sector {(place + number) % 7}",
            prev_close=None if place % 4 == 0 else str(1_000 + number + place),
        )
        for place, isin in enumerate(isins)
        if place % 5
    ]
    store = RedisIssueStore(client, KEYS.namespace)
    load_list(store, IssueList(entries), is_forced=True)


def check_groups(client: redis.Redis, window_ms: int) -> int | None:
    """Compare every group with the trades and the table of its time; return how many.

    None if the trade log is not in this server. Fails at any difference.
    """
    info = find_log(client, KEYS.namespace)
    if info is None:
        return None
    history = PublishedHistory(client, KEYS.namespace)
    log = RedisLogEntries(client, KEYS.namespace, info)
    tables = IssueTables(RedisIssueStore(client, KEYS.namespace))
    rule = WindowRule(window_ms, 5_000)
    # Windows that are published meanwhile are in no batch that was read, and left out.
    verification = Verification(history.batches(JOB), log, rule, tables=tables)
    before = history.versions_before()
    report = verification.run(history.windows(), before, history.oldest_offset)
    assert report.problems == [], report.problems[:3]
    assert not report.counts
    assert not report.gone_tables
    return report.groups
