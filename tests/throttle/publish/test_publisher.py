"""The atomic publish, against a real server."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import takewhile

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.tradelog.contract import LogInfo
from ingest.tradelog.redis_log_reader import RedisLogReader
from tests.published import read_snapshots, without_days
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
from throttle.contract.dead_letter import DeadLetter
from throttle.contract.ledger import OUTCOMES, Books
from throttle.contract.row_sums import RowSums
from throttle.contract.snapshot import Row, WindowSnapshot
from throttle.contract.trade_order import NO_VERSION, encode_version
from throttle.lease.lease import Fenced
from throttle.publish.publisher import (
    REPEATED,
    Publisher,
    PublishOptions,
    ReadElsewhere,
    StreamLost,
)
from throttle.standing.look_back import EntryRules
from throttle.standing.taken_from_batch import TakingBack

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

        def drain() -> list[WindowSnapshot]:
            # Whatever was published before comes before the answer.
            pubsub.ping()
            arrived = iter(pubsub.listen())
            published = takewhile(lambda message: message["type"] != "pong", arrived)
            return [without_days(message["data"]) for message in published]

        # From now on it is subscribed.
        assert drain() == []
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
    letter = DeadLetter(0, 77 << 21, 77, "not_json", "trade: bad", b"\xff")
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
    """An instrument never goes back, and nothing is sent twice."""
    job.publish([make_row(A, 5, "55")])
    done = job.publish([make_row(A, time, "11"), make_row(B, 1)])
    assert (done.rows, done.stale) == (1, 1)
    assert last_value(client, A).body == make_row(A, 5, "55").body
    shown = make_row(A, 5, "55")._replace(sums=b"1,1,11,11,11")
    assert newest_snapshot(client).rows == (shown, make_row(B, 1))


def test_late_trades_restate_what_is_shown_and_fold(
    client: redis.Redis, job: Job, messages: Drain
) -> None:
    """Whether that was shown before the batch or in it, and of several windows."""
    job.publish([make_row(A, 5, "55"), make_row(B, 5, "5")])
    job.publish(
        [make_row(A, 1, "70"), make_row(B, 9, "9")],
        [make_row(B, 2, "3", trades=2)],
        [make_row(A, 2, "40", trades=2)],
    )
    of_a, of_b = make_row(A, 5, "55"), make_row(B, 9, "9")
    first, *logged = ([*snapshot.rows] for snapshot in read_snapshots(client))
    assert first == [of_a, make_row(B, 5, "5")]
    assert logged == [
        [of_a._replace(sums=b"1,1,70,70,70"), of_b],
        [of_b._replace(sums=b"2,2,6,3,3")],
        [of_a._replace(sums=b"2,2,80,40,40")],
    ]
    assert messages()[-1].rows == (
        of_a._replace(sums=b"3,3,150,70,40"),
        of_b._replace(sums=b"3,3,15,9,3"),
    )
    assert (last_value(client, A).offset, last_value(client, B).offset) == (4, 3)
    ledger = ledger_of(client)
    assert ledger.total == Books(read=8, published=3, superseded=2, stale=3)
    assert ledger.problems() == []
    of = ledger.total.to_object()
    parts = ("8", "3", "2", "3", "0"), ("225", "69", "43", "113", "0")
    for name, figures in zip(("volume", "value"), parts, strict=True):
        assert of[name] == dict(zip(OUTCOMES, figures, strict=True))
    [_, batch] = batches_of(client)
    assert batch.total.to_object()["value"]["stale"] == "113"


NOT_LAST = Row(A, NO_VERSION, b"2,0,0,,", b"")


def test_trades_that_are_not_for_the_last_price_restate_what_is_shown(
    client: redis.Redis, job: Job, messages: Drain
) -> None:
    """The price stays, the sums are told, and they are neither stale nor published."""
    job.publish([make_row(A, 5, "55")])
    done = job.publish([NOT_LAST])
    assert (done.rows, done.stale) == (0, 0)
    restated = make_row(A, 5, "55")._replace(sums=b"2,0,0,,")
    assert [row for s in read_snapshots(client)[1:] for row in s.rows] == [restated]
    job.publish([NOT_LAST], [make_row(A, 6, "56")], [NOT_LAST])
    assert messages()[-1].rows == (make_row(A, 6, "56")._replace(sums=b"5,1,56,56,56"),)
    ledger = ledger_of(client)
    assert ledger.total == Books(read=8, published=2, not_last=6)
    assert ledger.problems() == []


def test_of_an_instrument_that_was_never_shown_there_is_nothing_to_restate(
    client: redis.Redis, job: Job, messages: Drain
) -> None:
    """No row, then one; the sums of an update are those of its windows' rows."""
    job.publish([NOT_LAST, make_row(B, 1)])
    assert client.hkeys(KEYS.last) == [B.encode()]
    job.publish([NOT_LAST], [make_row(A, 5, "5")], [make_row(A, 6, "6")])
    logged = [s.rows for s in read_snapshots(client)]
    assert logged[1:] == [(), (make_row(A, 5, "5"),), (make_row(A, 6, "6"),)]
    assert messages()[-1].rows == (make_row(A, 6, "6")._replace(sums=b"2,2,11,6,5"),)


def test_what_another_job_has_shown_is_restated(client: redis.Redis) -> None:
    """Although this job took it for one that was never shown."""
    first, other = Job(client, "one"), Job(client, "other")
    first.publish([NOT_LAST])
    other.publish([make_row(A, 7, "7")])
    first.publish([NOT_LAST])
    restated = make_row(A, 7, "7")._replace(sums=b"2,0,0,,")
    assert read_snapshots(client)[-1].rows == (restated,)


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
    assert [r.isin for r in logged[2].rows] == [A, B]
    [message] = messages()
    assert (message.offset, message.window, message.windows) == (3, 8_000, 3)
    newest = make_row(A, 3, "33")._replace(sums=b"6,6,152,33,10")
    restated = make_row(B, 9)._replace(sums=b"2,2,20,10,10")
    assert message.rows == (newest, restated)
    assert last_value(client, A).offset == last_value(client, B).offset == 3


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
    rows = [
        Row(f"XX{n:010d}", encode_version(1, 1, n), b"1", b"{}") for n in range(9_001)
    ]
    assert job.publish(rows).rows == 9_001
    assert client.hlen(KEYS.last) == 9_001
    assert len(messages()[0].rows) == 9_001
    again = job.publish(rows)
    assert (again.rows, again.stale) == (0, 9_001)


@pytest.mark.slow
def test_an_hour_s_backlog_fits_one_publish(
    client: redis.Redis, messages: Drain
) -> None:
    """The most windows of a batch, each with thousands of instruments, in one step."""
    job = Job(client, partitions=4)
    windows = [
        [
            (
                n % 4,
                Row(f"XX{n:010d}", encode_version(w + 1, 1, n), b"1", b'{"price":1}'),
            )
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
    client: redis.Redis,
) -> None:
    """A refused trade can be looked at, whatever its bytes are."""
    job = Job(client, partitions=2)
    letter = DeadLetter(1, (77 << 21) + 3, 77, "not_json", "trade: bad", b"\xff\x00")
    work = job.batch([], letters=(letter,))
    job.put(work)
    job.put(work)
    [(entry_id, fields)] = client.xrange(f"{KEYS.dead('job')}:1")
    assert entry_id == b"77-3"
    assert fields == {
        b"reason": b"not_json",
        b"error": b"trade: bad",
        b"trade": b"\xff\x00",
        b"appended": b"77",
        b"bytes": b"2",
        b"sha256": b"",
    }


def test_of_a_long_refused_trade_length_and_digest_are_stored(
    client: redis.Redis,
) -> None:
    """And the books say how many refused trades have no letter at all."""
    job = Job(client)
    letter = DeadLetter(0, 77 << 21, 77, "too_large", "e", b"x" * 9, 70_000, "ab" * 32)
    work = job.batch([], refused={0: {"too_large": 5}}, letters=(letter,))
    work.counts[0].unkept = 4
    assert job.put(work).off_by == 0
    [(_, fields)] = client.xrange(f"{KEYS.dead('job')}:0")
    assert (fields[b"bytes"], fields[b"sha256"]) == (b"70000", b"ab" * 32)
    books = ledger_of(client).total
    assert (books.unkept, books.unaccounted) == (4, 0)
    [batch] = batches_of(client)
    assert batch.total.unkept == 4


def test_dead_letters_are_bounded(client: redis.Redis, job: Job) -> None:
    """A feed gone mad cannot fill the server."""
    letters = [
        DeadLetter(0, n << 21, n, "not_json", "e", b"x") for n in range(1, 1_000)
    ]
    job.publish([], letters=letters)
    kept = client.xrange(f"{KEYS.dead('job')}:0")
    assert 100 <= len(kept) <= 210
    assert kept[-1][0] == b"999-0"


def test_letters_that_cannot_be_stored_stop_the_batch(
    client: redis.Redis, job: Job
) -> None:
    """Nothing is published of a batch whose refusals would be lost."""
    client.set(f"{KEYS.dead('job')}:0", "in the way")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        job.publish([make_row(A, 1)], letters=[DeadLetter(0, 1, 0, "bad", "e", b"x")])
    assert not client.exists(KEYS.windows)


def test_a_letter_that_is_there_already_stops_nothing(
    client: redis.Redis, job: Job
) -> None:
    """The stream is older than the letters: the same trades are refused again."""
    letter, next_one = (DeadLetter(0, n << 21, n, "bad", "e", b"x") for n in (1, 2))
    saved, dead = dump_all(client), f"{KEYS.dead('job')}:0"
    job.publish([make_row(A, 1)], letters=[letter])
    kept = client.xrange(dead)
    client.delete(*dump_all(client, dead))
    for key, value in saved.items():
        client.restore(key, 0, value)
    job.start(is_rolled_back=True)
    done = job.publish([make_row(A, 2)], letters=[letter, next_one])
    assert (done.rows, done.off_by) == (1, 0)
    assert client.xrange(dead)[:-1] == kept
    assert client.xlen(dead) == 2


def test_the_letters_of_two_jobs_stay_apart(client: redis.Redis, job: Job) -> None:
    """Two jobs read one log and refuse the same trades: each keeps its own letters."""
    letter = DeadLetter(0, 7 << 21, 7, "bad", "e", b"x")
    job.publish([make_row(A, 1)], letters=[letter])
    Job(client, "other").publish([make_row(A, 2)], letters=[letter])
    for name in ("job", "other"):
        [(entry_id, _)] = client.xrange(f"{KEYS.dead(name)}:0")
        assert entry_id == b"7-0"


def test_letters_of_a_topic_stand_under_their_offset(client: redis.Redis) -> None:
    """Offsets begin at 0, and no stream takes the id 0-0; the time stands beside."""
    job = Job(client, log="kafka")
    letters = [DeadLetter(0, n, 1_700 + n, "bad", "e", b"x") for n in range(3)]
    job.publish([], letters=letters)
    job.publish([], letters=[DeadLetter(0, 2**53, 9, "bad", "e", b"y")])
    kept = client.xrange(f"{KEYS.dead('job')}:0")
    assert [entry_id for entry_id, _ in kept] == [
        b"0-1",
        b"1-1",
        b"2-1",
        b"%d-1" % 2**53,
    ]
    assert [fields[b"appended"] for _, fields in kept] == [
        b"1700",
        b"1701",
        b"1702",
        b"9",
    ]


def test_what_is_not_published_leaves_no_dead_letters(
    client: redis.Redis, job: Job
) -> None:
    """They would be in the way of those of the job that may publish."""
    old, letter = job.publisher, DeadLetter(0, 9 << 21, 9, "not_json", "e", b"x")
    work = job.batch([], letters=[letter])
    job.start()
    with pytest.raises(Fenced):
        old.publish(work, 0)
    gap = replace(work, start=replace(work.start, end_ms=0))
    with pytest.raises(StreamLost):
        job.publisher.publish(gap, 0)
    assert not client.exists(f"{KEYS.dead('job')}:0")


def test_an_older_term_publishes_nothing(client: redis.Redis, job: Job) -> None:
    """However late a message of the former holder arrives, it is refused."""
    job.publish([make_row(A, 1)])
    old, work = job.publisher, job.batch([make_row(A, 2)])
    job.start()
    before = dump_all(client)
    taken_over = rf"'job' has taken over \(its term is {job.term}, this"
    with pytest.raises(Fenced, match=taken_over):
        old.publish(work, 1)
    assert dump_all(client) == before
    assert job.put(work).rows == 1
    with pytest.raises(Fenced):
        old.publish(work, 1)


def test_a_batch_that_does_not_begin_at_the_stored_cut_is_refused(
    client: redis.Redis, job: Job
) -> None:
    """A gap or an overlap would be published for ever."""
    first = job.batch([make_row(A, 1)], [make_row(A, 2)])
    job.put(first)
    skipped = job.batch([make_row(A, 3)])
    job.cut = skipped.end
    beyond = job.batch([make_row(A, 4)])
    half = replace(first, windows=first.windows[:1], end=skipped.end)
    moved = replace(skipped, start=replace(skipped.start, positions=(1,)))
    before = dump_all(client)
    for wrong in (beyond, half, moved):
        with pytest.raises(StreamLost, match="emptied or rolled back"):
            job.publisher.publish(wrong, 1)
        assert dump_all(client) == before
    assert job.publisher.publish(skipped, 1).rows == 1


def test_a_batch_read_from_another_server_is_refused(
    client: redis.Redis, own_client: redis.Redis, job: Job
) -> None:
    """Of two primaries each has entries that the other has not.

    Neither where some tasks have read the other one; the epoch stays, and what is read
    again from the server itself is published. A batch of Kafka names no server.
    """
    here, there = (str(c.info("server")["run_id"]) for c in (client, own_client))
    assert here != there
    work, before = job.batch([make_row(A, 1)]), dump_all(client)
    for servers in ({there}, {here, there}):
        with pytest.raises(ReadElsewhere, match=rf"\({there}, this one is {here}\)"):
            job.publisher.publish(replace(work, servers=frozenset(servers)), 1)
        assert dump_all(client) == before
    again = replace(work, servers=frozenset({here}))
    assert job.publisher.publish(again, 1).epoch == job.epoch
    # Wherever it was read: it is published.
    elsewhere = replace(work, servers=frozenset({there}))
    assert job.publisher.publish(elsewhere, 1) == REPEATED
    job.cut = work.end
    assert job.publish([make_row(A, 2)]).rows == 1


def test_what_was_looked_up_on_another_server_is_not_published(
    client: redis.Redis, own_client: redis.Redis, job: Job
) -> None:
    """Which trades stand is asked of the log of the server that publishes, or again."""
    work = job.batch([make_row(A, 1)])
    taking_back = replace(work, taking_back={A: frozenset({0})})
    options = PublishOptions("job", W, window_log=100)
    before = dump_all(client)

    def publisher_at(of_log: redis.Redis) -> Publisher:
        reader = RedisLogReader(of_log, "tt", LogInfo("log", 1, 0))
        rules = EntryRules(lambda: reader, W, 1_000, 65_536, "", is_scattered=False)
        return Publisher(client, KEYS, options, job.term, TakingBack(rules))

    with pytest.raises(ReadElsewhere):
        publisher_at(own_client).publish(taking_back, 1)
    assert dump_all(client) == before
    assert publisher_at(client).publish(taking_back, 1).windows == 1


def test_after_an_ordinary_failover_the_stream_is_lost_first(
    client: redis.Redis, job: Job
) -> None:
    """A replica that became the primary is another server to the epoch, too."""
    work = replace(job.batch([make_row(A, 1)]), servers=frozenset({"a" * 40}))
    client.hset(KEYS.meta, "server", "a" * 40)
    with pytest.raises(StreamLost) as caught:
        job.publisher.publish(work, 1)
    assert caught.type is StreamLost


@pytest.mark.parametrize("gone", ["all", "meta", "ledger"])
def test_a_stream_that_is_gone_is_lost_until_the_job_starts_anew(
    client: redis.Redis, job: Job, gone: str
) -> None:
    """Nobody publishes into the void: a new term begins where the job may go on."""
    job.publish([make_row(A, 1)])
    if gone == "all":
        client.flushall()
    else:
        client.delete(KEYS.meta if gone == "meta" else KEYS.ledger("job"))
    before = dump_all(client)
    for _ in range(2):
        with pytest.raises(StreamLost):
            job.publisher.publish(job.batch([make_row(A, 2)]), 1)
    assert dump_all(client) == before
    epoch = job.epoch
    job.start(is_rolled_back=True)
    assert job.epoch != epoch
    assert job.publish([make_row(A, 3)]).off_by == 0
    assert ledger_of(client).problems() == []
    assert newest_snapshot(client).epoch == job.epoch


@pytest.mark.parametrize("has_published", [True, False])
def test_a_server_that_has_forgotten_the_term_is_no_successor(
    client: redis.Redis, job: Job, has_published: bool
) -> None:
    """A server restored from an older dump: nobody has taken over, the job may go on.

    It takes another term first, even if nothing else was lost.
    """
    job.publish([make_row(A, 1)])
    restored = client.dump(KEYS.meta)
    job.start()
    if has_published:
        job.publish([make_row(A, 2)])
    client.restore(KEYS.meta, 0, restored, replace=True)
    with pytest.raises(StreamLost):
        job.publisher.publish(job.batch([make_row(A, 3)]), 2)


@pytest.mark.parametrize(
    "key",
    [KEYS.meta, KEYS.last, KEYS.windows, KEYS.ledger("job"), KEYS.batches("job")],
)
def test_a_key_of_another_type_publishes_nothing(
    client: redis.Redis, job: Job, key: str
) -> None:
    """What fails, fails before the first write: no windows without their books."""
    job.publish([make_row(A, 1)])
    good = client.dump(key)
    client.set(key, "in the way")
    before = dump_all(client)
    work = job.batch([make_row(A, 2), make_row(B, 1)])
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        job.publisher.publish(work, 1)
    assert dump_all(client) == before
    client.restore(key, 0, good, replace=True)
    assert (job.put(work).rows, job.publish([]).off_by) == (2, 0)


def test_the_books_say_what_became_of_every_trade(client: redis.Redis) -> None:
    """Per partition and per batch: published, superseded, stale, refused."""
    job = Job(client, partitions=2)
    since = job.cut
    job.publish(
        [make_row(A, 5, trades=3), (1, make_row(B, 5))],
        [],
        [make_row(A, 6, trades=2)],
        refused={1: {"not_json": 2}},
    )
    middle = job.cut
    # A comes from both partitions; the newer one is older than what was published.
    job.publish(
        [make_row(A, 1, trades=4), (1, make_row(A, 2, trades=2)), (1, make_row(B, 6))],
        refused={0: {"not_json": 1, "bad_isin": 2}, 1: {"not_json": 1}},
    )
    ledger = ledger_of(client)
    assert ledger.partitions == (
        Books(12, 2, 7, 0, {"not_json": 1, "bad_isin": 2}),
        Books(7, 2, 1, 1, {"not_json": 3}),
    )
    assert (ledger.since, ledger.upto) == (since, job.cut)
    assert (ledger.batches, ledger.windows) == (2, 4)
    assert ledger.problems() == []
    first, second = batches_of(client)
    assert (first.offset, first.batch, first.windows) == (3, 0, 3)
    assert first.term == job.term
    assert (first.start, first.end) == (since, middle)
    assert first.partitions == (
        Books(5, 2, 3, 0, {}),
        Books(3, 1, 0, 0, {"not_json": 2}),
    )
    assert (second.offset, second.batch, second.windows) == (4, 1, 1)
    assert (second.start, second.end) == (middle, job.cut)
    assert second.partitions == (
        Books(7, 0, 4, 0, {"not_json": 1, "bad_isin": 2}),
        Books(4, 1, 1, 1, {"not_json": 1}),
    )


def test_the_log_s_own_count_is_compared(client: redis.Redis) -> None:
    """A trade that is in the log and was not read shows, at once and from then on."""
    job = Job(client, partitions=2)
    job.publish([make_row(A, 1, trades=3)])
    ledger = ledger_of(client)
    assert (ledger.log, ledger.checked_ms) == ((3, 0), job.cut.end_ms)
    done = job.publish([make_row(A, 2)], log_counts=(4, 1))
    assert done.off_by == 1
    ledger = ledger_of(client)
    assert ledger.log == (4, 1)
    assert len(ledger.problems()) == 1
    assert "partition 1" in ledger.problems()[0]
    # The job goes on from its own cut, whose counts are the log's: still one too few.
    assert job.publish([make_row(A, 3)]).off_by == 1


@pytest.mark.parametrize("difference", [-1, 1])
def test_a_batch_that_does_not_add_up_is_told(job: Job, difference: int) -> None:
    """What the reader read and what Spark grouped are two counts, and compared."""
    job.publish([make_row(A, 1, trades=3)])
    work = job.batch([make_row(A, 2, trades=3)])
    work.counts[0].superseded += difference
    assert job.put(work).off_by == 1
    # The ledger does not balance from then on.
    assert job.publish([make_row(A, 3, trades=3)]).off_by == 1


def test_a_count_the_log_does_not_know_is_not_compared(client: redis.Redis) -> None:
    """The comparison waits for the next batch whose counts are all known."""
    job = Job(client, partitions=2)
    assert job.publish([make_row(A, 1)], log_counts=(7, None)).off_by == 0
    ledger = ledger_of(client)
    assert (ledger.log, ledger.checked_ms) == ((None, None), None)
    assert ledger.problems() == []
    assert job.publish([make_row(A, 2)], log_counts=(2, 0)).off_by == 0
    ledger = ledger_of(client)
    assert (ledger.log, ledger.checked_ms) == ((2, 0), job.cut.end_ms)
    job.publish([make_row(A, 3)], log_counts=(None, None))
    ledger = ledger_of(client)
    assert (ledger.log, ledger.checked_ms) == ((2, 0), job.cut.end_ms - W)
    assert ledger.problems() == []


def test_a_job_that_began_without_counts_is_never_compared(
    client: redis.Redis,
) -> None:
    """The difference to an unknown count is unknown."""
    job = Job(client)
    job.lease.release(job.term)
    client.delete(KEYS.meta)
    job.cut = replace(job.cut, counts=(None,))
    job.start()
    assert job.publish([make_row(A, 1)], log_counts=(1_000,)).off_by == 0
    assert ledger_of(client).log == (None,)


def test_blanks_of_the_log_are_no_trades(client: redis.Redis) -> None:
    """Positions without an entry count for the log, and nobody read anything there."""
    job = Job(client, partitions=2)
    job.publish([make_row(A, 1, trades=3)], blanks={0: 2, 1: 5})
    done = job.publish([make_row(A, 2)], blanks={0: 1})
    assert done.off_by == 0
    ledger = ledger_of(client)
    assert [books.blanks for books in ledger.partitions] == [3, 5]
    assert ledger.log == tuple(books.read for books in ledger.partitions) == (4, 0)
    assert ledger.problems() == []
    assert [
        [books.blanks for books in batch.partitions] for batch in batches_of(client)
    ] == [[2, 5], [1, 0]]


@pytest.mark.parametrize("difference", [-1, 1])
def test_a_blank_too_many_or_too_few_is_told(
    client: redis.Redis, difference: int
) -> None:
    """An entry taken for a blank is an entry that was not read."""
    job = Job(client)
    done = job.publish(
        [make_row(A, 1)], blanks={0: 4 + difference}, log_counts=(1 + 4,)
    )
    assert done.off_by == 1
    [problem] = ledger_of(client).problems()
    assert problem.startswith(f"partition 0: the log counted {1 - difference} trades")


def test_a_job_may_read_some_partitions_alone(client: redis.Redis) -> None:
    """Its books, its letters and its cuts are those of its partitions, by number."""
    job = Job(client, partitions=(1, 12))
    work = job.batch(
        [(1, make_row(A, 1, trades=2)), (12, make_row(B, 1))],
        [(12, make_row(A, 2, trades=3))],
        refused={12: {"not_json": 1}},
        letters=[DeadLetter(12, 9 << 21, 9, "not_json", "e", b"x")],
    )
    done = job.put(work)
    assert (done.windows, done.rows, done.off_by) == (2, 3, 0)
    ledger = ledger_of(client)
    assert ledger.upto == work.end
    assert ledger.upto.partitions == (1, 12)
    assert ledger.partitions == (
        Books(2, 1, 1, 0, {}),
        Books(5, 2, 2, 0, {"not_json": 1}),
    )
    assert ledger.log == (2, 5)
    assert ledger.problems() == []
    [batch] = batches_of(client)
    assert batch.partitions == ledger.partitions
    assert client.xlen(f"{KEYS.dead('job')}:12") == 1
    assert not client.exists(f"{KEYS.dead('job')}:0", f"{KEYS.dead('job')}:1")


def test_jobs_share_the_partitions_of_a_log(client: redis.Redis) -> None:
    """Each goes on from its own cut; an instrument is whoever's trade is newer."""
    one, other = Job(client, "one", (0, 2)), Job(client, "other", (1, 3))
    one.publish([make_row(A, 1), (2, make_row(B, 5))])
    done = other.publish([(1, make_row(A, 2)), (3, make_row(B, 4))])
    assert (done.rows, done.stale, done.off_by) == (1, 1, 0)
    restated = make_row(B, 5)._replace(sums=b"1,1,10,10,10")
    assert newest_snapshot(client).rows == (make_row(A, 2), restated)
    for name, partitions in (("one", (0, 2)), ("other", (1, 3))):
        assert ledger_of(client, name).upto.partitions == partitions
        assert ledger_of(client, name).problems() == []


def test_a_partition_that_is_added_is_counted_from_its_beginning(
    client: redis.Redis,
) -> None:
    """The books began without it: the log counts all that it holds."""
    job = Job(client)
    job.publish([make_row(A, 1)])
    done = job.publish(
        [make_row(A, 2), (1, make_row(B, 1, trades=4))], added=[1], blanks={1: 2}
    )
    assert done.off_by == 0
    ledger = ledger_of(client)
    assert ledger.since.partitions == (0,)
    assert ledger.upto.partitions == (0, 1)
    assert ledger.log == (2, 4)
    assert ledger.problems() == []
    assert [len(batch.partitions) for batch in batches_of(client)] == [1, 2]
    assert job.publish([(1, make_row(B, 2))]).off_by == 0
    missed = job.publish([], added=[2], log_counts=(2, 7, 3))
    assert missed.off_by == 3
    [problem] = ledger_of(client).problems()
    assert problem.startswith("partition 2: the log counted 3 trades")


def test_the_books_of_two_jobs_stay_apart(client: redis.Redis, job: Job) -> None:
    """Each has read the log for itself; what the other published first is stale."""
    other = Job(client, "other", partitions=2)
    job.publish([make_row(A, 1, trades=3)])
    other.publish([make_row(A, 1, trades=3), (1, make_row(B, 1))])
    assert ledger_of(client).partitions == (Books(3, 1, 2, 0, {}),)
    assert ledger_of(client, "other").partitions == (
        Books(3, 0, 2, 1, {}),
        Books(1, 1, 0, 0, {}),
    )
    assert [batch.offset for batch in batches_of(client)] == [1]
    assert [batch.offset for batch in batches_of(client, "other")] == [2]


steps = st.lists(
    st.tuples(
        st.booleans(),
        st.lists(
            st.dictionaries(
                st.sampled_from([A, B, "US0378331005"]), st.integers(0, 9), max_size=3
            ),
            min_size=1,
            max_size=3,
        ),
    ),
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_no_instrument_goes_back_whoever_publishes(
    client: redis.Redis, steps: list[tuple[bool, list[dict[str, int]]]]
) -> None:
    """Two jobs, the same instruments, any order: none goes back, no trade is lost."""
    client.flushall()
    jobs = Job(client, "one"), Job(client, "two")
    offered: dict[str, bytes] = {}
    traded: dict[str, RowSums] = {}
    for is_second, windows in steps:
        rows = [[make_row(*one) for one in window.items()] for window in windows]
        for row in (row for window in rows for row in window):
            offered[row.isin] = max(offered.get(row.isin, b""), row.version)
            traded[row.isin] = _added(traded, row)
        jobs[is_second].publish(*rows)
    told: dict[str, bytes] = {}
    rows_say: dict[str, RowSums] = {}
    snapshots = read_snapshots(client)
    for row in (row for snapshot in snapshots for row in snapshot.rows):
        assert row.version >= told.get(row.isin, b"")
        rows_say[row.isin] = _added(rows_say, row)
        told[row.isin] = row.version
    assert told == offered
    assert rows_say == traded
    assert told == {isin: last_value(client, isin).version for isin in told}
    assert [s.offset for s in snapshots] == list(range(1, len(snapshots) + 1))
    for job in jobs:
        assert ledger_of(client, job.name).problems() == []


def _added(sums: dict[str, RowSums], row: Row) -> RowSums:
    before = sums.get(row.isin)
    return row.row_sums if before is None else before.fold(row.row_sums)
