"""Reads the issue table as it is now, and has it say what a list says."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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


def changes_of(store: IssueStore, issue: str) -> list[IssueChange]:
    """Return the changes of an issue that are kept, oldest first. Raises TableAway.

    ``issue`` is its ISIN, or a code: the issue's that had it last, in the table or not.
    """
    isin = issue
    for change in _changes(store):
        if change.entry is not None and change.entry.code == issue:
            isin = change.isin
    return [change for change in _changes(store) if change.isin == isin]


def _changes(store: IssueStore) -> Iterator[IssueChange]:
    version = 0
    while True:
        page = store.read(version)
        yield from page.changes
        version = page.version
        if page.is_last:
            return


def load_list(store: IssueStore, wanted: IssueList, *, is_forced: bool) -> Loaded:
    """Have the table say what a list says; issues that are not in it leave the table.

    Unless it is forced, a list that is empty, or without more than half of the table's
    issues, changes nothing. Raises BadIssues, TableAway and TableMoved.
    """

    def choose(known: Issues) -> list[IssueEntry]:
        gone = sum(known.get(i.isin) is not None for i in wanted.issues)
        gone = len(known) - gone
        if not is_forced and not wanted.issues:
            raise BadIssues("the list has no issue: --force loads it")
        if not is_forced and gone > len(known) / 2:
            raise BadIssues(
                f"the list is without {gone} of the table's {len(known)} issues: "
                "--force loads it"
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

    What the list leaves empty stays as the table has it, and a code that another issue
    has is left to that one. ``guessed`` entries only fill in what the table does not
    say. Raises BadIssues, TableAway and TableMoved.
    """

    def choose(known: Issues) -> list[IssueEntry]:
        def free(entry: IssueEntry) -> IssueEntry:
            is_taken = known.isin_of(entry.code or "") not in (None, entry.isin)
            return replace(entry, code=None) if is_taken else entry

        entries = [_over(known.get(e.isin) or e, e) for e in map(free, listed)]
        return entries + [_over(e, known.get(e.isin) or e) for e in map(free, guessed)]

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
        later = known.after(IssueChange(known.version, *p) for p in pairs)
        _check_size(later)
        _check_codes(known, later)
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


def _check_codes(known: Issues, later: Issues) -> None:
    """Refuse a code that two would have, unless both had it before this change."""
    for entry in later:
        owner = later.of_code(entry.code or "")
        if owner is None or owner == entry:
            continue
        before = known.get(owner.isin), known.get(entry.isin)
        if any(issue is None or issue.code != entry.code for issue in before):
            raise BadIssues(
                f"code {entry.code!r}: {owner.isin} and {entry.isin} would both have it"
            )
