"""The instrument table in Redis: pages, all or nothing, what is forgotten or lost."""

import threading
from dataclasses import replace

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.instrument_table import redis_instrument_store
from ingest.instrument_table.instrument_entry import BadInstruments, InstrumentEntry
from ingest.instrument_table.instrument_list import InstrumentList
from ingest.instrument_table.instrument_store import (
    PAGE,
    TableAway,
    TableLost,
    TableMoved,
)
from ingest.instrument_table.known_instruments import Instruments
from ingest.instrument_table.redis_instrument_store import RedisInstrumentStore
from ingest.instrument_table.table_loader import (
    add_instruments,
    changes_of,
    load_list,
    read_on,
    update_table,
)
from tests.examples import many
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG, make_isins
from tickthrottle_client.log_v1 import entry_id

pytestmark = pytest.mark.redis

CHIPS = InstrumentEntry(SAMSUNG, "005930", sector="chips", prev_close="1.10")


@pytest.fixture
def store(client: redis.Redis) -> RedisInstrumentStore:
    """The store of an empty server."""
    return RedisInstrumentStore(client, "tt")


def known(
    store: RedisInstrumentStore, before: Instruments | None = None
) -> Instruments:
    """Read the table on from what was known before."""
    return read_on(store, before or Instruments())[0]


def listed(*isins: str, name: str | None = None) -> InstrumentList:
    """Return a list of instruments with one name."""
    return InstrumentList([InstrumentEntry(isin, name=name) for isin in isins])


def test_changes_are_read_in_pages(store: RedisInstrumentStore) -> None:
    """Each version is greater than the one before, and a page ends where it says."""
    isins = make_isins(PAGE + 500)
    version = store.append([(isin, InstrumentEntry(isin)) for isin in isins], 0)
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


def test_a_change_comes_back_as_it_was(store: RedisInstrumentStore) -> None:
    """Every field, an end, and when it was."""
    store.append([(SAMSUNG, CHIPS), (HYNIX, None)], 0)
    first, second = store.read(0).changes
    assert (first.isin, first.entry) == (SAMSUNG, CHIPS)
    assert (second.isin, second.entry) == (HYNIX, None)
    assert first.changed_ms > 1_600_000_000_000
    assert store.append([], 7) == 7


def test_whoever_comes_second_compares_again(store: RedisInstrumentStore) -> None:
    """Nothing is written over a change that was not known."""
    version = store.append([(SAMSUNG, CHIPS)], 0)
    for stale in (0, version - 1, version + 1):
        with pytest.raises(TableMoved):
            store.append([(SAMSUNG, None)], stale)
    assert known(store).get(SAMSUNG) == CHIPS


def test_loaders_at_once_do_not_undo_each_other(
    store: RedisInstrumentStore, redis_url: str
) -> None:
    """Each adds instruments of its own; in the end all are there."""
    isins = make_isins(60)

    def add(mine: list[str]) -> None:
        with redis.Redis.from_url(redis_url) as connection:
            own = RedisInstrumentStore(connection, "tt")
            for isin in mine:
                update_table(own, listed(isin))

    threads = [threading.Thread(target=add, args=(isins[n::3],)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [instrument.isin for instrument in known(store)] == isins


def test_what_others_wrote_is_left_out_and_counted(
    store: RedisInstrumentStore, client: redis.Redis
) -> None:
    """However wrong it is, and whoever wrote it."""
    store.append([(SAMSUNG, CHIPS)], 0)
    for fields in (
        {"x": "y"},
        {"isin": "KR7005930004", "instrument": ""},
        {"isin": HYNIX, "instrument": "{"},
        {"isin": HYNIX, "instrument": b"\xff\xfe"},
        {"isin": HYNIX, "instrument": "x" * 20_000},
    ):
        client.xadd("tt:instruments", fields)
    table, refused = read_on(store, Instruments())
    assert ([instrument.isin for instrument in table], refused) == ([SAMSUNG], 5)
    client.xadd(
        "tt:instruments", {"isin": HYNIX, "instrument": f'{{"isin":"{HYNIX}"}}'}
    )
    assert known(store, table).get(HYNIX) == InstrumentEntry(HYNIX)


def test_a_code_has_one_instrument_whoever_says_it(store: RedisInstrumentStore) -> None:
    """A feed leaves it to the one that has it; two that both had it can change else."""
    other = InstrumentEntry(HYNIX, code=CHIPS.code, name="hynix")
    update_table(store, InstrumentList([CHIPS]))
    assert add_instruments(store, [other], [replace(CHIPS, isin=NAVER)]).added == 2
    assert [instrument.code for instrument in known(store)] == [None, CHIPS.code, None]
    with pytest.raises(
        BadInstruments, match=f"code '{CHIPS.code}': {HYNIX} and {SAMSUNG} "
    ):
        update_table(store, InstrumentList([other]))
    store.append([(HYNIX, other)], known(store).version)
    assert update_table(store, InstrumentList([replace(other, name="SK")])).changed == 1


def test_a_table_that_is_gone_is_read_anew(
    store: RedisInstrumentStore, client: redis.Redis
) -> None:
    """Emptied, emptied and filled again, or taken back to an earlier state."""
    load_list(store, listed(SAMSUNG, HYNIX), is_forced=True)
    before = known(store)
    client.delete("tt:instruments", "tt:instruments:meta")
    with pytest.raises(TableLost):
        store.read(before.version)
    emptied = known(store, before)
    assert (len(emptied), emptied.version) == (0, 0)
    load_list(RedisInstrumentStore(client, "tt"), listed(NAVER), is_forced=True)
    after = known(store, emptied)
    assert [instrument.isin for instrument in after] == [NAVER]
    client.delete("tt:instruments", "tt:instruments:meta")
    load_list(RedisInstrumentStore(client, "tt"), listed(HYNIX), is_forced=True)
    assert [instrument.isin for instrument in known(store, after)] == [HYNIX]
    last = client.xrevrange("tt:instruments", count=1)[0][0]
    table = known(store)
    client.xadd("tt:instruments", {"isin": SAMSUNG, "instrument": ""})
    later = known(store, table)
    client.xdel("tt:instruments", entry_id(later.version))
    assert known(store, later).version == table.version
    assert client.xrevrange("tt:instruments", count=1)[0][0] == last


def test_old_changes_are_forgotten(
    store: RedisInstrumentStore, monkeypatch: pytest.MonkeyPatch, client: redis.Redis
) -> None:
    """Those that newer ones follow, oldest first; the table of now stays what it is."""
    monkeypatch.setattr(redis_instrument_store, "MOST_CHANGES", 100)
    isins = make_isins(30)
    versions = []
    for turn in range(10):
        versions.append(
            load_list(store, listed(*isins, name=f"name {turn}"), is_forced=True)
        )
        assert client.xlen("tt:instruments") <= 100
    table = known(store)
    assert [instrument.isin for instrument in table] == isins
    assert {instrument.name for instrument in table} == {"name 9"}
    # From what is forgotten on, the table of each version can be told.
    forgotten = store.forgotten()
    assert 0 < forgotten < versions[-1].version
    for turn, loaded in enumerate(versions):
        if loaded.version > forgotten:
            page = store.read(0)
            of_then = (c for c in page.changes if c.version <= loaded.version)
            names = {instrument.name for instrument in Instruments().after(of_then)}
            assert names == {f"name {turn}"}
    assert len(changes_of(store, isins[0])) < 10


def test_a_table_has_a_bound_in_bytes(
    store: RedisInstrumentStore, client: redis.Redis
) -> None:
    """Every gateway keeps it in memory."""
    text = "한" * 200
    fields = dict.fromkeys(("name", "english_name", "market", "sector"), text)
    entries = [InstrumentEntry(isin, **fields) for isin in make_isins(14_000)]
    with pytest.raises(
        BadInstruments, match="the table would have more than 33554432 byt"
    ):
        load_list(store, InstrumentList(entries), is_forced=True)
    assert client.dbsize() == 0
    with pytest.raises(BadInstruments, match="more than 100000 instruments"):
        load_list(store, listed(*make_isins(100_001)), is_forced=True)


def test_a_server_that_is_away_is_named(redis_url: str) -> None:
    """Reading and writing."""
    with redis.Redis.from_url("redis://127.0.0.1:1") as nowhere:
        store = RedisInstrumentStore(nowhere, "tt")
        with pytest.raises(TableAway, match=r"127\.0\.0\.1:1"):
            store.read(0)
        with pytest.raises(TableAway, match=r"127\.0\.0\.1:1"):
            store.append([(SAMSUNG, CHIPS)], 0)


_NAMES = st.none() | st.sampled_from(["a", "b"])
_LISTS = st.lists(
    st.builds(
        InstrumentEntry,
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
    client: redis.Redis, lists: list[list[InstrumentEntry]]
) -> None:
    """Whatever was loaded, in whatever order, and read in whatever steps."""
    client.flushall()
    store, follower = RedisInstrumentStore(client, "tt"), Instruments()
    versions = []
    for number, wanted in enumerate(lists):
        loaded = load_list(store, InstrumentList(wanted), is_forced=True)
        versions.append((loaded.version, sorted(wanted, key=lambda i: i.isin)))
        if number % 2:
            follower = known(store, follower)
            assert list(follower) == versions[-1][1]
    changes = store.read(0).changes
    for version, wanted in versions:
        of_then = Instruments().after(c for c in changes if c.version <= version)
        assert list(of_then) == wanted
