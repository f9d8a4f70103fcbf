"""The atomic publish, against a real server."""

from collections.abc import Callable, Iterator

import pytest
import redis

from tests.published import read_snapshots
from tests.throttle.publishing import (
    KEYS,
    A,
    B,
    Job,
    W,
    batches_of,
    dump_all,
    last_value,
    ledger_of,
    make_row,
    newest_snapshot,
)
from throttle.batch import DeadLetter
from throttle.ledger import Books
from throttle.publish import REPEATED
from throttle.snapshot import Row, WindowSnapshot, encode_version

pytestmark = pytest.mark.redis

Drain = Callable[[], list[WindowSnapshot]]


@pytest.fixture
def job(client: redis.Redis) -> Job:
    """A job on an empty server."""
    return Job(client)


@pytest.fixture
def messages(client: redis.Redis) -> Iterator[Drain]:
    """Everything that is published on the channel from now on."""
    with client.pubsub(ignore_subscribe_messages=True) as pubsub:
        pubsub.subscribe(KEYS.updates)
        pubsub.get_message(timeout=1)

        def drain() -> list[WindowSnapshot]:
            found = []
            while (message := pubsub.get_message(timeout=0.1)) is not None:
                found.append(WindowSnapshot.decode(message["data"]))
            return found

        yield drain


def test_a_window_is_stored_logged_and_published_alike(
    client: redis.Redis, job: Job, messages: Drain
) -> None:
    """The table, the window log and the channel say the same."""
    done = job.publish([make_row(A, 1, "0.30", 3)])
    assert (done.offset, done.windows, done.rows, done.stale) == (1, 1, 1, 0)
    assert (done.epoch, done.off_by) == (job.epoch, 0)
    [message] = messages()
    assert read_snapshots(client) == [message]
    assert message.window == 4_000
    assert message.windows == 1
    assert message.epoch == done.epoch
    assert message.rows == (make_row(A, 1, "0.30", 3),)
    assert last_value(client, A).body == make_row(A, 1, "0.30").body
    assert last_value(client, A).offset == 1


def test_a_repeated_batch_changes_nothing(
    client: redis.Redis, job: Job, messages: Drain
) -> None:
    """Spark may run a batch twice; not one byte of one key is another then."""
    letter = DeadLetter(0, 77 << 21, "not_json", "trade: bad", b"\xff")
    work = job.batch(
        [make_row(A, 1, trades=2)],
        [make_row(A, 2)],
        refused={0: {"not_json": 1}},
        letters=[letter],
    )
    job.put(work)
    before = dump_all(client)
    assert {KEYS.ledger("job").encode(), KEYS.batches("job").encode()} < before.keys()
    assert [job.put(work) for _ in range(3)] == [REPEATED] * 3
    assert dump_all(client) == before
    assert len(messages()) == 1


@pytest.mark.parametrize("time", [1, 5])
def test_a_row_that_is_not_newer_is_stale(
    client: redis.Redis, job: Job, time: int
) -> None:
    """An issue never goes back, and nothing is sent twice."""
    job.publish([make_row(A, 5, "55")])
    done = job.publish([make_row(A, time, "11"), make_row(B, 1)])
    assert (done.rows, done.stale) == (1, 1)
    assert last_value(client, A).body == make_row(A, 5, "55").body
    assert [r.isin for r in newest_snapshot(client).rows] == [B]


def test_an_equal_version_with_a_later_position_is_newer(job: Job) -> None:
    """Feeds with whole-second stamps: the log's order breaks the tie."""
    job.publish([make_row(A, 5, "55")])
    later = Row(A, encode_version(5, 1, 2), 1, b"{}")
    assert job.publish([later]).rows == 1


def test_several_windows_make_one_message_and_an_entry_each(
    client: redis.Redis, job: Job, messages: Drain
) -> None:
    """After an outage the log has every window, the live stream one update."""
    job.publish(
        [make_row(A, 1, trades=2), make_row(B, 9)],
        [],
        [make_row(A, 3, "33", trades=4), make_row(B, 8)],
    )
    logged = read_snapshots(client)
    assert [(s.offset, s.window, s.windows) for s in logged] == [
        (1, 4_000, 1),
        (2, 6_000, 1),
        (3, 8_000, 1),
    ]
    assert [r.isin for r in logged[2].rows] == [A]
    [message] = messages()
    assert (message.offset, message.window, message.windows) == (3, 8_000, 3)
    assert message.rows == (make_row(A, 3, "33", trades=6), make_row(B, 9))
    assert last_value(client, A).offset == 3
    assert last_value(client, B).offset == 1


def test_a_quiet_window_is_published_empty(
    client: redis.Redis, job: Job, messages: Drain
) -> None:
    """Silence always means a fault, because quiet windows are told."""
    job.publish([])
    assert [s.rows for s in messages()] == [()]
    assert client.hget(KEYS.meta, "window") == b"4000"


def test_window_log_and_batches_are_bounded(client: redis.Redis) -> None:
    """Old windows leave the log; the newest stay."""
    job = Job(client, window_log=5)
    for n in range(1, 400):
        job.publish([make_row(A, n)])
    kept = [s.window for s in read_snapshots(client)]
    assert kept[-1] == 400 * W
    assert 5 <= len(kept) <= 110
    assert 5 <= len(batches_of(client)) <= 110
    assert batches_of(client)[-1].offset == 399
    assert ledger_of(client).total == Books(read=399, published=399)


def test_a_whole_market_of_rows_fits_one_publish(
    client: redis.Redis, job: Job, messages: Drain
) -> None:
    """More rows than Lua may unpack at once are stored in pieces."""
    rows = [Row(f"XX{n:010d}", encode_version(1, 1, n), 1, b"{}") for n in range(9_001)]
    assert job.publish(rows).rows == 9_001
    assert client.hlen(KEYS.last) == 9_001
    assert len(messages()[0].rows) == 9_001
    again = job.publish(rows)
    assert (again.rows, again.stale) == (0, 9_001)


def test_an_hour_s_backlog_fits_one_publish(
    client: redis.Redis, messages: Drain
) -> None:
    """The most windows of a batch, each with thousands of issues, in one step."""
    job = Job(client, partitions=4)
    windows = [
        [
            (n % 4, Row(f"XX{n:010d}", encode_version(w + 1, 1, n), 1, b'{"price":1}'))
            for n in range(3_000)
        ]
        for w in range(30)
    ]
    done = job.publish(*windows)
    assert (done.windows, done.rows, done.stale, done.off_by) == (30, 90_000, 0, 0)
    [message] = messages()
    assert (message.windows, len(message.rows)) == (30, 3_000)
    assert {row.trades for row in message.rows} == {30}
    assert [len(s.rows) for s in read_snapshots(client)] == [3_000] * 30
    assert ledger_of(client).total == Books(read=90_000, published=90_000)


def test_dead_letters_keep_bytes_and_reason_and_are_stored_once(
    client: redis.Redis, job: Job
) -> None:
    """A refused trade can be looked at, whatever its bytes are."""
    letter = DeadLetter(1, (77 << 21) + 3, "not_json", "trade: bad", b"\xff\x00")
    work = job.batch([], letters=(letter,))
    job.put(work)
    job.put(work)
    [(entry_id, fields)] = client.xrange(f"{KEYS.dead}:1")
    assert entry_id == b"77-3"
    assert fields == {
        b"reason": b"not_json",
        b"error": b"trade: bad",
        b"trade": b"\xff\x00",
    }


def test_dead_letters_are_bounded(client: redis.Redis, job: Job) -> None:
    """A feed gone mad cannot fill the server."""
    letters = [DeadLetter(0, n << 21, "not_json", "e", b"x") for n in range(1, 1_000)]
    job.publish([], letters=letters)
    kept = client.xrange(f"{KEYS.dead}:0")
    assert 100 <= len(kept) <= 210
    assert kept[-1][0] == b"999-0"


def test_letters_that_cannot_be_stored_stop_the_batch(
    client: redis.Redis, job: Job
) -> None:
    """Nothing is published of a batch whose refusals would be lost."""
    client.set(f"{KEYS.dead}:0", "in the way")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        job.publish([make_row(A, 1)], letters=[DeadLetter(0, 1, "bad", "e", b"x")])
    assert not client.exists(KEYS.windows)


def test_two_jobs_share_one_numbering(client: redis.Redis, job: Job) -> None:
    """Each job has its own progress; the stream's offsets have no holes."""
    other = Job(client, "other")
    job.publish([make_row(A, 1)])
    other.publish([make_row(B, 1)])
    job.publish([make_row(A, 2)])
    assert [s.offset for s in read_snapshots(client)] == [1, 2, 3]
    assert len({s.epoch for s in read_snapshots(client)}) == 1
