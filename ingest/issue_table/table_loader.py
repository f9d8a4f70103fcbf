"""Reads the issue table as it is now, and has it say what a list says."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ingest.issue_table.day_facts import DayFacts
from ingest.issue_table.issue_change import IssueChange, difference, encode_issue
from ingest.issue_table.issue_entry import BadIssues, IssueEntry
from ingest.issue_table.issue_list import MOST_ISSUES, IssueList
from ingest.issue_table.issue_store import IssueStore, TableLost, TableMoved
from ingest.issue_table.known_issues import Issues

MOST_BYTES = 33_554_432
"""Most bytes of all issues together: every gateway has them in memory."""

_ATTEMPTS = 20

_Choice = Callable[[Issues], list[IssueEntry]]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load has changed: how many issues, and how many it left as they were."""

    added: int
    changed: int
    removed: int
    unchanged: int
    version: int


def read_on(store: IssueStore, known: Issues) -> tuple[Issues, int]:
    """Return the table of now, and how many changes on the way to it are none.

    The table that is known, if nothing has changed. Raises TableAway.
    """
    changes: list[IssueChange] = []
    refused, base, version = 0, known, known.version
    while True:
        try:
            page = store.read(version)
        except TableLost:
            base, changes, version = Issues(), [], 0
            continue
        changes += page.changes
        refused += page.refused
        version = page.version
        if page.is_last:
            break
    if base is known and version == known.version:
        return known, refused
    return base.after(changes).at(version), refused


def changes_of(store: IssueStore, isin: str) -> list[IssueChange]:
    """Return the changes of an issue that are kept, oldest first. Raises TableAway."""
    found: list[IssueChange] = []
    version = 0
    while True:
        page = store.read(version)
        found += [change for change in page.changes if change.isin == isin]
        version = page.version
        if page.is_last:
            return found


def load_list(store: IssueStore, wanted: IssueList, *, is_forced: bool) -> Loaded:
    """Have the table say what a list says; issues that are not in it leave the table.

    Unless it is forced, a list that is empty, or without more than half of the table's
    issues, changes nothing. Raises BadIssues, TableAway and TableMoved.
    """

    def choose(known: Issues) -> list[IssueEntry]:
        gone = sum(known.get(i.isin) is not None for i in wanted.issues)
        gone = len(known) - gone
        if not is_forced and not wanted.issues:
            raise BadIssues("the list has no issue")
        if not is_forced and gone > len(known) / 2:
            raise BadIssues(
                f"the list is without {gone} of the table's {len(known)} issues"
            )
        return wanted.issues

    return _load(store, choose, keeps_others=False)


def update_table(store: IssueStore, news: IssueList) -> Loaded:
    """Have the table say what a list says of the issues and columns that it has.

    All else stays as it is. Raises BadIssues, TableAway and TableMoved.
    """

    def choose(known: Issues) -> list[IssueEntry]:
        return [_updated(known.get(i.isin), i, news.fields) for i in news.issues]

    return _load(store, choose, keeps_others=True)


def add_issues(
    store: IssueStore, listed: Sequence[IssueEntry], guessed: Sequence[IssueEntry] = ()
) -> Loaded:
    """Have the table say what a feed's list says of its issues.

    What the list leaves empty stays as the table has it. ``guessed`` entries only fill
    in what the table does not say. Raises BadIssues, TableAway and TableMoved.
    """

    def choose(known: Issues) -> list[IssueEntry]:
        entries = [_over(known.get(entry.isin) or entry, entry) for entry in listed]
        return entries + [_over(e, known.get(e.isin) or e) for e in guessed]

    return _load(store, choose, keeps_others=True)


def _over(below: IssueEntry, above: IssueEntry) -> IssueEntry:
    """Return an entry with the fields that ``above`` has, and else those below."""
    return replace(below, **above.to_fields())


def update_days(store: IssueStore, news: Mapping[str, DayFacts]) -> Loaded:
    """Have the table say what a feed says of the day of issues that the table has.

    ``news`` is by ISIN. Raises TableAway and TableMoved.
    """

    def choose(known: Issues) -> list[IssueEntry]:
        entries = ((known.get(isin), facts) for isin, facts in news.items())
        return [facts.applied(entry) for entry, facts in entries if entry is not None]

    return _load(store, choose, keeps_others=True)


def _updated(
    known: IssueEntry | None, news: IssueEntry, fields: Iterable[str]
) -> IssueEntry:
    if known is None:
        return news
    return replace(known, **{field: getattr(news, field) for field in fields})


def _load(store: IssueStore, choose: _Choice, *, keeps_others: bool) -> Loaded:
    known = Issues()
    for _ in range(_ATTEMPTS):
        known, _refused = read_on(store, known)
        wanted = choose(known)
        pairs = difference(known, wanted, keeps_others=keeps_others)
        added = sum(known.get(isin) is None for isin, _ in pairs)
        removed = sum(entry is None for _, entry in pairs)
        _check_size(known.after(IssueChange(known.version, *p) for p in pairs))
        try:
            version = store.append(pairs, known.version)
        except TableMoved:
            continue
        changed = len(pairs) - added - removed
        unchanged = len(known) - removed - changed
        return Loaded(added, changed, removed, unchanged, version)
    raise TableMoved("others change the issue table all the time; try again")


def _check_size(later: Issues) -> None:
    if len(later) > MOST_ISSUES:
        raise BadIssues(f"the table would have more than {MOST_ISSUES} issues")
    if sum(len(encode_issue(issue)) for issue in later) > MOST_BYTES:
        raise BadIssues(f"the table would have more than {MOST_BYTES} bytes")
