"""A published window against the same window computed again.

Pure. What cannot be judged is counted as that, never as right.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from throttle.ledger import BatchEntry
from throttle.rebuild import Rebuilt
from throttle.snapshot import Row, WindowSnapshot

Kind = Literal["missing", "extra", "wrong"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that is not what it should be.

    ``missing``: it should have been published; ``extra``: it should not;
    ``wrong``: it was published with another trade, count or content.
    """

    kind: Kind
    offset: int
    window: int
    isin: str
    expected: Row | None
    published: Row | None


class Published:
    """The newest version published of each issue, as far as that is known.

    ``before`` holds what was published before the windows that are looked at,
    ``unknown`` the issues of which that is not known.
    """

    def __init__(self, before: Mapping[str, bytes], unknown: Iterable[str]) -> None:
        self._newest = dict(before)
        self._unknown = set(unknown)

    def is_news(self, row: Row) -> bool | None:
        """Tell whether a row is newer than all before it; None if nobody knows."""
        if row.isin in self._unknown:
            return None
        return row.version > self._newest.get(row.isin, b"")

    def learn(self, rows: Iterable[Row]) -> None:
        """Take in a published window; from then on its issues are known."""
        for row in rows:
            self._unknown.discard(row.isin)
            if row.version > self._newest.get(row.isin, b""):
                self._newest[row.isin] = row.version


def judge(
    snapshot: WindowSnapshot, computed: Mapping[str, Row], before: Published
) -> tuple[list[Difference], int]:
    """Compare a published window with the computed one, issue by issue.

    Returns the differences and the number of rows that cannot be judged: computed,
    not published, and nobody knows whether they were news.
    """
    published = {row.isin: row for row in snapshot.rows}
    differences, undecided = [], 0
    for isin in sorted(computed.keys() | published.keys()):
        expected, found = computed.get(isin), published.get(isin)
        if found is None:
            is_news = before.is_news(computed[isin])
            undecided += is_news is None
            kind: Kind | None = "missing" if is_news else None
        elif expected is None:
            kind = "extra"
        elif found != expected:
            kind = "wrong"
        elif before.is_news(found) is False:
            kind, expected = "extra", None
        else:
            kind = None
        if kind is not None:
            at = snapshot.offset, snapshot.window
            differences.append(Difference(kind, *at, isin, expected, found))
    return differences, undecided


def compare_books(batch: BatchEntry, made: Rebuilt, lost: Container[int]) -> list[str]:
    """Say in one sentence each where a batch's books differ from its entries.

    ``lost`` are the partitions whose entries are not all in the log any more.
    """
    problems = []
    for p, books in zip(batch.end.partitions, batch.partitions, strict=True):
        if p in lost:
            continue
        refused = dict(made.refused.get(p, {}))
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
    return problems
