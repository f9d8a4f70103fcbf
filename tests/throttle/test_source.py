"""The streaming source, against a real log; Spark itself is not needed for it."""

import time

import orjson
import pytest
import redis

from ingest.log import LogInfo
from ingest.redis_log import RedisLogWriter, open_log, position_of
from ingest.trade import Trade
from throttle.cut import Cut
from throttle.rows import decode_cuts
from throttle.source import SourceOptions, TradeLogReader

pytestmark = pytest.mark.redis
W = 2_000
LIMIT = None  # the reader bounds itself


def make_options(redis_url: str, info: LogInfo, **changes: object) -> SourceOptions:
    """Make options for a log."""
    fields = {
        "redis_url": redis_url,
        "namespace": "tt",
        "log_id": info.log_id,
        "partitions": info.partitions,
        "created_ms": info.created_ms,
        "window_ms": W,
        "max_windows": 3,
        "max_ahead_ms": 5_000,
        "retention_ms": 0,
        "initial_offset": "{}",
        "synthetic_windows": 0,
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


def server_ms(client: redis.Redis) -> int:
    """Return the server's clock."""
    seconds, micros = client.time()
    return seconds * 1000 + micros // 1000


def test_options_survive_spark(info: LogInfo) -> None:
    """Spark carries options as strings."""
    options = make_options("redis://h", info, initial_offset='{"end_ms":1}')
    assert SourceOptions.from_spark(options.to_spark()) == options


def test_the_start_is_the_one_the_job_stored(redis_url: str, info: LogInfo) -> None:
    """A batch that is run again before the first commit has the same start."""
    offset = Cut(4_000, (1, 2)).to_offset()
    options = make_options(
        redis_url, info, initial_offset=orjson.dumps(offset).decode()
    )
    assert TradeLogReader(options).initialOffset() == offset


def test_a_backlog_is_cut_at_the_window_ends_it_reaches(
    client: redis.Redis, reader: TradeLogReader
) -> None:
    """Each partition is cut at its last entry before the boundary."""
    start = server_ms(client) // W * W - 20 * W
    first = add(client, 0, start + 5)
    add(client, 1, start + 3 * W)  # the first entry of the fourth window
    end = reader.latestOffset(Cut(start, (0, 0)).to_offset(), LIMIT)
    assert end == Cut(start + 3 * W, (first, 0)).to_offset()
    end = reader.latestOffset(end, LIMIT)
    assert end["end_ms"] == start + 6 * W
    assert end["p1"] > 0


def test_the_current_window_is_waited_for_and_then_cut(
    client: redis.Redis, reader: TradeLogReader
) -> None:
    """No answer before the window's end by the server's clock, one right after it."""
    offset = start = Cut(server_ms(client) // W * W, (0, 0)).to_offset()
    while offset == start:
        offset = reader.latestOffset(start, LIMIT)
    assert offset == Cut(start["end_ms"] + W, (0, 0)).to_offset()
    late_ms = server_ms(client) - offset["end_ms"]
    assert 0 <= late_ms < 1_000


def test_asking_early_returns_soon_without_a_cut(
    client: redis.Redis, reader: TradeLogReader
) -> None:
    """Spark cannot be stopped while it waits for an answer."""
    start = Cut(server_ms(client) // W * W + 10 * W, (0, 0)).to_offset()
    began = time.monotonic()
    assert reader.latestOffset(start, LIMIT) == start
    assert time.monotonic() - began < 1


def test_a_batch_reads_what_is_between_its_cuts(
    client: redis.Redis, reader: TradeLogReader
) -> None:
    """After the start's positions, up to and with the end's, of every partition."""
    trade = Trade("KR7005930003", 1_773_964_801_566_788, 7, "1", "1").to_wire()
    base = server_ms(client) - 60_000
    skipped = add(client, 0, base, trade)
    wanted = [add(client, 0, base + 1, trade), add(client, 1, base + 2, b"bad")]
    add(client, 1, base + 3, trade)
    start, end = Cut(base, (skipped, 0)), Cut(base + W, tuple(wanted))
    [part] = reader.partitions(start.to_offset(), end.to_offset())
    [batch] = reader.read(part)
    cut, *rows = batch.to_pylist()
    assert decode_cuts(cut["payload"]) == (start, end)
    assert [(r["position"], r["reason"]) for r in rows] == [
        (wanted[0], None),
        (wanted[1], "not_json"),
    ]


def test_an_empty_batch_reads_only_its_cut(reader: TradeLogReader) -> None:
    """A quiet window is a batch, with the cut as its only row."""
    start, end = Cut(4_000, (3, 3)), Cut(6_000, (3, 3))
    [part] = reader.partitions(start.to_offset(), end.to_offset())
    assert [batch.num_rows for batch in reader.read(part)] == [1]


def test_committing_trims_what_was_published(
    client: redis.Redis, redis_url: str, info: LogInfo
) -> None:
    """The log is bounded by what the job has committed, less the retained time."""
    base = server_ms(client) - 600_000
    for ms in range(1_000):
        last = add(client, 0, base + ms)
    newer = add(client, 0, base + 100_000)
    keeping = TradeLogReader(make_options(redis_url, info, retention_ms=200_000))
    keeping.commit(Cut(base + 2_000, (last, 0)).to_offset())
    assert client.xlen("tt:log:0") == 1_001
    trimming = TradeLogReader(make_options(redis_url, info))
    trimming.commit(Cut(base + 2_000, (last, 0)).to_offset())
    # Trimming is by whole nodes of the stream: up to 100 entries stay.
    assert 1 <= client.xlen("tt:log:0") <= 101
    assert position_of(client.xrevrange("tt:log:0", count=1)[0][0]) == newer


def test_what_the_writer_appends_the_reader_reads(
    client: redis.Redis, redis_url: str, info: LogInfo
) -> None:
    """Every partition of a real log is read, each trade once."""
    trades = [
        Trade(isin, 1_773_964_801_566_788, seq, "1", "1")
        for seq in range(3)
        for isin in ("KR7005930003", "KR7000660001", "KR7035420009")
    ]
    writer = RedisLogWriter(client, "tt", info, 10_000)
    writer.append([(trade.isin, trade.to_wire()) for trade in trades])
    reader = TradeLogReader(make_options(redis_url, info))
    start = Cut(server_ms(client) // W * W - W, (0, 0)).to_offset()
    end = start
    while end["p0"] + end["p1"] == 0 or end == start:
        end = reader.latestOffset(end, LIMIT)
    [part] = reader.partitions(start, end)
    rows = [row for batch in reader.read(part) for row in batch.to_pylist()][1:]
    assert sorted((r["key"], r["seq"]) for r in rows) == sorted(
        (t.isin, t.seq) for t in trades
    )
