"""What is known of all issues at one moment: the issue table at a version. Pure."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from ingest.issue_table.issue_change import IssueChange
from ingest.issue_table.issue_entry import MAX_CHARS, IssueEntry

MARKET, SECTOR = "market:", "sector:"
"""What the keys begin with that stand for all issues of a market, of a sector."""

MAX_GROUP_CHARS = len(MARKET) + MAX_CHARS
"""Longest such key."""


def has_members(key: str) -> bool:
    """Say whether a key stands for all issues of a market or sector."""
    return key.startswith((MARKET, SECTOR))


class Issues:
    """Every issue, in the order of ISINs; never changed, ``after`` makes another.

    ``version`` is that of the newest change in it, 0 before the first.
    """

    def __init__(self, issues: Iterable[IssueEntry] = (), version: int = 0) -> None:
        self._by_isin = {i.isin: i for i in sorted(issues, key=lambda i: i.isin)}
        self.version = version

    def __len__(self) -> int:
        return len(self._by_isin)

    def __iter__(self) -> Iterator[IssueEntry]:
        return iter(self._by_isin.values())

    def after(self, changes: Iterable[IssueChange]) -> "Issues":
        """Return what is known after some changes, in the order of their versions."""
        entries, version = dict(self._by_isin), self.version
        for change in changes:
            version = change.version
            if change.entry is None:
                entries.pop(change.isin, None)
            else:
                entries[change.isin] = change.entry
        return Issues(entries.values(), version)

    def at(self, version: int) -> "Issues":
        """Return the same issues as of another version."""
        return self if version == self.version else Issues(self, version)

    @cached_property
    def digest(self) -> str:
        """Names the content: two tables that say the same have the same."""
        encoded = b"\n".join(issue.encoded for issue in self)
        return hashlib.blake2b(encoded, digest_size=8).hexdigest()

    def get(self, isin: str) -> IssueEntry | None:
        """Return what is known of an ISIN, None if nothing is."""
        return self._by_isin.get(isin)

    def of_code(self, code: str) -> IssueEntry | None:
        """Return the issue with this code, None if there is none.

        Of two with one code the smaller ISIN has it.
        """
        return self._by_code.get(code)

    def isin_of(self, code: str) -> str | None:
        """Return the ISIN of the issue with this code, None if there is none."""
        issue = self._by_code.get(code)
        return None if issue is None else issue.isin

    def of_market(self, name: str) -> frozenset[str] | None:
        """Return the ISINs of a market, None if no issue is of one so called."""
        return self.markets.get(name)

    def of_sector(self, name: str) -> frozenset[str] | None:
        """Return the ISINs of a sector, None if no issue is of one so called."""
        return self.sectors.get(name)

    def search(self, text: str) -> Iterator[IssueEntry]:
        """Yield the issues with a text in their name, or at the start of code or ISIN.

        Capitals and small letters are the same.
        """
        wanted = text.strip().casefold()
        for issue in self:
            names = (issue.name or "", issue.english_name or "")
            keys = (issue.isin, issue.code or "")
            if any(wanted in name.casefold() for name in names) or any(
                key.casefold().startswith(wanted) for key in keys
            ):
                yield issue

    def members(self, key: str) -> frozenset[str] | None:
        """Return the ISINs that ``market:…`` or ``sector:…`` stands for.

        None if no issue is of one so called, and for any other key.
        """
        if key.startswith(MARKET):
            return self.of_market(key.removeprefix(MARKET))
        if key.startswith(SECTOR):
            return self.of_sector(key.removeprefix(SECTOR))
        return None

    def regrouped(self, later: "Issues") -> frozenset[str]:
        """Return the keys of markets and sectors that have other issues later."""
        return frozenset(
            [
                *_changed(MARKET, self.markets, later.markets),
                *_changed(SECTOR, self.sectors, later.sectors),
            ]
        )

    def renames(self, later: "Issues") -> dict[str, str]:
        """Return which markets and sectors are called otherwise later: old key to new.

        One is, if nothing is called so later, and all of its issues that are still
        there are of one other.
        """
        return {
            **_renamed(MARKET, self.markets, later.markets, _market_in(later)),
            **_renamed(SECTOR, self.sectors, later.sectors, _sector_in(later)),
        }

    @cached_property
    def markets(self) -> dict[str, frozenset[str]]:
        """The ISINs of every market, by its name."""
        return _group((issue.market, issue.isin) for issue in self)

    @cached_property
    def sectors(self) -> dict[str, frozenset[str]]:
        """The ISINs of every sector, by its name."""
        return _group((issue.sector, issue.isin) for issue in self)

    @cached_property
    def _by_code(self) -> dict[str, IssueEntry]:
        of_codes = ((i.code, i) for i in reversed(self._by_isin.values()))
        return {code: issue for code, issue in of_codes if code is not None}


_NameOf = Callable[[str], str | None]


def _market_in(issues: Issues) -> _NameOf:
    return lambda isin: None if (issue := issues.get(isin)) is None else issue.market


def _sector_in(issues: Issues) -> _NameOf:
    return lambda isin: None if (issue := issues.get(isin)) is None else issue.sector


def _group(pairs: Iterable[tuple[str | None, str]]) -> dict[str, frozenset[str]]:
    groups: dict[str, set[str]] = defaultdict(set)
    for name, isin in pairs:
        if name is not None:
            groups[name].add(isin)
    return {name: frozenset(isins) for name, isins in groups.items()}


def _changed(
    prefix: str, before: dict[str, frozenset[str]], later: dict[str, frozenset[str]]
) -> Iterator[str]:
    names = before.keys() | later.keys()
    return (prefix + n for n in names if before.get(n) != later.get(n))


def _renamed(
    prefix: str,
    before: dict[str, frozenset[str]],
    later: dict[str, frozenset[str]],
    name_of: _NameOf,
) -> dict[str, str]:
    found = {}
    for name in before.keys() - later.keys():
        names = {name_of(isin) for isin in before[name]} - {None}
        if len(names) == 1:
            found[prefix + name] = f"{prefix}{names.pop()}"
    return found
