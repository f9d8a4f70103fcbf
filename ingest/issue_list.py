"""The issue list: what an ISIN is called, its code, market, sector, previous close.

A CSV file in UTF-8 with a header. Of its columns ``isin``, ``code``, ``name``,
``market``, ``sector`` (``industry`` where there is none) and ``prev_close`` are read,
in any order; only ``isin`` has to be there, and any other cell may be empty. Read once,
at the start: a list that is wrong in one line is refused as a whole.
"""

import csv
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from ingest.trade import InvalidTrade, check_isin

COLUMNS = ("isin", "code", "name", "market", "sector", "prev_close")
INSTEAD = {"sector": "industry"}
"""What a column may be called if the list has none of its own name."""

MAX_CHARS = 200
"""Longest cell that is read."""

# Shorter than an ISIN, so that nothing is both; without what a list in an address uses.
_CODE_FORM = re.compile(r"[0-9A-Za-z._-]{1,11}", re.ASCII)
# The decimals that are also JSON numbers: the text leaves as it came.
_PRICE_FORM = re.compile(r"(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?", re.ASCII)


class BadIssues(ValueError):
    """An issue list that breaks a rule; says where, which field, value and rule."""


@dataclass(frozen=True, slots=True)
class IssueEntry:
    """One issue. None is what the list does not say.

    ``prev_close`` is decimal text.
    """

    isin: str
    code: str | None = None
    name: str | None = None
    market: str | None = None
    sector: str | None = None
    prev_close: str | None = None

    def encode(self) -> bytes:
        """Encode for clients; the previous close keeps its text."""
        close = None if self.prev_close is None else orjson.Fragment(self.prev_close)
        return orjson.dumps(
            {
                "isin": self.isin,
                "code": self.code,
                "name": self.name,
                "market": self.market,
                "sector": self.sector,
                "prev_close": close,
            }
        )


class Issues:
    """Every issue of a list, in the order of ISINs. ``digest`` names its content."""

    def __init__(self, issues: Iterable[IssueEntry] = ()) -> None:
        self._by_isin = {i.isin: i for i in sorted(issues, key=lambda i: i.isin)}
        self._by_code = {i.code: i for i in self if i.code is not None}
        markets: dict[str, set[str]] = defaultdict(set)
        sectors: dict[str, set[str]] = defaultdict(set)
        for issue in self:
            if issue.market is not None:
                markets[issue.market].add(issue.isin)
            if issue.sector is not None:
                sectors[issue.sector].add(issue.isin)
        self._markets = {name: frozenset(isins) for name, isins in markets.items()}
        self._sectors = {name: frozenset(isins) for name, isins in sectors.items()}
        encoded = b"\n".join(issue.encode() for issue in self)
        self.digest = hashlib.blake2b(encoded, digest_size=8).hexdigest()

    def __len__(self) -> int:
        return len(self._by_isin)

    def __iter__(self) -> Iterator[IssueEntry]:
        return iter(self._by_isin.values())

    def get(self, isin: str) -> IssueEntry | None:
        """Return what is known of an ISIN, None if nothing is."""
        return self._by_isin.get(isin)

    def of_code(self, code: str) -> IssueEntry | None:
        """Return the issue with this code, None if there is none."""
        return self._by_code.get(code)

    def isin_of(self, code: str) -> str | None:
        """Return the ISIN of the issue with this code, None if there is none."""
        issue = self._by_code.get(code)
        return None if issue is None else issue.isin

    def of_market(self, name: str) -> frozenset[str] | None:
        """Return the ISINs of a market, None if no issue is of one so called."""
        return self._markets.get(name)

    def of_sector(self, name: str) -> frozenset[str] | None:
        """Return the ISINs of a sector, None if no issue is of one so called."""
        return self._sectors.get(name)


def read_issues(path: Path) -> Issues:
    """Read an issue list. Raises BadIssues with one sentence."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return Issues(parse_issues(file))
    except OSError as error:
        raise BadIssues(f"issues_file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadIssues(f"issues_file {path}: must be UTF-8") from None
    except BadIssues as error:
        raise BadIssues(f"issues_file {path}: {error}") from None


def parse_issues(lines: Iterable[str]) -> list[IssueEntry]:
    """Read the lines of an issue list. Raises BadIssues for the first rule broken."""
    reader = csv.reader(lines, strict=True)
    issues: list[IssueEntry] = []
    # Where each ISIN and each code was said first.
    isins: dict[str, int] = {}
    codes: dict[str, int] = {}
    try:
        header = next(reader, [])
        places = _find_columns(header)
        for cells in reader:
            if not cells:
                continue
            line = reader.line_num
            if len(cells) != len(header):
                raise BadIssues(
                    f"line {line}: has {len(cells)} cells, the header has {len(header)}"
                )
            issue = _read_issue(line, cells, places)
            _check_is_new(line, "isin", issue.isin, isins)
            if issue.code is not None:
                _check_is_new(line, "code", issue.code, codes)
            issues.append(issue)
    except csv.Error as error:
        raise BadIssues(f"line {reader.line_num}: not CSV: {error}") from None
    return issues


def _find_columns(header: Sequence[str]) -> dict[str, int]:
    names = [name.strip() for name in header]
    if "isin" not in names:
        raise BadIssues(f"line 1, header {','.join(names)!r}: must have a column isin")
    places = {}
    for column in COLUMNS:
        name = column if column in names else INSTEAD.get(column, column)
        if names.count(name) > 1:
            raise BadIssues(f"line 1, header {name!r}: must be there only once")
        if name in names:
            places[column] = names.index(name)
    return places


def _read_issue(line: int, cells: Sequence[str], places: dict[str, int]) -> IssueEntry:
    fields: dict[str, str | None] = {}
    for column, place in places.items():
        text = cells[place].strip()
        if len(text) > MAX_CHARS:
            shown = f"{text[:40]!r}..."
            raise BadIssues(
                f"line {line}, {column} {shown}: has over {MAX_CHARS} characters"
            )
        fields[column] = text or None
    isin, code, close = fields["isin"], fields.get("code"), fields.get("prev_close")
    try:
        checked = check_isin(isin or "")
    except InvalidTrade as error:
        raise BadIssues(f"line {line}, {error}") from None
    if code is not None and not _CODE_FORM.fullmatch(code):
        raise BadIssues(
            f"line {line}, code {code!r}: must be 1 to 11 letters, digits, . _ or -"
        )
    if close is not None and not (_PRICE_FORM.fullmatch(close) and close.strip("0.")):
        raise BadIssues(
            f"line {line}, prev_close {close!r}: must be a plain decimal above zero, "
            "or empty"
        )
    name, market, sector = (fields.get(c) for c in ("name", "market", "sector"))
    return IssueEntry(checked, code, name, market, sector, close)


def _check_is_new(line: int, field: str, value: str, lines: dict[str, int]) -> None:
    first = lines.setdefault(value, line)
    if first != line:
        raise BadIssues(f"line {line}, {field} {value!r}: is on line {first} already")
