"""A window that its task publishes: as the driver does, or not at all."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
import redis

from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.instrument_list import InstrumentList
from ingest.instrument_table.redis_instrument_store import RedisInstrumentStore
from ingest.instrument_table.table_loader import load_list
from ingest.redis_keys import Keys
from ingest.trade import Trade
from ingest.tradelog.manual_clock import ManualClockLog
from ingest.tradelog.redis_log_reader import open_log
from tests.conftest import eventually
from tests.e2e.proxy import Proxy, When
from tests.published import read_snapshots
from tests.throttle.conflated import as_conflated
from tests.throttle.publishing import dump_all, ledger_of
from throttle.contract.cut import Cut
from throttle.lease.lease import Lease, LeaseGrant
from throttle.publish.publisher import Publisher, PublishOptions
from throttle.settings import ThrottleSettings
from throttle.spark.options import BatchRange, publishing_options
from throttle.spark.published_batch import PublishedBatch
from throttle.spark.reader import read_batches
from throttle.spark.task_publish import task_publisher
from throttle.window.batch import assemble
from throttle.window.row_schema import CUT_KEY, PUBLISHED_KEY

pytestmark = pytest.mark.redis
W = 2_000
BASE_MS = 1_773_964_800_000
KEYS = Keys("tt")
START = Cut(BASE_MS, (0, 0), (0, 0))
A, B = "KR7005930003", "KR7000660001"


class PublishingTask:
    """One window of a job with a lease; its task begins early in it."""

    def __init__(self, client: redis.Redis, url: str, **settings: Any) -> None:
        client.flushall()
        task_publisher.cache_clear()
        self.client = client
        info = open_log(client, "tt", 2)
        given = {"partitions": 2, "window_ms": W, **settings}
        job = ThrottleSettings(redis_url=url, **given)
        self.lease = Lease(client, KEYS, "throttle", 60_000)
        grant = self.lease.acquire("log", START)
        assert isinstance(grant, LeaseGrant)
        self.term = grant.term
        options = publishing_options(job, info, self.lease.owner)
        self.options = replace(options, manual_clock=True)
        self.log = ManualClockLog(client, "tt", info)
        self.part = BatchRange(START, BASE_MS + W, (0, 1), is_window=True)
        self.log.set_clock(BASE_MS)
        for number, isin in enumerate((A, B, A)):
            self.add(isin, number)

    def add(self, isin: str, number: int, **other: Any) -> None:
        """Append a trade, or an entry with other fields."""
        time_us = (BASE_MS + number) * 1_000
        fields = other or {"seq": number, "price": "10", "size": "1"}
        trade = Trade.from_fields({"isin": isin, "time": time_us, **fields})
        entry = {"trade": trade.to_wire()}
        self.client.xadd(f"tt:log:{isin == B:d}", entry, id=f"{BASE_MS + number}-*")

    def read(self, meanwhile: Callable[[], object] = lambda: None) -> pa.Table:
        """Return the task's rows; something happens while the window is open."""
        self.log.set_clock(BASE_MS)

        def pause(for_s: float) -> None:
            del for_s
            meanwhile()
            self.log.set_clock(BASE_MS + W)

        return pa.Table.from_batches(read_batches(self.options, self.part, pause))

    def publish_as_driver(self, rows: pa.Table) -> Any:
        """Publish a task's rows as the driver does."""
        options = PublishOptions("throttle", W, window_log=100)
        publisher = Publisher(self.client, KEYS, options, self.term)
        return publisher.publish(assemble(as_conflated(rows, W), W), 0)


@pytest.fixture
def task(client: redis.Redis, redis_url: str) -> PublishingTask:
    """A task of three trades of two instruments, without an instrument table."""
    return PublishingTask(client, redis_url)


def is_published(rows: pa.Table) -> bool:
    """Tell whether a task has published its rows; otherwise it handed them on."""
    keys = rows["key"].to_pylist()
    assert (keys == [PUBLISHED_KEY]) != (CUT_KEY in keys)
    return CUT_KEY not in keys


def told(rows: pa.Table) -> PublishedBatch:
    """Return what the driver is told of a window."""
    window = PublishedBatch.of_rows(as_conflated(rows, W))
    assert window is not None
    return window


def stored(client: redis.Redis) -> tuple[Any, ...]:
    """Return what a publish stores, but for when and in which epoch."""
    return (
        [(s.window, s.offset, s.rows, s.groups) for s in read_snapshots(client)],
        *(client.hgetall(key) for key in (KEYS.last, KEYS.days_so_far, KEYS.groups)),
        ledger_of(client, "throttle"),
        client.hget(KEYS.meta, "cut:throttle"),
    )


def test_a_task_publishes_the_window_that_it_has_read(task: PublishingTask) -> None:
    """The same is stored as where the driver publishes; it is told all but the rows."""
    rows = task.read()
    assert is_published(rows)
    window, by_task = told(rows), stored(task.client)
    assert (window.outcome.windows, window.outcome.rows) == (1, 2)
    assert window.outcome.off_by == 0
    assert window.batch.end.end_ms == BASE_MS + W
    assert [count.read for count in window.batch.counts] == [2, 1]
    assert [count.superseded for count in window.batch.counts] == [1, 0]
    assert window.batch.read_ms / 1_000 <= window.assembled_s <= window.published_s

    by_driver = PublishingTask(task.client, task.options.redis_url)
    by_driver.options = replace(by_driver.options, window_log=0)
    by_driver.publish_as_driver(by_driver.read())
    assert stored(task.client) == by_task


def test_a_task_that_is_run_again_changes_nothing(task: PublishingTask) -> None:
    """Its worker was killed before it had told of it: another one reads it again."""
    task.read()
    before = dump_all(task.client, "tt:clock")
    task_publisher.cache_clear()
    again = task.read()
    assert is_published(again)
    assert told(again).outcome.windows == 0
    assert dump_all(task.client, "tt:clock") == before


def test_the_table_may_change_between_two_attempts(task: PublishingTask) -> None:
    """A window ends where it does, whichever table it is joined with."""
    task.read()
    load(task.client)
    task_publisher.cache_clear()
    assert told(task.read()).outcome.windows == 0
    rows = replace(task.options, window_log=0)
    task.options = rows
    assert task.publish_as_driver(task.read()).windows == 0


def test_a_window_is_joined_with_the_table_that_is_there_when_it_opens(
    task: PublishingTask,
) -> None:
    """A change that comes later counts from the next window on."""
    version = load(task.client)
    window = told(task.read(lambda: load(task.client, "KOSDAQ")))
    assert window.batch.end.instruments == version
    groups = {group.key for group in read_snapshots(task.client)[-1].groups}
    assert "group:market:KOSPI" in groups
    assert "group:market:KOSDAQ" not in groups


def load(client: redis.Redis, market: str = "KOSPI") -> int:
    """Load a table of one instrument; return its version."""
    store = RedisInstrumentStore(client, "tt")
    wanted = InstrumentList([InstrumentEntry(A, market=market)])
    return load_list(store, wanted, is_forced=True).version


def by_another(task: PublishingTask) -> None:
    """Have another job take over."""
    task.client.delete(KEYS.lease("throttle"))
    Lease(task.client, KEYS, "throttle", 60_000).acquire("log", START)
    # Otherwise the batch is given up.
    task.client.delete(KEYS.lease("throttle"))


IN_THE_WAY: dict[str, Callable[[PublishingTask], object]] = {
    "another job has taken over": by_another,
    "the server was emptied": lambda task: task.client.delete(KEYS.meta),
    "a trade is taken back": lambda task: task.add(A, 5, cancels=0),
    "another process of the server": lambda task: task.client.hset(
        KEYS.meta, "server", "another"
    ),
}


@pytest.mark.parametrize("what", IN_THE_WAY)
def test_what_is_in_the_way_is_the_drivers_business(
    task: PublishingTask, what: str
) -> None:
    """It gets the rows: it alone says why nothing is published."""
    assert not is_published(task.read(lambda: IN_THE_WAY[what](task)))
    assert not read_snapshots(task.client)


NOT_ITS_OWN: dict[str, Callable[[PublishingTask], object]] = {
    "the lease has run out": lambda t: t.client.delete(KEYS.lease("throttle")),
    "part of a window": lambda t: setattr(t, "part", replace(t.part, is_window=False)),
    "the table of before is not known": lambda t: setattr(
        t, "part", replace(t.part, start=replace(START, instruments=1 << 60))
    ),
}


@pytest.mark.parametrize("what", NOT_ITS_OWN)
def test_a_task_publishes_only_what_it_may(task: PublishingTask, what: str) -> None:
    """Otherwise the driver does."""
    NOT_ITS_OWN[what](task)
    assert not is_published(task.read())
    assert not read_snapshots(task.client)


@pytest.fixture
def proxy(client: redis.Redis) -> Iterator[Proxy]:
    """A way to the server that may be cut at a byte."""
    proxy = Proxy(client.connection_pool.connection_kwargs["port"])
    yield proxy
    proxy.close()


@pytest.mark.parametrize(
    ("when", "windows"), [("before", 1), ("half", 1), ("replied", 0)]
)
def test_a_line_that_breaks_in_a_publish_loses_and_doubles_nothing(
    client: redis.Redis, proxy: Proxy, when: When, windows: int
) -> None:
    """The client asks once more itself; if it cannot, the driver does."""
    task = PublishingTask(client, f"redis://127.0.0.1:{proxy.port}/0")

    def cut() -> None:
        # For good: nobody answers any more.
        for pattern in (rb"\nEVALSHA\r\n", rb"\nEVALSHA\r\n", rb"\nEVALSHA\r\n"):
            proxy.act_on(pattern, "before")

    done = proxy.act_on(rb"\nEVALSHA\r\n", when, cut)
    rows = task.read()
    assert done.is_set()
    assert not is_published(rows)
    proxy.disarm()
    assert len(read_snapshots(client)) == 1 - windows
    assert task.publish_as_driver(rows).windows == windows
    eventually(lambda: len(read_snapshots(client)) == 1, 5)
    assert ledger_of(client, "throttle").off_by == 0


def test_a_server_that_refuses_while_the_window_is_open_leaves_it_to_the_driver(
    task: PublishingTask,
) -> None:
    """No task fails: Spark would say it in pages, the driver in a sentence."""

    def spoil() -> None:
        task.client.delete(KEYS.days_so_far)
        task.client.set(KEYS.days_so_far, "no hash")

    rows = task.read(spoil)
    assert not is_published(rows)
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        task.publish_as_driver(rows)
    assert not is_published(task.read())
