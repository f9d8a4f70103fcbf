"""Past windows against the trade log: what can be judged, and what cannot."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isnan

import pytest

from ingest.tradelog.contract import Ranges
from tests.gateway.samples import make_isins
from tests.throttle.past import (
    FIRST_MS,
    A,
    B,
    W,
    make_batch,
    make_cut,
    make_entry,
    make_row,
    make_snapshot,
    make_trade,
)
from throttle.audit.compare import PublishedVersions
from throttle.audit.recompute import Entry, WindowRule
from throttle.audit.verify import (
    SHOWN,
    TRIMMED_BATCHES,
    TRIMMED_LOG,
    TRIMMED_WINDOWS,
    Verification,
    VerificationReport,
    gaps,
    ledger_problems,
)
from throttle.contract.ledger import BatchEntry, Books, Ledger
from throttle.contract.snapshot import WindowSnapshot

ENTRIES = [make_entry(make_trade(A, n), n * W + 10) for n in range(4)]
ENDS = [entry.position for entry in ENTRIES]
"""One trade in each of four windows."""

FIRST = make_batch(
    make_cut(0, (0,), (0,)), make_cut(1, (ENDS[0],), (1,)), [Books(1, 1)]
)
REST = make_batch(
    make_cut(1, (ENDS[0],), (1,)), make_cut(4, (ENDS[3],), (4,)), [Books(3, 3)]
)
WINDOWS = [make_snapshot(n + 1, make_row(entry)) for n, entry in enumerate(ENTRIES)]


STALE = make_entry(make_trade(A, 0), 2 * W + 10)
RESTATES = make_row(ENTRIES[1])._replace(sums=b"1,5,50,10,10")
"""What the window of a late trade says, after the second window."""


class Left:
    """What is left of a log of one partition."""

    def __init__(self, entries: Sequence[Entry] = ENTRIES) -> None:
        self._entries = entries

    def between(self, ranges: Ranges) -> Iterable[Entry]:
        """Return the entries of a range."""
        [(after, upto)] = ranges.values()
        return [e for e in self._entries if after < e.position <= upto]

    def fronts(self, partitions: Iterable[int]) -> Mapping[int, Entry | None]:
        """Return the oldest entry."""
        return {p: self._entries[0] if self._entries else None for p in partitions}


def check(
    windows: Iterable[WindowSnapshot] = WINDOWS,
    batches: Sequence[BatchEntry] = (FIRST, REST),
    left: Left | None = None,
    first_ms: int = 0,
    last_ms: int = FIRST_MS + 100 * W,
    oldest_offset: int | None = 1,
    unknown: Iterable[str] = (),
) -> VerificationReport:
    """Compare some windows."""
    rule = WindowRule(W, 5_000)
    verification = Verification(
        batches, left or Left(), rule, first_ms, last_ms, keeps_first_news=True
    )
    before = PublishedVersions({}, unknown)
    return verification.run(windows, before, lambda: oldest_offset)


def test_windows_that_are_right_are_equal() -> None:
    """Of one window per batch and of several."""
    report = check()
    assert (report.compared, report.equal, report.rows) == (4, 4, 4)
    assert report.is_right
    assert not report.not_comparable


def test_only_the_windows_asked_for_are_compared() -> None:
    """Both ends are included; the others still tell what was news."""
    entries = [*ENTRIES[:2], STALE, ENTRIES[3]]
    windows = [*WINDOWS[:2], make_snapshot(3, RESTATES), WINDOWS[3]]
    report = check(
        windows,
        left=Left(entries),
        first_ms=FIRST_MS + 2 * W,
        last_ms=FIRST_MS + 3 * W,
    )
    assert (report.compared, report.equal) == (2, 2)
    assert report.is_right


def test_a_difference_is_counted_shown_and_not_right() -> None:
    """A window that differs is not equal."""
    report = check([WINDOWS[0], make_snapshot(2), *WINDOWS[2:]])
    assert (report.compared, report.equal) == (4, 3)
    assert report.counts == {"missing": 1}
    assert [(d.offset, d.isin) for d in report.differences] == [(2, A)]
    assert not report.is_right


def test_of_many_differences_the_first_are_shown_and_all_counted() -> None:
    """A report stays readable."""
    isins = make_isins(SHOWN + 5)
    rows = [make_row(make_entry(make_trade(isin, 1), 5)) for isin in isins]
    report = check([make_snapshot(1, *rows), *WINDOWS[1:]])
    assert report.counts == {"missing": 1, "extra": SHOWN + 5}
    assert len(report.differences) == SHOWN


def test_trades_that_are_not_last_are_counted_by_their_name() -> None:
    """A row that restates for them is neither news nor stale."""
    aside = make_entry(make_trade(A, 9, updates="none"), 2 * W + 5)
    restates = make_row(ENTRIES[1])._replace(sums=b"1,0,0,,")
    windows = [*WINDOWS[:2], make_snapshot(3, restates), WINDOWS[3]]
    rest = replace(REST, partitions=(Books(3, 2, not_last=1),))
    entries = [*ENTRIES[:2], aside, ENTRIES[3]]
    report = check(windows, [FIRST, rest], Left(entries))
    books = report.books
    assert (report.equal, report.is_right) == (4, True)
    assert (books.published, books.stale, books.not_last) == (3, 0, 1)


def test_an_undecided_row_makes_its_window_not_equal() -> None:
    """What nobody can judge is never counted as right."""
    newer = make_entry(make_trade(A, 1), -W)
    restates = make_row(newer)._replace(sums=RESTATES.sums)
    report = check([make_snapshot(1, restates)], [FIRST], unknown=[A])
    assert (report.compared, report.equal, report.undecided) == (1, 0, 1)
    assert report.is_right


def test_trades_that_were_trimmed_make_a_window_not_comparable() -> None:
    """The first batch is gone; of the second only its first window."""
    report = check(left=Left(ENTRIES[2:]))
    assert report.not_comparable == {TRIMMED_LOG: 3}
    assert (report.compared, report.equal) == (1, 1)
    assert report.problems == []


def test_a_log_without_counts_is_complete_when_all_that_was_read_is_there() -> None:
    """The books say how many there were."""
    start, end = make_cut(0, (0,)), make_cut(4, (ENDS[3],))
    whole = make_batch(start, end, [Books(4, 4)])
    assert check(batches=[whole]).is_right
    assert check(batches=[whole], left=Left(ENTRIES[1:])).not_comparable


def test_a_trade_that_was_not_read_is_a_problem_of_the_books() -> None:
    """An entry of the log that the job never saw."""
    unread = make_entry(make_trade(B, 1), 5)
    report = check(left=Left([unread, *ENTRIES]))
    assert "the log holds 2 entries between its cuts, 1 were" in report.problems[0]
    assert report.counts == {"missing": 1}
    assert not report.is_right


def test_a_batch_that_read_more_than_the_log_ever_had_is_a_problem() -> None:
    """Nothing was trimmed: an older entry is still there."""
    older = make_entry(make_trade(B, 1), -5)
    start = make_cut(0, (older.position,), (1,))
    batch = make_batch(start, make_cut(1, (ENDS[0],), (3,)), [Books(2, 2)])
    report = check(WINDOWS[:1], [batch], Left([older, *ENTRIES]))
    assert "the log holds 1 entries between its cuts" in report.problems[0]


def test_a_window_that_is_not_the_one_its_batch_was_cut_for_is_a_problem() -> None:
    """A window under another's offset."""
    report = check([*WINDOWS[:3], make_snapshot(4, end=FIRST_MS + 9 * W)])
    assert f"offset 4: published is the window {FIRST_MS + 9 * W}" in report.problems[0]
    assert report.compared == 3


@pytest.mark.parametrize(("oldest", "trimmed"), [(3, 2), (None, 2), (1, 0)])
def test_a_window_that_is_not_there_was_trimmed_or_is_a_problem(
    oldest: int | None, trimmed: int
) -> None:
    """Only the oldest windows may be gone."""
    report = check(WINDOWS[2:], oldest_offset=oldest)
    assert report.not_comparable[TRIMMED_WINDOWS] == trimmed
    assert len(report.problems) == 2 - trimmed


def test_windows_before_the_recorded_batches_cannot_be_compared() -> None:
    """Which entries they hold is not known any more."""
    report = check(batches=[REST])
    assert report.not_comparable == {TRIMMED_BATCHES: 1}
    assert report.equal == 3


def test_windows_of_another_job_are_told_apart() -> None:
    """They are in no batch of this job, though its batches are around them."""
    rest = make_batch(REST.start, REST.end, REST.partitions, offset=6)
    theirs = [make_snapshot(n, end=FIRST_MS + 4 * W) for n in (2, 3)]
    mine = [make_snapshot(n + 3, make_row(ENTRIES[n]), end=None) for n in (1, 2, 3)]
    moved = [
        make_snapshot(s.offset, *s.rows, end=FIRST_MS + (n + 2) * W)
        for n, s in enumerate(mine)
    ]
    report = check([WINDOWS[0], *theirs, *moved], [FIRST, rest])
    assert report.others == 2
    assert (report.compared, report.equal) == (4, 4)


def test_windows_published_since_the_batches_were_read_are_left_alone() -> None:
    """The job goes on while it is looked at."""
    report = check(batches=[FIRST])
    assert (report.compared, report.others) == (1, 0)
    assert report.is_right


def test_a_batch_that_does_not_begin_where_the_last_ended_is_a_problem() -> None:
    """Trades between two batches would be in no window."""
    assert gaps([FIRST, REST]) == []
    late = make_batch(make_cut(2, (ENDS[1],), (2,)), REST.end, [Books(2, 2)])
    assert gaps([FIRST, late])[0].startswith("batch 4 begins at the cut")


def test_the_report_counts_what_became_of_the_trades_by_the_log() -> None:
    """And when what was news of each row was appended."""
    entries = [*ENTRIES[:2], STALE, ENTRIES[3], make_entry(b"?", 3 * W + 20)]
    end = make_cut(4, (entries[4].position,), (5,))
    books = [Books(4, 2, 0, 1, {"not_json": 1})]
    windows = [*WINDOWS[:2], make_snapshot(3, RESTATES), WINDOWS[3]]
    report = check(windows, [FIRST, make_batch(REST.start, end, books)], Left(entries))
    assert report.is_right
    assert report.books == Books(5, 3, 0, 1, {"not_json": 1})
    assert report.instruments == {A}
    news_ms = {offset: list(times) for offset, times in report.first_news_ms.items()}
    appended_ms = [[e.append_ms] for e in ENTRIES]
    [none] = news_ms.pop(3)
    assert isnan(none)
    assert news_ms == {1: appended_ms[0], 2: appended_ms[1], 4: appended_ms[3]}


def test_when_an_unknown_row_was_news_is_not_known() -> None:
    """Nobody knows what had been published of it before."""
    [time_ms] = check(unknown=[A]).first_news_ms[1]
    assert isnan(time_ms)


def ledger_of(books: Books, windows: int) -> Ledger:
    """Make a ledger."""
    return Ledger("j", FIRST.start, REST.end, 1, windows, (books,), (None,), None)


def test_a_ledger_moves_as_the_log_says() -> None:
    """Figure by figure; where windows could not be compared nothing is said."""
    before = ledger_of(Books(10, 3, 4, 1, {"empty": 2}), 7)
    after = ledger_of(Books(14, 7, 4, 1, {"empty": 2}), 11)
    assert ledger_problems(before, after, check()) == []
    wrong = ledger_of(Books(14, 6, 4, 1, {"empty": 2, "bad_isin": 1}), 12)
    assert ledger_problems(before, wrong, check()) == [
        "books: 5 windows, by the log 4",
        "books: 3 trades published, by the log 4",
        "books: 1 trades refused as bad_isin, by the log 0",
    ]
    assert ledger_problems(before, wrong, check(left=Left([]))) == []
