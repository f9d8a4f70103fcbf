"""Identities between what was acknowledged, held, read and published."""

from collections.abc import Iterable

from ingest.feed.receipt import Receipt
from ingest.tradelog.contract import AppendTally
from throttle.audit.reconcile import (
    Acknowledged,
    EntryCount,
    Reconciliation,
    acknowledged_in,
    marks,
    reconcile,
)
from throttle.contract.cut import Cut
from throttle.contract.ledger import Books, Ledger


def ledger(
    upto: int = 9,
    books: Books | None = None,
    *,
    since: int = -1,
    partitions: tuple[int, ...] = (0,),
    job: str = "day",
    counts: tuple[int | None, int | None] | None = None,
) -> Ledger:
    """Make the books of a job that has read each partition up to an offset."""
    first, last = (since + 1, upto + 1) if counts is None else counts
    size = len(partitions)
    read = upto - since
    made = Books(read, 1, read - 1) if books is None else books
    return Ledger(
        job,
        Cut(0, (since,) * size, (first,) * size, partitions),
        Cut(2_000, (upto,) * size, (last,) * size, partitions),
        *(1, 1, (made,) * size, (None,) * size, None),
    )


def topic(
    positions: Iterable[int], needed: Iterable[int], gone_upto: int = -1
) -> EntryCount:
    """Count a partition of Kafka."""
    count = EntryCount.begin(needed, gone_upto + 1, gone_upto, is_dense=True)
    count.add([p for p in positions if p > gone_upto])
    return count


def stream(
    positions: Iterable[int], needed: Iterable[int], gone: int = 0
) -> EntryCount:
    """Count a partition of Redis that has lost its first entries."""
    left = list(positions)
    upto = left[gone] - 1 if gone < len(left) else left[-1]
    count = EntryCount.begin(needed, gone, upto if gone else -1, is_dense=False)
    count.add(left[gone:])
    return count


def receipt(
    acknowledged: int,
    first: int | None = None,
    last: int | None = None,
    in_doubt: int = 0,
    *,
    ended: bool = True,
) -> Receipt:
    """Make what a feed tells of a log of one partition."""
    tally = AppendTally(acknowledged, first, last, in_doubt)
    return Receipt("id", 0, 1, ended, {}, 0, (tally,))


def check(
    book: Ledger,
    positions: Iterable[int] = range(10),
    *receipts: Receipt,
    gone_upto: int = -1,
    has_others: bool = False,
) -> Reconciliation:
    """Reconcile one partition of Kafka with one job."""
    needed = marks([book], receipts, [0])[0]
    given = {f"{n}.json": one for n, one in enumerate(receipts)} or None
    stocks = {0: topic(positions, needed, gone_upto)}
    return reconcile([book], stocks, given, has_others=has_others)


def test_what_all_have_counted_alike_is_right() -> None:
    """Acknowledged, held, read and published."""
    found = check(ledger(), range(10), receipt(10, 0, 9))
    assert (found.is_right, found.problems, found.notes) == (True, [], [])
    [account] = found.accounts
    assert (account.partition, account.job, account.acknowledged) == (0, "day", 10)
    assert (account.held, account.trimmed, account.books.read, account.waiting) == (
        10,
        0,
        10,
        0,
    )
    assert found.totals()["total"].held == 10


def test_what_waits_to_be_read_is_shown_and_no_difference() -> None:
    """The log is ahead of the job."""
    found = check(ledger(), range(14), receipt(14, 0, 13))
    assert found.is_right
    assert (found.accounts[0].held, found.accounts[0].waiting) == (14, 4)


def test_what_was_trimmed_after_it_was_read_is_counted_by_the_log() -> None:
    """Half of it, or all of it."""
    for gone_upto, trimmed in ((4, 5), (9, 10)):
        found = check(ledger(), range(12), gone_upto=gone_upto)
        assert found.is_right
        assert found.accounts[0].trimmed == trimmed
        assert found.accounts[0].waiting == 2
    assert check(ledger(since=4), range(10), gone_upto=3).accounts[0].trimmed == 0


def test_what_was_deleted_before_it_was_read_is_a_difference() -> None:
    """Before the job comes to it, and after."""
    found = check(ledger(), range(20), gone_upto=12)
    assert found.problems == [
        "partition 0, job day: 3 entries behind the newest cut were deleted before "
        "they were read"
    ]
    assert found.accounts[0].waiting == 7
    after = check(ledger(19, Books(17, 17)), range(20), gone_upto=12)
    assert after.problems == [
        "partition 0, job day: the log holds 7 entries up to the newest cut and 13 "
        "were trimmed, 17 were read",
        "partition 0, job day: the log counted 20 entries up to the newest cut, 17 "
        "were read",
    ]


def test_blanks_are_no_entries_whether_they_are_left_or_gone() -> None:
    """Marks of transactions, and keys that came again."""
    book = ledger(books=Books(7, 7, blanks=3))
    positions = [0, 1, 3, 4, 6, 7, 9]
    for gone_upto, trimmed in ((-1, 0), (2, 2), (4, 4), (9, 7)):
        found = check(book, positions, gone_upto=gone_upto)
        assert found.problems == []
        assert found.accounts[0].trimmed == trimmed


def test_an_entry_that_went_missing_within_the_log_is_a_difference() -> None:
    """Nothing was trimmed, and yet there are fewer than were read."""
    found = check(ledger(), [0, 1, 2, 3, 5, 6, 7, 8, 9])
    assert found.problems == [
        "partition 0, job day: the log holds 9 entries up to the newest cut and 0 "
        "were trimmed, 10 were read"
    ]


def test_what_was_read_and_is_not_accounted_for_is_a_difference() -> None:
    """The ledger's own sum."""
    found = check(ledger(books=Books(10, 4, 3, 1, {"not_json": 1})))
    assert found.problems == [
        "partition 0, job day: 10 trades were read, 9 are accounted for"
    ]


def test_acknowledged_trades_that_are_missing_are_a_difference() -> None:
    """Whatever else is allowed for."""
    lost = receipt(11, 0, 9, in_doubt=5, ended=False)
    found = check(ledger(), range(10), lost, has_others=True)
    assert found.problems == [
        "partition 0: 11 trades were acknowledged, the log has had 10 where they "
        "should be: 1 are missing"
    ]


def test_entries_of_other_producers_are_a_difference_unless_allowed_for() -> None:
    """Among the acknowledged ones; beyond them they are mentioned."""
    sentence = (
        "partition 0: 2 entries of other producers are among those acknowledged; no "
        "receipt accounts for them"
    )
    assert check(ledger(), range(10), receipt(8, 0, 9)).problems == [sentence]
    found = check(ledger(), range(10), receipt(8, 0, 9), has_others=True)
    assert (found.problems, found.notes) == ([], [sentence])
    found = check(ledger(), range(10), receipt(6, 2, 7))
    assert found.is_right
    assert found.notes == [
        "partition 0: 4 entries lie outside of what the receipts cover"
    ]


def test_what_was_in_doubt_may_be_in_the_log_or_not() -> None:
    """Up to as many as were in doubt."""
    found = check(ledger(), range(10), receipt(8, 0, 9, in_doubt=3))
    assert found.is_right
    assert found.notes == [
        "partition 0: 2 entries more than acknowledged, of 3 that were in doubt"
    ]
    assert check(ledger(), range(10), receipt(10, 0, 9, in_doubt=3)).notes == []
    found = check(ledger(), range(10), receipt(6, 0, 9, in_doubt=3))
    assert "1 entries of other producers" in found.problems[0]


def test_receipts_of_several_feeds_are_added_up() -> None:
    """Side by side or one after the other; what lies between is of others."""
    feeds = [receipt(3, 0, 4), receipt(2, 2, 4), receipt(2, 8, 9), receipt(0)]
    assert acknowledged_in(feeds, 0) == Acknowledged(7, 0, ((-1, 4), (7, 9)))
    assert acknowledged_in(feeds, 1) == Acknowledged(0, 0, ())
    found = check(ledger(), range(10), *feeds)
    assert found.is_right
    assert found.accounts[0].acknowledged == 7
    assert "3 entries lie outside" in found.notes[0]


def test_feeds_that_run_side_by_side_may_have_appended_more_since() -> None:
    """A receipt that is older than another one's is no proof of other producers."""
    old, new = receipt(4, 0, 4, ended=False), receipt(3, 1, 9, ended=False)
    found = check(ledger(), range(10), old, new)
    assert found.is_right
    assert "3 entries more than acknowledged: feeds that have not" in found.notes[0]
    # Up to where the older one tells, both have told of all.
    found = check(ledger(), range(10), receipt(1, 0, 4, ended=False), new)
    assert "1 entries of other producers" in found.problems[0]
    ended = receipt(4, 0, 4)
    assert not check(ledger(), range(10), ended, new).is_right
    begun = receipt(0, ended=False)
    assert check(ledger(), range(10), begun, receipt(3, 0, 9)).is_right
    assert check(ledger(), range(10), begun).is_right
    assert check(ledger(), range(10), old, new, gone_upto=6).is_right
    found = check(ledger(), range(10), receipt(9, 0, 4, ended=False), new)
    assert "2 are missing" in found.problems[0]


def test_what_was_acknowledged_and_trimmed_still_counts() -> None:
    """By the positions of Kafka exactly, blanks taken from the books."""
    for gone_upto in (4, 9):
        found = check(ledger(), range(10), receipt(10, 0, 9), gone_upto=gone_upto)
        assert (found.problems, found.notes) == ([], [])
        found = check(ledger(), range(10), receipt(11, 0, 9), gone_upto=gone_upto)
        assert "1 are missing" in found.problems[0]
        found = check(ledger(), range(10), receipt(9, 0, 9), gone_upto=gone_upto)
        assert "1 entries of other producers" in found.problems[0]
    book = ledger(books=Books(8, 8, blanks=2))
    found = check(book, [0, 1, 4, 5, 6, 7, 8, 9], receipt(8, 0, 9), gone_upto=4)
    assert found.is_right


def test_a_receipt_that_is_not_final_or_lost_trades_is_mentioned() -> None:
    """With the name of its file."""
    running = Receipt(
        "id", 0, 1, False, {"too_large": 2, "unsent": 3}, 7, (AppendTally(10, 0, 9),)
    )
    found = check(ledger(), range(10), running)
    assert found.is_right
    assert found.notes == [
        "0.json: the feed runs or was killed; it may have appended more since",
        "0.json: the log refused 2 trades, too_large",
        "0.json: the feed ended before it had sent 3 trades",
        "0.json: the feed dropped 7 entries to keep the log within its cap",
    ]


ENDS = [n << 21 for n in range(1, 11)]


def check_stream(book: Ledger, gone: int = 0, *receipts: Receipt) -> Reconciliation:
    """Reconcile one partition of Redis with one job."""
    needed = marks([book], receipts, [0])[0]
    given = {f"{n}.json": one for n, one in enumerate(receipts)} or None
    return reconcile([book], {0: stream(ENDS, needed, gone)}, given)


def stream_ledger(
    upto: int = 9, since: int = 0, counts: tuple[int | None, int | None] = (0, 10)
) -> Ledger:
    """Make the books of a job that has read a stream up to an entry."""
    book = Books(upto + 1, upto + 1)
    return ledger(ENDS[upto], book, since=since, counts=counts)


def test_entries_that_redis_trimmed_are_known_by_its_own_count() -> None:
    """Positions there tell of time, not of number."""
    for gone in (0, 4, 10):
        found = check_stream(stream_ledger(), gone)
        assert found.problems == []
        assert found.accounts[0].trimmed == gone
    found = check_stream(stream_ledger(6, counts=(0, 7)), 9)
    assert found.problems == [
        "partition 0, job day: 2 entries behind the newest cut were deleted before "
        "they were read"
    ]
    assert check_stream(stream_ledger(6, counts=(0, 7)), 5).accounts[0].waiting == 3


def test_a_cut_without_a_count_is_compared_while_its_entries_are_left() -> None:
    """Then nobody knows how many there were."""
    book = stream_ledger(6, counts=(0, None))
    assert check_stream(book, 3).is_right
    assert check_stream(stream_ledger(counts=(None, 10))).is_right
    for broken, gone in ((book, 8), (stream_ledger(counts=(None, 10)), 3)):
        found = check_stream(broken, gone)
        assert found.problems == [
            "partition 0, job day: nobody knows how many entries were trimmed since "
            "its first cut"
        ]
        assert found.accounts[0].trimmed is None
        assert found.totals()["total"].trimmed is None


def test_of_trimmed_entries_in_redis_only_the_number_is_known() -> None:
    """More than there were cannot have been acknowledged; fewer may have been."""
    span = ENDS[1], ENDS[9]
    for acknowledged, notes, problems in (
        (10, 0, 0),
        (8, 1, 0),
        (11, 0, 1),
        (5, 0, 1),
    ):
        found = check_stream(stream_ledger(), 4, receipt(acknowledged, *span))
        assert (len(found.notes), len(found.problems)) == (notes, problems)
    # A job that began later than the feed has not counted all that went before.
    late = ledger(ENDS[9], Books(6, 6), since=ENDS[3], counts=(4, 10))
    assert check_stream(late, 5, receipt(9, *span)).is_right


def test_jobs_side_by_side_have_one_sum_and_a_partition_nobody_reads_is_named() -> None:
    """Every partition counts once."""
    even, odd = ledger(partitions=(0, 2)), ledger(partitions=(1,), job="odd")
    needed = marks([even, odd], [], range(4))
    stocks = {p: topic(range(10), needed[p]) for p in range(4)}
    found = reconcile([even, odd], stocks)
    assert [(account.partition, account.job) for account in found.accounts] == [
        *((0, "day"), (1, "odd"), (2, "day"), (3, None))
    ]
    assert found.problems == ["partition 3: no job reads it; it holds 10 entries"]
    assert found.totals()["total"].held == 40
    assert found.totals()["total"].books.read == 30


def test_jobs_that_read_the_same_have_a_sum_each() -> None:
    """Whenever each of them began."""
    one, other = ledger(), ledger(since=4, job="night")
    needed = marks([one, other], [], [0])
    found = reconcile([one, other], {0: topic(range(10), needed[0])})
    assert found.is_right
    assert {name: account.held for name, account in found.totals().items()} == {
        "total day": 10,
        "total night": 5,
    }


def count(gone_upto: int = -1, is_dense: bool = True) -> EntryCount:
    """Count entries at 3, 4, 6, 7 and 9, in two pieces."""
    made = EntryCount.begin([9, -1, 4, 5], gone_upto + 1, gone_upto, is_dense)
    for positions in ([3, 4, 6], [], [7, 9]):
        made.add(positions)
    assert made.entries == 5
    return made


def test_entries_are_counted_at_every_mark() -> None:
    """A mark belongs to what is before it, be it an entry or not."""
    assert count().counts == {-1: 0, 4: 2, 5: 2, 9: 5}
    assert count().between(-1, 4) == 2
    assert count().between(5, 9) == 3
    assert count().between(9, 4) == 0
    assert count().behind(4) == 3


def test_in_a_dense_log_what_is_left_and_no_entry_is_a_blank() -> None:
    """What is gone is neither."""
    assert count().blanks(-1, 9) == 5
    assert count(gone_upto=2).blanks(-1, 9) == 2
    assert count(gone_upto=2).blanks(4, 9) == 2
    assert count(gone_upto=20).blanks(-1, 9) == 0
    assert count(is_dense=False).blanks(-1, 9) == 0
