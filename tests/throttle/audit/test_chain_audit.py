"""The audit of the chain, over a stream on a real server."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from pydantic import ValidationError

from tests.chained import audit_chain
from tests.throttle.publishing import KEYS, A, B, Job, W, make_row
from throttle.audit.chain_audit import ChainAudit
from throttle.audit.published import PublishedHistory
from throttle.contract.snapshot import Row, WindowSnapshot
from throttle.contract.trade_order import NO_VERSION
from throttle.publish.publisher import Publisher, PublishOptions
from throttle.settings import ThrottleSettings
from throttle.testing.driver import ThrottleDriver
from tickthrottle_client.chain_v1 import ChainPlace, Link, Totals

pytestmark = pytest.mark.redis

Entry = tuple[bytes, dict[bytes, bytes]]


def alter(
    client: redis.Redis, offset: int, change: Callable[[bytes], bytes], *, seal: bool
) -> None:
    """Write the window log anew with a message changed; ``seal``: with its sha1."""
    entries: Any = client.xrange(KEYS.windows)
    client.delete(KEYS.windows)
    for entry_id, fields in entries:
        if entry_id == b"%d-0" % offset:
            fields[b"snapshot"] = change(fields[b"snapshot"])
            if seal:
                del fields[b"sha1"]
        client.xadd(KEYS.windows, fields, entry_id)


@pytest.fixture
def job(client: redis.Redis) -> Job:
    """A job that has published news, late trades, an empty window, and a backlog."""
    job = Job(client)
    job.publish([make_row(A, 5, "55"), make_row(B, 1, "0.30", 3)])
    job.publish([make_row(A, 1, "11", 2)])
    job.publish([])
    no_price = Row(B, NO_VERSION, b"1,2,7,,", b"")
    job.publish([make_row(A, 9, "9"), no_price], [make_row(A, 7)], [make_row(B, 12)])
    return job


def test_a_chain_holds_and_says_what_was_traded(client: redis.Redis, job: Job) -> None:
    """Over late trades, trades that show nothing, empty windows and several at once."""
    report = audit_chain(client)
    assert report.breaks == []
    assert report.is_right
    assert (report.windows, report.unlinked, report.batches) == (6, 0, 4)
    assert report.totals == Totals(10, "11", "113.9")
    assert report.first is not None
    assert report.last is not None
    assert (report.first.offset, report.last.offset) == (1, 6)


def test_a_batch_that_is_repeated_leaves_the_chain_as_it_was(
    client: redis.Redis, job: Job
) -> None:
    """As does an answer that was lost: the next batch goes on."""
    work = job.batch([make_row(A, 20)])
    job.put(work)
    job.put(work)
    job.publish([make_row(A, 21)])
    assert audit_chain(client).breaks == []


@pytest.mark.parametrize("numbers", [(1,), (1, 2)])
def test_what_is_taken_back_before_it_was_shown_is_in_books_alone(
    client: redis.Redis, redis_url: str, numbers: tuple[int, ...]
) -> None:
    """No row stands for it, and nothing is missing."""
    with ThrottleDriver(redis_url=redis_url, partitions=2) as driver:
        driver.trade(B, "10", at_ms=100)
        for number in numbers:
            driver.trade(A, "11", at_ms=200, seq=number)
        for number in numbers:
            driver.cancel(A, number, at_ms=300)
        driver.turn_clock(W)
        assert driver.ledger().total.taken_back == len(numbers)
    report = audit_chain(client)
    assert (report.totals.trades, report.breaks) == (1, [])


def test_every_byte_of_a_window_counts(client: redis.Redis, job: Job) -> None:
    """Whichever is flipped, the window is named."""
    [(_, fields), *_] = client.xrange(KEYS.windows, "2-0", "2-0")
    for place in range(len(fields[b"snapshot"])):

        def flip(message: bytes, at: int = place) -> bytes:
            flipped = bytearray(message)
            flipped[at] ^= 1
            return bytes(flipped)

        kept: Any = client.xrange(KEYS.windows)
        alter(client, 2, flip, seal=False)
        report = audit_chain(client)
        assert report.broken
        assert report.breaks[0].kind == "altered", (place, report.breaks)
        assert report.breaks[0].offset == 2, (place, report.breaks)
        client.delete(KEYS.windows)
        for entry_id, values in kept:
            client.xadd(KEYS.windows, values, entry_id)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ((b'"price":55', b'"price":56'), "its rows are not those"),
        ((b"2,2,22,11,11", b"2,3,22,11,11"), "its rows come to 2 3 22"),
        ((b" 2 2 22 ", b" 2 3 22 "), "its rows come to 2 2 22"),
        ((b'"window":6000', b'"window":6001'), "its link is of the window 6000"),
        ((b'"offset":2,', b'"offset":9,'), "it says the offset 9"),
    ],
)
def test_who_writes_a_checksum_of_his_own_is_found_by_the_chain(
    client: redis.Redis, job: Job, change: tuple[bytes, bytes], says: str
) -> None:
    """Rows, sums, the totals of the books, and the place."""
    alter(client, 2, lambda message: message.replace(*change), seal=True)
    report = audit_chain(client)
    assert (report.breaks[0].kind, report.breaks[0].offset) == ("altered", 2)
    assert says in report.breaks[0].text


def test_a_window_whose_link_is_made_anew_breaks_the_next(
    client: redis.Redis, job: Job
) -> None:
    """Whoever makes rows, totals and hash fit has to make all that follow fit."""

    def forge(message: bytes) -> bytes:
        window = WindowSnapshot.decode(message)
        history = [*PublishedHistory(client, "tt").windows()]
        before = ChainPlace(window.epoch, 1, history[0].chain[0].hash)
        line = make_row(A, 5, "66").body + b" 1"
        link = Link.make(before, window.epoch, 2, window.window, line)
        rows = message.split(b"\n")
        rows[0] = rows[0].replace(window.chain[0].text.encode(), link.text.encode())
        return b"\n".join([rows[0], make_row(A, 5, "66").encode()])

    [(_, fields)] = client.xrange(KEYS.windows, "2-0", "2-0")
    forged = forge(fields[b"snapshot"])
    alter(client, 2, lambda _: forged, seal=True)
    first, *_ = audit_chain(client).breaks
    assert (first.kind, first.offset) == ("altered", 3)


def test_missing_windows_are_named(client: redis.Redis, job: Job) -> None:
    """Between others, and at the end."""
    client.xdel(KEYS.windows, "3-0")
    [missing] = audit_chain(client).breaks
    assert (missing.kind, missing.offset) == ("missing", 4)
    assert missing.text == "1 windows before it are missing"
    client.xdel(KEYS.windows, "6-0")
    assert audit_chain(client).breaks[-1].kind == "missing"


def test_books_that_say_otherwise_are_named(client: redis.Redis, job: Job) -> None:
    """The books of a batch against the windows that it published."""
    key = KEYS.batches("job")
    entries: Any = client.xrange(key)
    client.delete(key)
    for entry_id, fields in entries:
        if entry_id == b"1-0":
            fields[b"books"] = fields[b"books"].replace(
                b'"published":2', b'"published":3'
            )
        client.xadd(key, fields, entry_id)
    [found] = audit_chain(client).breaks
    assert (found.kind, found.offset) == ("books", 1)
    assert found.text == "the books of its batch have 5 trades, its windows 4"


def test_a_new_epoch_names_the_end_of_the_old_one(
    client: redis.Redis, job: Job
) -> None:
    """A chain of its own, that goes on from it."""
    before = audit_chain(client).last
    assert before is not None
    job.start(is_rolled_back=True)
    job.publish([make_row(A, 30)])
    report = audit_chain(client)
    assert report.breaks == []
    assert report.notes == [f"epoch {job.epoch} goes on from {before.text}"]


def test_a_restored_server_is_named_as_the_cause(client: redis.Redis, job: Job) -> None:
    """Who has seen what it lost, as an archive has, is told which windows."""
    saved = {key: client.dump(key) for key in client.scan_iter()}
    seen = [*PublishedHistory(client, "tt").audited_windows(0, 2**53)]
    job.publish([make_row(A, 30)])
    job.publish([make_row(A, 31)])
    lost = [*PublishedHistory(client, "tt").audited_windows(0, 2**53)][len(seen) :]
    for key, value in saved.items():
        client.restore(key, 0, value, replace=True)
    job.start(is_rolled_back=True)
    job.publish([make_row(A, 32)])
    checked = ChainAudit()
    later = [*PublishedHistory(client, "tt").audited_windows(0, 2**53)][-1]
    for window in (*seen, *lost, later):
        checked.look_at(window)
    [found] = checked.report.breaks
    assert (found.kind, found.epoch, found.offset) == ("taken_back", job.epoch, 7)
    assert "had lost the 2 windows up to 8" in found.text
    assert audit_chain(client).breaks == []


def test_several_jobs_make_one_chain(client: redis.Redis) -> None:
    """Each takes up what the other has published, and what it shows."""
    one, two = (Job(client, f"job{n}", partitions=[n]) for n in range(2))
    for time in range(1, 4):
        one.publish([make_row(A, 2 * time, "5")])
        two.publish([(1, make_row(A, 3, "7")), (1, make_row(B, time))])
    report = audit_chain(client)
    assert report.breaks == []
    assert report.windows == 6


def test_windows_of_a_version_without_a_chain_are_counted(
    client: redis.Redis,
) -> None:
    """The chain begins behind them, and says so."""
    job = Job(client)
    job.publish([make_row(A, 1)], [make_row(A, 2)])
    entries: Any = client.xrange(KEYS.windows)
    client.delete(KEYS.windows)
    for entry_id, fields in entries:
        head, _, rest = fields[b"snapshot"].partition(b',"chain":[')
        client.xadd(
            KEYS.windows,
            {"snapshot": head + rest.partition(b"]")[2]},
            entry_id,
        )
    client.hdel(KEYS.meta, "chain")
    job.start()
    job.publish([make_row(A, 40)])
    report = audit_chain(client)
    assert (report.windows, report.unlinked, report.breaks) == (3, 2, [])
    assert report.is_right
    assert "the chain begins at offset 3" in report.notes[-1]


def test_a_link_without_the_key_s_signature_is_named(client: redis.Redis) -> None:
    """Who makes a chain of his own cannot sign it."""
    key = b"k" * 32
    job = Job(client)
    options = PublishOptions("job", W, 100, chain_key=key)
    job.publisher = Publisher(client, KEYS, options, job.term)
    job.publish([make_row(A, 1)])
    job.publish([make_row(A, 2)])
    job.start()
    job.publish([make_row(A, 3)])
    windows = [*PublishedHistory(client, "tt").audited_windows(0, 2**53)]
    for given, named in ((b"", []), (key, [3]), (b"x" * 32, [1, 2, 3])):
        checked = ChainAudit(given)
        for window in windows:
            checked.look_at(window)
        assert [one.offset for one in checked.report.breaks] == named


def test_a_file_that_is_no_key_is_refused(tmp_path: Path) -> None:
    """In a sentence that names it and the rule."""
    short = tmp_path / "short"
    short.write_bytes(b"secret\n")
    with pytest.raises(ValidationError, match="must hold 32 bytes or more, not 6"):
        ThrottleSettings(chain_key_file=short)
    with pytest.raises(ValidationError, match="none cannot be read: No such file"):
        ThrottleSettings(chain_key_file=tmp_path / "none")
