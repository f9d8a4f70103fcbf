"""The atomic publish, against a real server."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
import redis

from ingest.trade import Trade
from tests.published import read_snapshots
from throttle.cut import Cut
from throttle.publish import Batch, DeadLetter, Publisher, Window, assemble
from throttle.rows import cut_row, to_arrow
from throttle.snapshot import Keys, LastValue, Row, WindowSnapshot, encode_version

pytestmark = pytest.mark.redis
W = 2_000
A, B = "KR7005930003", "KR7000660001"
KEYS = Keys("tt")


def row(isin: str, time: int, price: str = "10", trades: int = 1) -> Row:
    """Make a row of an issue at a time."""
    body = b'{"isin":"%b","price":%b}' % (isin.encode(), price.encode())
    return Row(isin, encode_version(time, 1, 1), trades, body)


def batch(*windows: Window, letters: tuple[DeadLetter, ...] = ()) -> Batch:
    """Make a batch of windows."""
    return Batch(Cut(windows[-1].end_ms, (1, 1)), windows, letters)


@pytest.fixture
def publisher(client: redis.Redis) -> Publisher:
    """A publisher on an empty server that keeps 5 windows."""
    return Publisher(client, KEYS, "job", W, window_log=5, dead_letters=100)


@pytest.fixture
def messages(client: redis.Redis) -> Iterator[Any]:
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


def last(client: redis.Redis, isin: str) -> LastValue:
    """Return the stored last value of an issue."""
    return LastValue.decode(isin.encode(), client.hget(KEYS.last, isin))


def totals(client: redis.Redis) -> dict[str, int]:
    """Return what became of the trades so far."""
    return {k.decode(): int(v) for k, v in client.hgetall(KEYS.totals).items()}


def test_a_window_is_stored_logged_and_published_alike(
    client: redis.Redis, publisher: Publisher, messages: Any
) -> None:
    """The table, the window log and the channel say the same."""
    done = publisher.publish(batch(Window(4_000, [row(A, 1, "0.30", 3)])))
    assert (done.offset, done.windows, done.rows, done.stale) == (1, 1, 1, 0)
    [message] = messages()
    assert read_snapshots(client) == [message]
    assert message.window == 4_000
    assert message.windows == 1
    assert message.epoch == done.epoch
    assert message.rows == (row(A, 1, "0.30", 3),)
    assert last(client, A).body == row(A, 1, "0.30").body
    assert last(client, A).offset == 1


def test_a_repeated_batch_changes_nothing(
    client: redis.Redis, publisher: Publisher, messages: Any
) -> None:
    """Spark may run a batch twice; its windows are published once."""
    work = batch(Window(4_000, [row(A, 1)]), Window(6_000, [row(A, 2)]))
    publisher.publish(work)
    before = client.dump(KEYS.meta), client.hgetall(KEYS.last), totals(client)
    again = publisher.publish(work)
    assert (again.windows, again.rows) == (0, 0)
    assert before == (client.dump(KEYS.meta), client.hgetall(KEYS.last), totals(client))
    assert len(messages()) == 1


def test_a_batch_that_was_half_published_before_publishes_the_rest(
    client: redis.Redis, publisher: Publisher
) -> None:
    """Windows are skipped one by one, not batch by batch."""
    publisher.publish(batch(Window(4_000, [row(A, 1)])))
    publisher.publish(batch(Window(4_000, [row(A, 1)]), Window(6_000, [row(A, 2)])))
    assert [s.window for s in read_snapshots(client)] == [4_000, 6_000]


@pytest.mark.parametrize("time", [1, 5])
def test_a_row_that_is_not_newer_is_stale(
    client: redis.Redis, publisher: Publisher, time: int
) -> None:
    """An issue never goes back, and nothing is sent twice."""
    publisher.publish(batch(Window(4_000, [row(A, 5, "55")])))
    done = publisher.publish(batch(Window(6_000, [row(A, time, "11"), row(B, 1)])))
    assert (done.rows, done.stale) == (1, 1)
    assert last(client, A).body == row(A, 5, "55").body
    assert [r.isin for r in read_snapshots(client)[-1].rows] == [B]


def test_an_equal_version_with_a_later_position_is_newer(
    client: redis.Redis, publisher: Publisher
) -> None:
    """Feeds with whole-second stamps: the log's order breaks the tie."""
    publisher.publish(batch(Window(4_000, [row(A, 5, "55")])))
    later = Row(A, encode_version(5, 1, 2), 1, b"{}")
    assert publisher.publish(batch(Window(6_000, [later]))).rows == 1


def test_several_windows_make_one_message_and_an_entry_each(
    client: redis.Redis, publisher: Publisher, messages: Any
) -> None:
    """After an outage the log has every window, the live stream one update."""
    publisher.publish(
        batch(
            Window(4_000, [row(A, 1, trades=2), row(B, 9)]),
            Window(6_000, []),
            Window(8_000, [row(A, 3, "33", trades=4), row(B, 8)]),
        )
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
    assert message.rows == (row(A, 3, "33", trades=6), row(B, 9))


def test_a_quiet_window_is_published_empty(
    client: redis.Redis, publisher: Publisher, messages: Any
) -> None:
    """Silence always means a fault, because quiet windows are told."""
    publisher.publish(batch(Window(4_000)))
    assert [s.rows for s in messages()] == [()]
    assert client.hget(KEYS.meta, "window") == b"4000"


def test_the_window_log_is_bounded(client: redis.Redis, publisher: Publisher) -> None:
    """Old windows leave the log; the newest stay."""
    for n in range(1, 400):
        publisher.publish(batch(Window(n * W, [row(A, n)])))
    kept = [s.window for s in read_snapshots(client)]
    assert kept[-1] == 399 * W
    assert 5 <= len(kept) <= 110


def test_a_whole_market_of_rows_fits_one_publish(
    client: redis.Redis, publisher: Publisher, messages: Any
) -> None:
    """More rows than Lua may unpack at once are stored in pieces."""
    rows = [Row(f"XX{n:010d}", encode_version(1, 1, n), 1, b"{}") for n in range(9_001)]
    assert publisher.publish(batch(Window(4_000, rows))).rows == 9_001
    assert client.hlen(KEYS.last) == 9_001
    assert len(messages()[0].rows) == 9_001
    again = publisher.publish(batch(Window(6_000, rows)))
    assert (again.rows, again.stale) == (0, 9_001)


def test_two_jobs_share_one_numbering(
    client: redis.Redis, publisher: Publisher
) -> None:
    """Each job has its own progress; the stream's offsets have no holes."""
    other = Publisher(client, KEYS, "other", W, window_log=5, dead_letters=100)
    publisher.publish(batch(Window(4_000, [row(A, 1)])))
    other.publish(batch(Window(4_000, [row(B, 1)])))
    publisher.publish(batch(Window(6_000, [row(A, 2)])))
    assert [s.offset for s in read_snapshots(client)] == [1, 2, 3]
    assert len({s.epoch for s in read_snapshots(client)}) == 1


def test_the_books_balance(client: redis.Redis, publisher: Publisher) -> None:
    """Read = published + superseded + stale + refused, after every publish."""
    refused = Window(6_000, [row(A, 1, trades=4), row(B, 1, trades=2)])
    refused.refused.update(not_json=2, bad_isin=1)
    publisher.publish(batch(Window(4_000, [row(A, 5, trades=3)])))
    publisher.publish(batch(refused))
    assert totals(client) == {
        "read": 12,
        "published": 2,
        "superseded": 6,
        "stale": 1,
        "refused:not_json": 2,
        "refused:bad_isin": 1,
    }


def test_dead_letters_keep_bytes_and_reason_and_are_stored_once(
    client: redis.Redis, publisher: Publisher
) -> None:
    """A refused trade can be looked at, whatever its bytes are."""
    letter = DeadLetter(1, (77 << 21) + 3, "not_json", "trade: bad", b"\xff\x00")
    work = batch(Window(4_000), letters=(letter,))
    publisher.publish(work)
    publisher.publish(work)
    [(entry_id, fields)] = client.xrange(f"{KEYS.dead}:1")
    assert entry_id == b"77-3"
    assert fields == {
        b"reason": b"not_json",
        b"error": b"trade: bad",
        b"trade": b"\xff\x00",
    }


_LATEST = ("time", "seq", "position", "partition", "payload", "reason", "error")


def conflated(*rows: dict[str, Any]) -> pa.Table:
    """Make what Spark hands over: the cut row of two windows and some others."""
    [cut] = to_arrow([cut_row(Cut(2_000, (0,)), Cut(6_000, (9,)))]).to_pylist()
    first = {"window": window(6_000), "key": cut["key"], "trades": 1}
    latest = {name: cut[name] for name in _LATEST}
    return pa.Table.from_pylist([{**first, "latest": latest}, *rows])


def window(end_ms: int) -> dict[str, datetime]:
    """Make Spark's window struct."""
    return {"end": datetime.fromtimestamp(end_ms / 1000, UTC)}


def found(
    payload: bytes, window_ms: int, key: str, trades: int = 1, **latest: Any
) -> dict[str, Any]:
    """Make a conflated row."""
    basis = {"time": 0, "seq": 0, "position": 5, "partition": 0, "payload": payload}
    refusal = {"reason": None, "error": None}
    return {
        "window": window(window_ms),
        "key": key,
        "trades": trades,
        "latest": {**basis, **refusal, **latest},
    }


def test_assembly_names_every_window_and_sorts_dead_letters() -> None:
    """Windows without rows are there; letters come in the order of the log."""
    trade = Trade(A, 1_773_964_801_566_788, 7, "0.30", "5")
    table = conflated(
        found(trade.to_wire(), 6_000, key=A, time=trade.time_us, seq=7, trades=4),
        found(b"x", 4_000, key="!0:9", position=9, reason="not_json", error="e"),
        found(b"y", 4_000, key="!0:8", position=8, reason="bad_isin", error="e"),
    )
    made = assemble(table, W)
    assert made.end == Cut(6_000, (9,))
    assert [w.end_ms for w in made.windows] == [4_000, 6_000]
    assert made.windows[0].read == 2
    assert made.windows[1].rows == [
        Row(A, encode_version(trade.time_us, 7, 5), 4, trade.to_row())
    ]
    assert made.windows[1].read == 4
    assert [letter.position for letter in made.dead_letters] == [8, 9]


def test_a_batch_without_its_cut_is_refused() -> None:
    """Guessing the windows of a batch is worse than stopping."""
    with pytest.raises(ValueError, match="one cut row, this one 0"):
        assemble(conflated().slice(0, 0), W)
