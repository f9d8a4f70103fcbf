"""What was published and accounted for, checked against the trade log itself."""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

import redis

from ingest.redis_keys import Keys
from ingest.trade import InvalidTrade, Trade, check_not_ahead
from tests.logged import Logged, logged_in_redis
from tests.oracle import (
    add_up,
    expected_windows,
    sums_of_items,
    sums_of_trades,
)
from tests.published import published_windows
from throttle.contract.cut import Cut
from throttle.contract.ledger import BatchEntry, Ledger
from throttle.contract.ledger import add_up as add_up_books

JOB = "throttle"
MAX_AHEAD_US = 5_000_000

Log = Callable[[], list[Logged]]
"""Reads all of a log that is not in Redis."""


@dataclass(frozen=True, slots=True)
class Checked:
    """How much a check has compared."""

    windows: int
    trades: int
    upto_ms: int


@dataclass(frozen=True, slots=True)
class Account:
    """A job's ledger, its batches and its cut, read in one step."""

    ledger: Ledger
    batches: tuple[BatchEntry, ...]
    cut: Cut


def read_account(
    client: redis.Redis, job: str = JOB, namespace: str = "tt"
) -> Account | None:
    """Return the account of a job, None before its first publish."""
    keys = Keys(namespace)
    with client.pipeline(transaction=True) as pipe:
        pipe.hgetall(keys.ledger(job))
        pipe.xrange(keys.batches(job))
        pipe.hget(keys.meta, f"cut:{job}")
        stored, entries, cut = pipe.execute()
    ledger = Ledger.decode(job, stored)
    if ledger is None:
        return None
    batches = tuple(BatchEntry.decode(*entry) for entry in entries)
    return Account(ledger, batches, Cut.from_offset(json.loads(cut)))


def check_books(
    client: redis.Redis,
    job: str = JOB,
    namespace: str = "tt",
    log: Log | None = None,
) -> Ledger:
    """Check that every trade up to the job's cut is accounted for; return its ledger.

    Per partition: what was read is what became of it, and what the log holds there.
    The batches follow each other without a hole, and they add up to the ledger.
    Neither log nor batches may have been trimmed. The log is the one in Redis unless
    given.
    """
    account = read_account(client, job, namespace)
    assert account is not None, f"{job} has no ledger"
    ledger, batches = account.ledger, account.batches
    assert ledger.problems() == []
    assert _place(ledger.upto) == _place(account.cut)
    assert _place(batches[0].start) == _place(ledger.since)
    assert _place(batches[-1].end) == _place(ledger.upto)
    for one, following in pairwise(batches):
        assert _place(one.end) == _place(following.start), (one, following)
        assert one.term <= following.term, (one, following)
    assert len(batches) == ledger.batches
    assert sum(batch.windows for batch in batches) == ledger.windows
    for p, books in zip(ledger.upto.partitions, ledger.partitions, strict=True):
        assert books == add_up_books(
            batch.partitions[batch.end.partitions.index(p)]
            for batch in batches
            if p in batch.end.partitions
        )
        assert books.read == books.accounted
    held = Counter(
        entry.partition for entry in _read_up_to(client, ledger, log, namespace)
    )
    read = [books.read for books in ledger.partitions]
    assert [held[p] for p in ledger.upto.partitions] == read
    return ledger


def check_against_oracle(
    client: redis.Redis,
    window_ms: int = 2_000,
    namespace: str = "tt",
    log: Log | None = None,
) -> Checked:
    """Compare every published window with the oracle, and the books with the log.

    The sums of all its rows are those of all trades that were read and not refused,
    but for those that do not count for the last price before there was one.
    The feed may go on meanwhile: nothing can be added to a window that was published.
    For one job that has published the whole stream.
    """
    ledger = check_books(client, namespace=namespace, log=log)
    upto_ms = ledger.upto.end_ms
    windows = published_windows(client, namespace)
    published = {end: items for end, items in windows.items() if end <= upto_ms}
    assert list(published) == list(range(min(published), upto_ms + 1, window_ms))
    assert min(published) == ledger.since.end_ms + window_ms
    assert ledger.windows == len(published)
    entries = _read_up_to(client, ledger, log, namespace)
    letters = check_dead_letters(client, ledger, entries, namespace)
    if ledger.total.read:
        valid = [e for e in entries if (e.partition, e.position) not in letters]
        # Brokers and this machine need not agree on the time: the cut decides there.
        window_of = None if log is None else _by_cut(client, window_ms, namespace)
        expected, books, unshown = expected_windows(
            valid, upto_ms, window_ms, window_of
        )
        # The job may have started on an empty log, before the first trade.
        before = {end for end in published if end < min(expected)}
        assert not any(published[end] for end in before)
        for end in published.keys() - before:
            assert published[end] == expected[end], f"window {end}"
        shown = sums_of_items(published)
        assert add_up([*shown.items(), *unshown.items()]) == sums_of_trades(valid)
        assert {name: getattr(ledger.total, name) for name in books} == books
    return Checked(len(published), ledger.total.read, upto_ms)


def check_dead_letters(
    client: redis.Redis,
    ledger: Ledger,
    entries: Iterable[Logged],
    namespace: str = "tt",
) -> set[tuple[int, int]]:
    """Check that every letter is kept once, unchanged, with the right reason.

    Return where they stand in the log.
    """
    logged = {(entry.partition, entry.position): entry for entry in entries}
    found = set()
    for p, books in zip(ledger.upto.partitions, ledger.partitions, strict=True):
        reasons: dict[str, int] = {}
        for place, fields in client.xrange(f"{Keys(namespace).dead(ledger.job)}:{p}"):
            entry = logged.get((p, _position(place)))
            if entry is None:
                # Buried before its batch was published: the job is at it.
                assert _position(place) > ledger.upto.position(p)
                continue
            found.add((p, entry.position))
            assert fields[b"trade"] == entry.payload[:2_048]
            assert int(fields[b"bytes"]) == len(entry.payload)
            if len(entry.payload) > 2_048:
                digest = sha256(entry.payload).hexdigest()
                assert fields[b"sha256"].decode() == digest
            assert int(fields[b"appended"]) == entry.append_ms
            reason = _reason(entry)
            assert reason == fields[b"reason"].decode()
            reasons[reason] = reasons.get(reason, 0) + 1
        if books.unkept:
            assert sum(reasons.values()) + books.unkept == sum(books.refused.values())
            places = logged.items()
            found |= {at for at, e in places if at[0] == p and _reason(e) != "none"}
        else:
            assert reasons == dict(books.refused)
    return found


def valid_entries(client: redis.Redis, namespace: str = "tt") -> list[Logged]:
    """Return the entries of a log in Redis that are no dead letters of the job."""
    dead = {
        (p, _position(place))
        for p in range(64)
        for place, _ in client.xrange(f"{Keys(namespace).dead(JOB)}:{p}")
    }
    entries = logged_in_redis(client, namespace)
    return [e for e in entries if (e.partition, e.position) not in dead]


def _read_up_to(
    client: redis.Redis, ledger: Ledger, log: Log | None, namespace: str
) -> list[Logged]:
    """Return the entries of the log that the job has accounted for."""
    since, upto = ledger.since, ledger.upto
    entries = logged_in_redis(client, namespace) if log is None else log()
    return [
        entry
        for entry in entries
        if since.position(entry.partition)
        < entry.position
        <= upto.position(entry.partition)
    ]


def _by_cut(
    client: redis.Redis, window_ms: int, namespace: str
) -> Callable[[Logged], int]:
    """Return the rule of a log whose stamps need not grow: the cuts, then the stamp."""
    account = read_account(client, namespace=namespace)
    assert account is not None

    def window_of(entry: Logged) -> int:
        number = bisect_left(
            account.batches,
            entry.position,
            key=lambda batch: batch.end.position(entry.partition),
        )
        batch = account.batches[number]
        counted = min(max(entry.append_ms, batch.start.end_ms), batch.end.end_ms - 1)
        return (counted // window_ms + 1) * window_ms

    return window_of


def _reason(entry: Logged) -> str:
    try:
        trade = Trade.from_wire(entry.payload)
        check_not_ahead(trade, entry.append_ms * 1_000, MAX_AHEAD_US)
    except InvalidTrade as error:
        return error.reason
    return "none"


def _position(place: bytes) -> int:
    # Of Redis `<ms>-<n>` of the entry itself, of Kafka `<offset>-1`.
    high, low = map(int, place.split(b"-"))
    return high << 21 | low if high > 1 << 40 else high


def _place(cut: Cut) -> tuple[int, tuple[int, ...]]:
    # Two readings of one cut may differ in whether the log was asked for its counts.
    return cut.end_ms, cut.positions
