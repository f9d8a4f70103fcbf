"""The trade log on a real server."""

import pyarrow as pa
import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from ingest.tradelog import redis_log_reader
from ingest.tradelog.contract import Head, LogUnusable, partition_of
from ingest.tradelog.redis_log_reader import RedisLogReader, open_log
from tests.ingest.tradelog.redis_streams import (
    ISIN,
    NAMESPACE,
    add_at,
    everything,
    make_log,
    payloads_of,
    read,
)
from tickthrottle_client.log_v1 import (
    FIELD,
    append_time_ms,
    entry_id,
    position_of,
    stream_key,
)


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_positions_order_as_stream_ids_do(one: int, other: int) -> None:
    """A position is a stream id as a number: round trip and order hold."""
    assert position_of(entry_id(one).encode()) == one
    pairs = [tuple(map(int, entry_id(p).split("-"))) for p in (one, other)]
    assert (pairs[0] < pairs[1]) == (one < other)
    assert append_time_ms(one) == pairs[0][0]


def test_millisecond_with_too_many_entries_is_refused() -> None:
    """An entry number over 21 bits cannot be a position."""
    assert position_of(b"5-2097151") == (5 << 21) + 2_097_151
    with pytest.raises(LogUnusable, match="more than 2\\^21"):
        position_of(b"5-2097152")


@pytest.mark.redis
def test_opening_twice_keeps_the_identity(client: redis.Redis) -> None:
    """The first to come decides identity and partitions; the next one gets them."""
    first = open_log(client, NAMESPACE, 3)
    assert open_log(client, NAMESPACE, 8) == first
    assert first.partitions == 3
    assert first.created_ms > 1_700_000_000_000
    client.hset(f"{NAMESPACE}:log", "form", 2)
    with pytest.raises(LogUnusable, match=r"has the form '2', this version has 1: see"):
        open_log(client, NAMESPACE, 3)


@pytest.mark.redis
def test_refilled_log_has_another_identity(client: redis.Redis) -> None:
    """A log that was emptied is not taken for the one before."""
    first = open_log(client, NAMESPACE, 3)
    client.flushall()
    assert open_log(client, NAMESPACE, 3).log_id != first.log_id


@pytest.mark.redis
def test_a_reader_of_some_partitions_sees_those(client: redis.Redis) -> None:
    """The others may be of any state: they are somebody else's."""
    info = open_log(client, NAMESPACE, 4)
    client.set(stream_key(NAMESPACE, 0), "in the way")
    client.xadd(stream_key(NAMESPACE, 2), {FIELD: b"x"}, id="500-0")
    for ms in (700, 900):
        client.xadd(stream_key(NAMESPACE, 3), {FIELD: b"y"}, id=f"{ms}-0")
    reader = RedisLogReader(client, NAMESPACE, info, (1, 3))
    assert reader.head() == Head(700, (1, 3), (0, 0), (0, 0))
    tail = reader.tail(800)
    assert (tail.partitions, tail.counts) == ((1, 3), (0, 1))
    assert tail.positions == (0, 700 << 21)
    assert payloads_of(read(reader, 0, tail.positions[1], 3)) == [b"y"]


@pytest.mark.redis
def test_ranges_of_several_partitions_are_read_each_for_itself(
    client: redis.Redis,
) -> None:
    """Every entry once, under its partition, up to the end of its range."""
    writer, reader = make_log(client, partitions=3)
    entries = [(f"KR7{n:05}0003", b"%d" % n) for n in range(200)]
    writer.append(entries)
    tail = reader.tail(1 << 41)
    ranges = {p: (-1, tail.positions[p]) for p in (2, 0)}
    found: dict[int, list[bytes]] = {}
    for p, chunk in reader.read(ranges):
        assert chunk.upto <= ranges[p][1]
        found.setdefault(p, []).extend(chunk.payloads.to_pylist())
    assert found == {
        p: [payload for isin, payload in entries if partition_of(isin, 3) == p]
        for p in (0, 2)
    }


@pytest.mark.redis
def test_long_read_comes_in_chunks_without_gap_or_overlap(client: redis.Redis) -> None:
    """More entries than one chunk holds are read in order, each once."""
    writer, reader = make_log(client)
    payloads = [b"%d" % number for number in range(20_001)]
    writer.append([(ISIN, payload) for payload in payloads])
    end = reader.tail(1 << 41).positions[0]
    chunks = read(reader, 0, end)
    sizes = [len(chunk) for chunk in chunks]
    assert sizes[:3] == [250, 1_000, 2_000]
    assert max(sizes) == 2_000
    assert payloads_of(chunks) == payloads
    positions = [p for chunk in chunks for p in chunk.positions.to_pylist()]
    assert positions == sorted(set(positions))
    last = [chunk.positions[-1].as_py() for chunk in chunks]
    assert [chunk.upto for chunk in chunks[:-1]] == last[:-1]
    assert chunks[-1].upto == end


@pytest.mark.redis
@pytest.mark.parametrize("name", [FIELD, b"renamed"])
def test_a_piece_is_bounded_by_bytes(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch, name: bytes
) -> None:
    """However large entries are, and whatever their fields are called."""
    monkeypatch.setattr(redis_log_reader, "PIECE_BYTES", 100_000)
    _, reader = make_log(client)
    for n in range(400):
        size = 10 if n < 300 else 20_000
        client.xadd(stream_key(NAMESPACE, 0), {name: b"x" * size}, id=f"{1_000 + n}-0")
    end = reader.tail(1 << 41).positions[0]
    for _ in range(2):
        chunks = read(reader, 0, end)
        assert sum(map(len, chunks)) == 400
        assert max(map(len, chunks)) <= 5


@pytest.mark.redis
def test_counting_what_is_behind_a_cut_is_bounded_by_bytes(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few large entries are fetched to be counted; a later cut knows its count."""
    monkeypatch.setattr(redis_log_reader, "PIECE_BYTES", 100_000)
    _, reader = make_log(client)
    for n in range(50):
        entry = {FIELD: b"x" * 20_000}
        client.xadd(stream_key(NAMESPACE, 0), entry, id=f"{1_000 + n}-0")
    assert reader.tail(1_010).counts == (None,)
    assert reader.tail(1_048).counts == (48,)


@pytest.mark.parametrize(
    ("count", "entries", "size", "piece"),
    [
        (250, 250, 250 * 200, 1_000),
        (1_000, 1_000, 200_000, 2_000),
        (2_000, 2_000, 2_000 * 2**20, 8),
        (8, 8, 8 * 2**30, 1),
        (1, 1, 200, 4),
        (250, 0, 0, 250),
        (2_000, 100, 0, 2_000),
    ],
)
def test_a_piece_follows_the_size_of_the_entries_before(
    count: int, entries: int, size: int, piece: int
) -> None:
    """It shrinks at once, and grows at most fourfold."""
    assert redis_log_reader.next_piece(count, entries, size, 2_000) == piece


@pytest.mark.redis
def test_read_is_after_one_position_and_upto_another(client: redis.Redis) -> None:
    """The first bound is excluded, the second included."""
    _, reader = make_log(client)
    positions = [add_at(client, 1_000 + n, b"%d" % n) for n in range(5)]
    (chunk,) = read(reader, positions[1], positions[3])
    assert chunk.payloads.to_pylist() == [b"2", b"3"]
    assert chunk.append_ms.to_pylist() == [1_002, 1_003]
    assert chunk.positions.to_pylist() == positions[2:4]
    assert (chunk.upto, chunk.blanks) == (positions[3], 0)
    assert read(reader, positions[3], positions[3]) == []
    assert read(reader, positions[4], positions[4] + 100) == []


@pytest.mark.redis
def test_a_chunk_is_columns_of_the_types_it_states(client: redis.Redis) -> None:
    """Whatever the entries are, Spark gets the same types."""
    _, reader = make_log(client)
    position = add_at(client, 7, b"", "3")
    (chunk,) = read(reader, 0, position)
    types = [chunk.positions.type, chunk.append_ms.type, chunk.payloads.type]
    assert types == [pa.int64(), pa.int64(), pa.binary()]
    assert chunk.positions.to_pylist() == [position] == [(7 << 21) + 3]


@pytest.mark.redis
def test_reading_a_millisecond_with_too_many_entries_is_refused(
    client: redis.Redis,
) -> None:
    """A position that would be another entry's is never handed out."""
    _, reader = make_log(client)
    add_at(client, 5, b"last that fits", "2097151")
    client.xadd(stream_key(NAMESPACE, 0), {FIELD: b"one more"}, id="5-2097152")
    end = add_at(client, 6, b"x", "0")
    with pytest.raises(LogUnusable, match=r"5-2097151.*more than 2\^21"):
        read(reader, 0, end)
    with pytest.raises(LogUnusable, match=r"more than 2\^21"):
        reader.tail(6)


@pytest.mark.redis
def test_tail_is_the_last_position_before_the_boundary(client: redis.Redis) -> None:
    """An entry at the boundary belongs to the next window."""
    _, reader = make_log(client, partitions=2)
    add_at(client, 1_998, b"a")
    last = add_at(client, 1_999, b"b", "7")
    at = add_at(client, 2_000, b"c", "0")
    assert reader.tail(2_000).positions == (last, 0)
    assert reader.tail(2_001).positions == (at, 0)
    assert reader.tail(1_000).positions == (0, 0)


@pytest.mark.redis
def test_append_after_a_clock_reading_is_not_before_it(client: redis.Redis) -> None:
    """An entry's append time is at or past any clock that was read before it."""
    writer, reader = make_log(client)
    clock = reader.tail(1).clock_ms
    writer.append([(ISIN, b"x")])
    oldest_ms = reader.head().oldest_ms
    assert oldest_ms is not None
    assert oldest_ms >= clock


@pytest.mark.redis
def test_the_log_counts_up_to_a_boundary(client: redis.Redis) -> None:
    """Its own count is what the ledger compares with what was read."""
    _, reader = make_log(client, partitions=2)
    for ms in (1_998, 1_999, 1_999, 2_000):
        add_at(client, ms, b"x")
    assert reader.tail(1_000).counts == (0, 0)
    assert reader.tail(2_000).counts == (3, 0)
    assert reader.tail(2_001).counts == (4, 0)


@pytest.mark.redis
def test_what_was_dropped_still_counts(client: redis.Redis) -> None:
    """A count begins with the very first entry, however short the log is kept."""
    _, reader = make_log(client)
    positions = [add_at(client, 1_000 + n, b"%d" % n) for n in range(1_000)]
    reader.trim({0: positions[-1]}, before_ms=1_700)
    left = client.xlen(stream_key(NAMESPACE, 0))
    assert left < 500
    assert reader.head().counts == (1_000 - left,)
    assert reader.tail(2_000).counts == (1_000,)
    assert reader.tail(1_900).counts == (900,)


@pytest.mark.redis
def test_a_count_far_behind_the_end_is_unknown(client: redis.Redis) -> None:
    """Counting thousands of entries would hold up the cut; the next one will do."""
    _, reader = make_log(client)
    with client.pipeline(transaction=False) as pipe:
        for n in range(5_000):
            pipe.xadd(stream_key(NAMESPACE, 0), {FIELD: b"x"}, id=f"{2_000 + n}-0")
        pipe.execute()
    assert reader.tail(2_000).counts == (None,)
    assert reader.tail(2_001).counts == (1,)


@pytest.mark.redis
def test_a_key_in_the_way_of_a_partition_is_an_error(client: redis.Redis) -> None:
    """A log that cannot be read is not an empty one."""
    _, reader = make_log(client)
    client.set(stream_key(NAMESPACE, 0), "no stream")
    for ask in (reader.head, lambda: reader.tail(2_000)):
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            ask()


@pytest.mark.redis
def test_trim_keeps_what_is_not_committed(client: redis.Redis) -> None:
    """Trimming drops whole old nodes, never an entry past the position or beside it."""
    _, reader = make_log(client)
    positions = [add_at(client, 1_000, b"%d" % n) for n in range(1_000)]
    reader.trim({0: positions[499]}, before_ms=9_999)
    kept = everything(reader)
    assert kept[-500:] == [b"%d" % n for n in range(500, 1_000)]
    assert len(kept) < 700


@pytest.mark.redis
def test_trim_drops_however_much_there_is(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server left to itself drops 10,000 entries each time: fewer than a flood."""
    monkeypatch.setattr(redis_log_reader, "_TRIMMED_AT_ONCE", 3_000)
    _, reader = make_log(client, partitions=2)
    for partition, entries in ((0, 13_000), (1, 2_000)):
        key = stream_key(NAMESPACE, partition)
        with client.pipeline(transaction=False) as pipe:
            for n in range(entries):
                pipe.xadd(key, {FIELD: b""}, id=f"1000-{n}")
            pipe.execute()
    end = position_of(b"1001-0")
    reader.trim({0: end, 1: end}, before_ms=9_999)
    assert [client.xlen(stream_key(NAMESPACE, p)) for p in (0, 1)] == [0, 0]


@pytest.mark.redis
def test_trim_keeps_what_is_young(client: redis.Redis) -> None:
    """Committed entries stay as long as they are appended at or after the time."""
    _, reader = make_log(client)
    positions = [add_at(client, 1_000 + n, b"%d" % n) for n in range(1_000)]
    reader.trim({0: positions[-1]}, before_ms=1_300)
    assert everything(reader)[-700:] == [b"%d" % n for n in range(300, 1_000)]
    assert reader.head().oldest_ms is not None


@pytest.mark.redis
def test_entry_without_our_field_is_an_empty_payload(client: redis.Redis) -> None:
    """Somebody else's entry keeps its position and is refused further on."""
    _, reader = make_log(client)
    key = stream_key(NAMESPACE, 0)
    client.xadd(key, {"other": "x"}, id="5-0")
    add_at(client, 6, b"ours", "0")
    client.xadd(key, {"other": "x", FIELD: b"beside"}, id="7-0")
    client.xadd(key, {FIELD: b"first", "other": "x"}, id="8-0")
    assert everything(reader) == [b"", b"ours", b"beside", b"first"]
