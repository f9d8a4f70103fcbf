"""The issue table in Redis: pages, all or nothing, what is forgotten, what is lost."""

import threading
from dataclasses import replace

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.issue_table import redis_issue_store
from ingest.issue_table.issue_entry import BadIssues, IssueEntry
from ingest.issue_table.issue_list import IssueList
from ingest.issue_table.issue_store import PAGE, TableAway, TableLost, TableMoved
from ingest.issue_table.known_issues import Issues
from ingest.issue_table.redis_issue_store import RedisIssueStore
from ingest.issue_table.table_loader import (
    add_issues,
    changes_of,
    load_list,
    read_on,
    update_table,
)
from ingest.tradelog.redis_positions import entry_id
from tests.examples import many
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG, make_isins

pytestmark = pytest.mark.redis

CHIPS = IssueEntry(SAMSUNG, "005930", sector="chips", prev_close="1.10")


@pytest.fixture
def store(client: redis.Redis) -> RedisIssueStore:
    """The store of an empty server."""
    return RedisIssueStore(client, "tt")


def known(store: RedisIssueStore, before: Issues | None = None) -> Issues:
    """Read the table on from what was known before."""
    return read_on(store, before or Issues())[0]


def listed(*isins: str, name: str | None = None) -> IssueList:
    """Return a list of issues with one name."""
    return IssueList([IssueEntry(isin, name=name) for isin in isins])


def test_changes_are_read_in_pages(store: RedisIssueStore) -> None:
    """Each version is greater than the one before, and a page ends where it says."""
    isins = make_isins(PAGE + 500)
    version = store.append([(isin, IssueEntry(isin)) for isin in isins], 0)
    first = store.read(0)
    assert (len(first.changes), first.is_last, first.refused) == (PAGE, False, 0)
    second = store.read(first.version)
    assert (len(second.changes), second.is_last) == (500, True)
    assert second.version == version == second.changes[-1].version
    versions = [change.version for change in (*first.changes, *second.changes)]
    assert versions == sorted(set(versions))
    assert [c.isin for c in (*first.changes, *second.changes)] == isins
    end = store.read(version)
    assert (end.changes, end.version, end.is_last) == ([], version, True)


def test_a_change_comes_back_as_it_was(store: RedisIssueStore) -> None:
    """Every field, an end, and when it was."""
    store.append([(SAMSUNG, CHIPS), (HYNIX, None)], 0)
    first, second = store.read(0).changes
    assert (first.isin, first.entry) == (SAMSUNG, CHIPS)
    assert (second.isin, second.entry) == (HYNIX, None)
    assert first.changed_ms > 1_600_000_000_000
    assert store.append([], 7) == 7


def test_whoever_comes_second_compares_again(store: RedisIssueStore) -> None:
    """Nothing is written over a change that was not known."""
    version = store.append([(SAMSUNG, CHIPS)], 0)
    for stale in (0, version - 1, version + 1):
        with pytest.raises(TableMoved):
            store.append([(SAMSUNG, None)], stale)
    assert known(store).get(SAMSUNG) == CHIPS


def test_loaders_at_once_do_not_undo_each_other(
    store: RedisIssueStore, redis_url: str
) -> None:
    """Each adds issues of its own; in the end all are there."""
    isins = make_isins(60)

    def add(mine: list[str]) -> None:
        with redis.Redis.from_url(redis_url) as connection:
            own = RedisIssueStore(connection, "tt")
            for isin in mine:
                update_table(own, listed(isin))

    threads = [threading.Thread(target=add, args=(isins[n::3],)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [issue.isin for issue in known(store)] == isins


def test_what_others_wrote_is_left_out_and_counted(
    store: RedisIssueStore, client: redis.Redis
) -> None:
    """However wrong it is, and whoever wrote it."""
    store.append([(SAMSUNG, CHIPS)], 0)
    for fields in (
        {"x": "y"},
        {"isin": "KR7005930004", "issue": ""},
        {"isin": HYNIX, "issue": "{"},
        {"isin": HYNIX, "issue": b"\xff\xfe"},
        {"isin": HYNIX, "issue": "x" * 20_000},
    ):
        client.xadd("tt:issues", fields)
    table, refused = read_on(store, Issues())
    assert ([issue.isin for issue in table], refused) == ([SAMSUNG], 5)
    client.xadd("tt:issues", {"isin": HYNIX, "issue": f'{{"isin":"{HYNIX}"}}'})
    assert known(store, table).get(HYNIX) == IssueEntry(HYNIX)


def test_a_code_has_one_issue_whoever_says_it(store: RedisIssueStore) -> None:
    """A feed leaves it to the one that has it; two that both had it can change else."""
    other = IssueEntry(HYNIX, code=CHIPS.code, name="hynix")
    update_table(store, IssueList([CHIPS]))
    assert add_issues(store, [other], [replace(CHIPS, isin=NAVER)]).added == 2
    assert [issue.code for issue in known(store)] == [None, CHIPS.code, None]
    with pytest.raises(BadIssues, match=f"code '{CHIPS.code}': {HYNIX} and {SAMSUNG} "):
        update_table(store, IssueList([other]))
    store.append([(HYNIX, other)], known(store).version)
    assert update_table(store, IssueList([replace(other, name="SK")])).changed == 1


def test_a_table_that_is_gone_is_read_anew(
    store: RedisIssueStore, client: redis.Redis
) -> None:
    """Emptied, emptied and filled again, or taken back to an earlier state."""
    load_list(store, listed(SAMSUNG, HYNIX), is_forced=True)
    before = known(store)
    client.delete("tt:issues", "tt:issues:meta")
    with pytest.raises(TableLost):
        store.read(before.version)
    emptied = known(store, before)
    assert (len(emptied), emptied.version) == (0, 0)
    load_list(RedisIssueStore(client, "tt"), listed(NAVER), is_forced=True)
    after = known(store, emptied)
    assert [issue.isin for issue in after] == [NAVER]
    client.delete("tt:issues", "tt:issues:meta")
    load_list(RedisIssueStore(client, "tt"), listed(HYNIX), is_forced=True)
    assert [issue.isin for issue in known(store, after)] == [HYNIX]
    last = client.xrevrange("tt:issues", count=1)[0][0]
    table = known(store)
    client.xadd("tt:issues", {"isin": SAMSUNG, "issue": ""})
    later = known(store, table)
    client.xdel("tt:issues", entry_id(later.version))
    assert known(store, later).version == table.version
    assert client.xrevrange("tt:issues", count=1)[0][0] == last


def test_old_changes_are_forgotten(
    store: RedisIssueStore, monkeypatch: pytest.MonkeyPatch, client: redis.Redis
) -> None:
    """Those that newer ones follow, oldest first; the table of now stays what it is."""
    monkeypatch.setattr(redis_issue_store, "MOST_CHANGES", 100)
    isins = make_isins(30)
    versions = []
    for turn in range(10):
        versions.append(
            load_list(store, listed(*isins, name=f"name {turn}"), is_forced=True)
        )
        assert client.xlen("tt:issues") <= 100
    table = known(store)
    assert [issue.isin for issue in table] == isins
    assert {issue.name for issue in table} == {"name 9"}
    # From what is forgotten on, the table of each version can be told.
    forgotten = store.forgotten()
    assert 0 < forgotten < versions[-1].version
    for turn, loaded in enumerate(versions):
        if loaded.version > forgotten:
            page = store.read(0)
            of_then = (c for c in page.changes if c.version <= loaded.version)
            names = {issue.name for issue in Issues().after(of_then)}
            assert names == {f"name {turn}"}
    assert len(changes_of(store, isins[0])) < 10


def test_a_table_has_a_bound_in_bytes(
    store: RedisIssueStore, client: redis.Redis
) -> None:
    """Every gateway keeps it in memory."""
    text = "한" * 200
    fields = dict.fromkeys(("name", "english_name", "market", "sector"), text)
    entries = [IssueEntry(isin, **fields) for isin in make_isins(14_000)]
    with pytest.raises(BadIssues, match="the table would have more than 33554432 byt"):
        load_list(store, IssueList(entries), is_forced=True)
    assert client.dbsize() == 0
    with pytest.raises(BadIssues, match="more than 100000 issues"):
        load_list(store, listed(*make_isins(100_001)), is_forced=True)


def test_a_server_that_is_away_is_named(redis_url: str) -> None:
    """Reading and writing."""
    with redis.Redis.from_url("redis://127.0.0.1:1") as nowhere:
        store = RedisIssueStore(nowhere, "tt")
        with pytest.raises(TableAway, match=r"127\.0\.0\.1:1"):
            store.read(0)
        with pytest.raises(TableAway, match=r"127\.0\.0\.1:1"):
            store.append([(SAMSUNG, CHIPS)], 0)


_NAMES = st.none() | st.sampled_from(["a", "b"])
_LISTS = st.lists(
    st.builds(
        IssueEntry,
        isin=st.sampled_from(make_isins(5)),
        name=_NAMES,
        market=_NAMES,
        prev_close=st.none() | st.sampled_from(["1.0", "1.00"]),
    ),
    unique_by=lambda entry: entry.isin,
)


@settings(
    max_examples=many(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(_LISTS, max_size=6))
def test_the_table_at_each_version_is_the_list_of_then(
    client: redis.Redis, lists: list[list[IssueEntry]]
) -> None:
    """Whatever was loaded, in whatever order, and read in whatever steps."""
    client.flushall()
    store, follower = RedisIssueStore(client, "tt"), Issues()
    versions = []
    for number, wanted in enumerate(lists):
        loaded = load_list(store, IssueList(wanted), is_forced=True)
        versions.append((loaded.version, sorted(wanted, key=lambda i: i.isin)))
        if number % 2:
            follower = known(store, follower)
            assert list(follower) == versions[-1][1]
    changes = store.read(0).changes
    for version, wanted in versions:
        of_then = Issues().after(c for c in changes if c.version <= version)
        assert list(of_then) == wanted
