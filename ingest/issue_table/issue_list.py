"""The issue list: a CSV file with what is known of each issue.

In UTF-8, with a header. Its columns are the fields of an issue (``issue_entry.py``), in
any order; only ``isin`` has to be there, any other cell may be empty, and further
columns are not looked at. With keys of a venue a line without an ISIN gets the key of
its ``symbol`` or, if it has none, of its ``code``. A list that is wrong in one line is
refused as a whole.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ingest.issue_table.issue_entry import FIELDS, BadIssues, IssueEntry, read_entry
from ingest.issue_table.known_issues import Issues
from ingest.symbol_key import BadSymbol, SymbolKeys

INSTEAD = {
    "sector": "industry",
    "listed_shares": "shares",
    "english_name": "name_en",
    "tick_table": "tick_size",
}
"""What a column may be called if the list has none of its own name."""

MOST_ISSUES = 100_000
"""Most issues of a list."""


@dataclass(frozen=True, slots=True)
class IssueList:
    """The issues of a list, and the fields that it has columns for."""

    issues: list[IssueEntry]
    fields: tuple[str, ...] = FIELDS


def read_issues(path: Path, keys: SymbolKeys | None = None) -> Issues:
    """Read an issue list. Raises BadIssues with one sentence."""
    return Issues(read_list(path, keys).issues)


def read_list(path: Path, keys: SymbolKeys | None = None) -> IssueList:
    """Read an issue list as it is written. Raises BadIssues with one sentence."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return parse_list(file, keys)
    except OSError as error:
        raise BadIssues(f"issues_file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadIssues(f"issues_file {path}: must be UTF-8") from None
    except BadIssues as error:
        raise BadIssues(f"issues_file {path}: {error}") from None


def parse_issues(lines: Iterable[str]) -> list[IssueEntry]:
    """Read the lines of an issue list. Raises BadIssues for the first rule broken."""
    return parse_list(lines).issues


def parse_list(lines: Iterable[str], keys: SymbolKeys | None = None) -> IssueList:
    """Read the lines of an issue list. Raises BadIssues for the first rule broken."""
    reader = csv.reader(lines, strict=True)
    issues: list[IssueEntry] = []
    # Where each ISIN and each code was said first.
    isins: dict[str, int] = {}
    codes: dict[str, int] = {}
    try:
        header = next(reader, [])
        places = _find_columns(header, keys)
        for cells in reader:
            if not cells:
                continue
            line = reader.line_num
            if len(cells) != len(header):
                raise BadIssues(
                    f"line {line}: has {len(cells)} cells, the header has {len(header)}"
                )
            issue = _read_issue(line, cells, places, keys)
            _check_is_new(line, "isin", issue.isin, isins)
            if issue.code is not None:
                _check_is_new(line, "code", issue.code, codes)
            if len(issues) == MOST_ISSUES:
                raise BadIssues(f"line {line}: a list has at most {MOST_ISSUES} issues")
            issues.append(issue)
    except csv.Error as error:
        raise BadIssues(f"line {reader.line_num}: not CSV: {error}") from None
    return IssueList(issues, tuple(field for field in FIELDS if field in places))


_SYMBOL = "symbol"


def _find_columns(header: Sequence[str], keys: SymbolKeys | None) -> dict[str, int]:
    names = [name.strip() for name in header]
    if "isin" not in names and (keys is None or not {_SYMBOL, "code"} & {*names}):
        shown = ",".join(names)[:80]
        rule = "must have a column isin"
        if keys is None:
            rule += "; --venue makes keys of symbols or codes that have no ISIN"
        else:
            rule += ", symbol or code"
        raise BadIssues(f"line 1, header {shown!r}: {rule}")
    places = {}
    for field in FIELDS if keys is None else (*FIELDS, _SYMBOL):
        name = field if field in names else INSTEAD.get(field, field)
        if names.count(name) > 1:
            raise BadIssues(f"line 1, header {name!r}: must be there only once")
        if name in names:
            places[field] = names.index(name)
    return places


def _read_issue(
    line: int, cells: Sequence[str], places: dict[str, int], keys: SymbolKeys | None
) -> IssueEntry:
    values = {field: cells[place] for field, place in places.items()}
    symbol = values.pop(_SYMBOL, "").strip() or values.get("code", "").strip()
    try:
        if keys is not None and symbol and not values.get("isin", "").strip():
            values["isin"] = keys.key_of(symbol)
        return read_entry(values)
    except (BadIssues, BadSymbol) as error:
        raise BadIssues(f"line {line}, {error}") from None


def _check_is_new(line: int, field: str, value: str, lines: dict[str, int]) -> None:
    first = lines.setdefault(value, line)
    if first != line:
        raise BadIssues(f"line {line}, {field} {value!r}: is on line {first} already")
