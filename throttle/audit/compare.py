"""A published window against the same window computed again. Pure.

What cannot be judged is counted as that, never as right.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ingest.issue_table.known_issues import Issues
from throttle.audit.recompute import ComputedRow, RecomputedBatch
from throttle.contract.ledger import BatchEntry
from throttle.contract.snapshot import Row, WindowSnapshot
from throttle.contract.trade_order import is_newer
from throttle.window.decoder import OTHER

Kind = Literal["missing", "extra", "wrong"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that is not what it should be.

    ``missing``: it should have been published; ``extra``: it should not, or not twice;
    ``wrong``: it was published with another trade, count or content.
    """

    kind: Kind
    offset: int
    window: int
    isin: str
    expected: Row | None
    published: Row | None

    def __str__(self) -> str:
        expected, published = _words(self.expected), _words(self.published)
        return (
            f"window {self.window}, {self.isin}: {self.kind}: published is "
            f"{published}, by the log it is {expected}"
        )


class PublishedVersions:
    """The newest version published of each issue, as far as that is known.

    ``before`` holds what was published before the windows that are looked at,
    ``unknown`` the issues of which that is not known.
    """

    def __init__(
        self, before: Mapping[str, bytes] | None = None, unknown: Iterable[str] = ()
    ) -> None:
        self._newest = dict(before or {})
        self._unknown = set(unknown)

    def newest(self, isin: str) -> bytes | None:
        """Return an issue's newest version, None if there is none or nobody knows."""
        return self._newest.get(isin)

    def is_news(self, row: Row) -> bool | None:
        """Tell whether a row is newer than all before it; None if nobody knows."""
        if row.isin in self._unknown:
            return None
        return is_newer(row.version, self._newest.get(row.isin))

    def learn(self, rows: Iterable[Row]) -> None:
        """Take in a published window; from then on its issues are known."""
        for row in rows:
            self._unknown.discard(row.isin)
            if is_newer(row.version, self._newest.get(row.isin)):
                self._newest[row.isin] = row.version


class WindowVerdict(NamedTuple):
    """What a window is like.

    ``undecided`` rows were computed and not published, and nobody knows whether they
    were news; ``stale`` ones were none, and rightly not published.
    """

    differences: list[Difference]
    undecided: int = 0
    stale: int = 0


def judge(
    snapshot: WindowSnapshot,
    computed: Mapping[str, ComputedRow],
    before: PublishedVersions,
) -> WindowVerdict:
    """Compare a published window with the computed one, issue by issue."""
    at = snapshot.offset, snapshot.window
    differences: list[Difference] = []
    published: dict[str, Row] = {}
    for row in snapshot.rows:
        if row.isin in published:
            differences.append(Difference("extra", *at, row.isin, None, row))
        published[row.isin] = row
    undecided = stale = 0
    for isin in sorted(computed.keys() | published.keys()):
        row_of_log = computed[isin].row if isin in computed else None
        row_sent = published.get(isin)
        kind: Kind | None = None
        expected = row_of_log
        if row_sent is None:
            is_news = None if row_of_log is None else before.is_news(row_of_log)
            undecided += is_news is None
            stale += is_news is False
            kind = "missing" if is_news else None
        elif row_of_log is None:
            kind = "extra"
        elif row_sent != row_of_log:
            kind = "wrong"
        elif before.is_news(row_sent) is False:
            kind, expected = "extra", None
        if kind is not None:
            differences.append(Difference(kind, *at, isin, expected, row_sent))
    return WindowVerdict(differences, undecided, stale)


def compare_books(
    batch: BatchEntry,
    made: RecomputedBatch,
    lost: Container[int],
    issues: Issues | None = None,
) -> list[str]:
    """Say in one sentence each where a batch's books differ from its entries.

    ``lost`` are the partitions whose entries are not all in the log any more,
    ``issues`` is the issue table that it was joined with, if that is known.
    """
    problems = []
    for p, books in zip(batch.end.partitions, batch.partitions, strict=True):
        if p in lost:
            continue
        refused = dict(made.refused.get(p, {}))
        skipped = made.skipped.get(p, Counter())
        name = f"batch {batch.offset}, partition {p}"
        if books.read != made.read[p]:
            problems.append(
                f"{name}: the log holds {made.read[p]} entries between its cuts, "
                f"{books.read} were read"
            )
        elif dict(books.refused) != refused:
            problems.append(
                f"{name}: {dict(books.refused)} were refused, by the rules {refused}"
            )
        elif not _same_names(books.skipped, skipped) or books.extra != made.extra[p]:
            problems.append(
                f"{name}: {dict(books.skipped)} were skipped and {books.extra} trades "
                f"came beside others in an entry, by the rules {dict(skipped)} and "
                f"{made.extra[p]}"
            )
        elif books.superseded != made.superseded[p]:
            problems.append(
                f"{name}: {books.superseded} were superseded, "
                f"by the rules {made.superseded[p]}"
            )
        elif issues is not None and batch.end.issues:
            unknown = sum(
                trades
                for (partition, isin), trades in made.issues.items()
                if partition == p and issues.get(isin) is None
            )
            if books.unknown_issue != unknown:
                problems.append(
                    f"{name}: {books.unknown_issue} trades were of unknown issues, by "
                    f"the issue table {unknown}"
                )
    return problems


def _same_names(booked: Mapping[str, int], made: Counter[str]) -> bool:
    """Compare what was skipped; a job puts many names together under one."""
    if OTHER in booked:
        return sum(booked.values()) == made.total()
    return dict(booked) == dict(made)


def _words(row: Row | None) -> str:
    return "nothing" if row is None else f"{row.trades} trades, {row.body.decode()}"
