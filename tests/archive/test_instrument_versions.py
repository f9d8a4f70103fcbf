"""The instrument table as it was: at a version, at a time, whatever happened since."""

import pytest
import redis

from archive.instrument_versions import KEPT, InstrumentVersions
from ingest.instrument_table.instrument_list import parse_list
from ingest.instrument_table.redis_instrument_store import RedisInstrumentStore
from ingest.instrument_table.table_loader import load_list
from tests.gateway.samples import HYNIX, SAMSUNG

pytestmark = pytest.mark.redis


@pytest.fixture
def store(client: redis.Redis) -> RedisInstrumentStore:
    return RedisInstrumentStore(client, "tt")


def name_it(store: RedisInstrumentStore, name: str, isin: str = SAMSUNG) -> int:
    """Have the table say that there is one instrument; return its version."""
    wanted = parse_list(["isin,name\n", f"{isin},{name}\n"])
    return load_list(store, wanted, is_forced=True).version


def test_every_version_is_told_exactly_in_any_order(
    store: RedisInstrumentStore,
) -> None:
    """More of them than are kept, back and forth, as jobs of one stream may ask."""
    names = [f"name {n}" for n in range(2 * KEPT)]
    versions = {name: name_it(store, name) for name in names}
    table = InstrumentVersions(store)
    for name in (*names, *reversed(names), names[0], names[-1]):
        entry = table.at(versions[name]).get(SAMSUNG)
        assert entry is not None
        assert entry.name == name
        assert table.at(versions[name]).version == versions[name]
    assert len(table.at(0)) == 0


def test_an_instrument_that_left_is_in_the_table_of_then(
    store: RedisInstrumentStore,
) -> None:
    before = name_it(store, "before")
    after = name_it(store, "other", HYNIX)
    table = InstrumentVersions(store)
    assert [entry.isin for entry in table.at(before)] == [SAMSUNG]
    assert [entry.isin for entry in table.at(after)] == [HYNIX]


def test_a_moment_has_the_newest_version_until_then(
    store: RedisInstrumentStore,
) -> None:
    """A change of the same millisecond counts; what came later is learned of."""
    table = InstrumentVersions(store)
    table.follow()
    assert table.version_at(2**53) == 0
    first = name_it(store, "first")
    table.follow()
    at_ms = first >> 21
    assert [table.version_at(at_ms + n) for n in (-1, 0, 1)] == [0, first, first]
    second = name_it(store, "second")
    assert table.version_at(2**53) == first
    table.follow()
    assert table.version_at(2**53) == second


def test_a_table_that_was_emptied_is_read_anew(
    store: RedisInstrumentStore, client: redis.Redis
) -> None:
    """The old one's versions mean nothing in it."""
    # A store remembers which table it reads.
    table = InstrumentVersions(RedisInstrumentStore(client, "tt"))
    name_it(store, "old")
    table.follow()
    table.at(table.version_at(2**53))
    client.delete("tt:instruments", "tt:instruments:meta")
    version = name_it(store, "new", HYNIX)
    table.follow()
    assert table.version_at(2**53) == version
    assert [entry.isin for entry in table.at(version)] == [HYNIX]
