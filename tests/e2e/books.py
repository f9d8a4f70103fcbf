"""What was published and accounted for, checked against the trade log itself."""

import json
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

import redis

from ingest.redis_keys import Keys
from ingest.trade import InvalidTrade, Trade, check_not_ahead
from tests.logged import Logged, logged_in_redis
from tests.oracle import (
    Windows,
    add_up,
    by_append_time,
    expected_windows,
    sums_of_items,
    sums_of_trades,
)
from tests.published import Day, published_windows, read_days
from tests.throttle.standing.standing_oracle import (
    StandingOracle,
    by_windows,
    go_through,
)
from throttle.contract.cut import Cut
from throttle.contract.ledger import BatchEntry, Ledger
from throttle.contract.ledger import add_up as add_up_books

JOB = "throttle"
MOST_ELSE = 50
"""Of so many instruments without anything taken back days are compared, too."""

_TAKE_BACK = (b'"cancels"', b'"corrects"')
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
    """A job's ledger, its batches, its cut and the days so far, read in one step."""

    ledger: Ledger
    batches: tuple[BatchEntry, ...]
    cut: Cut
    days: Mapping[str, Day]


def read_account(
    client: redis.Redis, job: str = JOB, namespace: str = "tt"
) -> Account | None:
    """Return the account of a job, None before its first publish."""
    keys = Keys(namespace)
    with client.pipeline(transaction=True) as pipe:
        pipe.hgetall(keys.ledger(job))
        pipe.xrange(keys.batches(job))
        pipe.hget(keys.meta, f"cut:{job}")
        pipe.hgetall(keys.days_so_far)
        stored, entries, cut, days = pipe.execute()
    ledger = Ledger.decode(job, stored)
    if ledger is None:
        return None
    batches = tuple(BatchEntry.decode(*entry) for entry in entries)
    return Account(ledger, batches, Cut.from_offset(json.loads(cut)), read_days(days))


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
    return check_account(client, account, namespace, log)


def check_account(
    client: redis.Redis, account: Account, namespace: str, log: Log | None
) -> Ledger:
    """Check an account as ``check_books`` does."""
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
    For one job that has published the whole stream. The days so far are compared, too,
    and what instruments show of which trades were taken back.
    """
    account = read_account(client, namespace=namespace)
    assert account is not None
    ledger = check_account(client, account, namespace, log)
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
        taken = check_what_stands(account, valid, published, window_ms, window_of)
        trades = [entry for entry in valid if not _is_cancel(entry)]
        expected, books, unshown = expected_windows(
            trades, upto_ms, window_ms, window_of
        )
        # The job may have started on an empty log, before the first trade.
        before = {end for end in published if end < min(expected)}
        assert not any(published[end] for end in before)
        for end in published.keys() - before:
            both = (window[end] for window in (published, expected))
            shown, wanted = ({i: w[i] for i in w.keys() - taken} for w in both)
            assert shown == wanted, f"window {end}"
        sums = add_up([*sums_of_items(published).items(), *unshown.items()])
        of_trades = sums_of_trades(trades)
        # Those of the others were compared window by window.
        assert {i: sums.get(i) for i in of_trades.keys() - taken} == {
            i: of_trades[i] for i in of_trades.keys() - taken
        }
        counted = {name: getattr(ledger.total, name) for name in books}
        # What takes a trade back decides whether others of its window are stale.
        assert sum(counted.values()) == sum(books.values())
        assert taken or counted == books
    return Checked(len(published), ledger.total.read, upto_ms)


def check_what_stands(
    account: Account,
    entries: Iterable[Logged],
    published: Windows,
    window_ms: int,
    window_of: Callable[[Logged], int] | None,
) -> set[str]:
    """Compare instruments of which trades are taken back; return which those are.

    Each batch shows the newest trade that stands, and the day so far has what stands of
    it, of these and some others. The books count what was taken back.
    """
    window_of = window_of or by_append_time(window_ms)
    placed = by_windows(entries, window_of)
    of_each: dict[str, list[Logged]] = {}
    for (_, isin), logged in placed.items():
        of_each.setdefault(isin, []).extend(logged)
    taken = {
        isin
        for isin, logged in of_each.items()
        if any(word in one.payload for one in logged for word in _TAKE_BACK)
    }
    chosen = taken.union(sorted(of_each)[:MOST_ELSE])
    oracles = {isin: StandingOracle() for isin in chosen}
    batches = [
        range(batch.start.end_ms + window_ms, batch.end.end_ms + 1, window_ms)
        for batch in account.batches
    ]
    rows = {end: published.get(end, {}) for ends in batches for end in ends}
    deque(go_through(batches, placed, rows, oracles), maxlen=0)
    for isin in chosen & account.days.keys():
        day = account.days[isin]
        found = oracles[isin].day(lambda one, day=day: window_of(one) > day.start_ms)
        assert (day.sums, day.open) == found, (isin, day, found)
    total = account.ledger.total
    assert total.taken_back == sum(one.taken_back for one in oracles.values())
    assert total.unknown_target == sum(one.unknown for one in oracles.values())
    return taken


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


def _is_cancel(entry: Logged) -> bool:
    return b'"cancels"' in entry.payload


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
