"""What was published and accounted for, checked against the trade log itself."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import redis

from ingest.redis_log import entry_id, position_of, stream_key
from ingest.trade import InvalidTrade, Trade, check_not_ahead
from tests.oracle import expected_windows
from tests.published import published_windows
from throttle.cut import Cut
from throttle.ledger import BatchEntry, Ledger, add_up
from throttle.snapshot import Keys

JOB = "throttle"
MAX_AHEAD_US = 5_000_000


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


def check_books(client: redis.Redis, job: str = JOB, namespace: str = "tt") -> Ledger:
    """Check that every trade up to the job's cut is accounted for; return its ledger.

    Per partition: what was read is what became of it, and what the log holds there.
    The batches follow each other without a hole, and they add up to the ledger.
    Neither log nor batches may have been trimmed.
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
    for p, books in enumerate(ledger.partitions):
        assert add_up(batch.partitions[p] for batch in batches) == add_up([books])
        assert books.read == books.accounted
        assert books.read == _entries_in_log(client, namespace, p, ledger)
    return ledger


def check_against_oracle(
    client: redis.Redis, window_ms: int = 2_000, namespace: str = "tt"
) -> Checked:
    """Compare every published window with the oracle, and the books with the log.

    The feed may go on meanwhile: nothing can be added to a window that was published.
    For one job that has published the whole stream.
    """
    ledger = check_books(client, namespace=namespace)
    upto_ms = ledger.upto.end_ms
    windows = published_windows(client, namespace)
    published = {end: items for end, items in windows.items() if end <= upto_ms}
    assert list(published) == list(range(min(published), upto_ms + 1, window_ms))
    assert min(published) == ledger.since.end_ms + window_ms
    assert ledger.windows == len(published)
    assert ledger.total.published == sum(map(len, published.values()))
    check_dead_letters(client, ledger, namespace)
    if ledger.total.read:
        expected = expected_windows(
            ValidTrades(client, ledger.job, namespace), upto_ms, window_ms, namespace
        )
        # The job may have started on an empty log, before the first trade.
        before = {end for end in published if end < min(expected)}
        assert not any(published[end] for end in before)
        for end in published.keys() - before:
            assert published[end] == expected[end], f"window {end}"
    return Checked(len(published), ledger.total.read, upto_ms)


def check_dead_letters(
    client: redis.Redis, ledger: Ledger, namespace: str = "tt"
) -> None:
    """Check that every refused trade is kept once, unchanged, with the right reason."""
    for p, books in enumerate(ledger.partitions):
        reasons: dict[str, int] = {}
        for place, fields in client.xrange(f"{Keys(namespace).dead(ledger.job)}:{p}"):
            if position_of(place) > ledger.upto.positions[p]:
                # Buried before its batch was published: the job is at it.
                continue
            [(_, entry)] = client.xrange(stream_key(namespace, p), place, place)
            assert fields[b"trade"] == entry[b"trade"]
            assert fields[b"appended"] == place.partition(b"-")[0]
            reason = _reason(entry[b"trade"], place)
            assert reason == fields[b"reason"].decode()
            reasons[reason] = reasons.get(reason, 0) + 1
        assert reasons == dict(books.refused)


class ValidTrades:
    """The trade log as the oracle reads it: without what had to be refused."""

    def __init__(self, client: redis.Redis, job: str, namespace: str) -> None:
        self._client = client
        self._dead = Keys(namespace).dead(job)

    def scan_iter(self, *arguments: Any, **options: Any) -> Iterable[bytes]:
        """Return the names of keys, as the client does."""
        return self._client.scan_iter(*arguments, **options)

    def xrange(self, key: bytes) -> list[tuple[bytes, dict[bytes, bytes]]]:
        """Return the entries of a stream that are no dead letters."""
        partition = key.rsplit(b":", 1)[1].decode()
        letters = self._client.xrange(f"{self._dead}:{partition}")
        dead = {place for place, _ in letters}
        return [entry for entry in self._client.xrange(key) if entry[0] not in dead]


def _reason(payload: bytes, place: bytes) -> str:
    append_us = int(place.split(b"-")[0]) * 1_000
    try:
        check_not_ahead(Trade.from_wire(payload), append_us, MAX_AHEAD_US)
    except InvalidTrade as error:
        return error.reason
    return "none"


def _place(cut: Cut) -> tuple[int, tuple[int, ...]]:
    # Two readings of one cut may differ in whether the log was asked for its counts.
    return cut.end_ms, cut.positions


def _entries_in_log(
    client: redis.Redis, namespace: str, partition: int, ledger: Ledger
) -> int:
    after, upto = (cut.positions[partition] for cut in (ledger.since, ledger.upto))
    if upto <= after:
        return 0
    key = stream_key(namespace, partition)
    return len(client.xrange(key, f"({entry_id(after)}", entry_id(upto)))
