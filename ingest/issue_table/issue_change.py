"""A change of the issue table: an issue as it is from now on, or its end. Pure.

This module is a contract. The table is a stream of changes; the newest of an ISIN is
what is known of it. In a Redis stream an entry has the fields ``isin`` and ``issue``,
in a topic the ISIN is the key and the issue the value. An issue is a JSON object of
text; nothing, in its place, ends the issue.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from ingest.issue_table.issue_entry import BadIssues, IssueEntry, read_entry

MAX_CHANGE_BYTES = 16_384
"""Largest change that is looked at: eight fields of text in the longest script fit."""


@dataclass(frozen=True, slots=True)
class IssueChange:
    """What is known of an issue from a version on; ``entry`` is None at its end.

    ``changed_ms`` is when, by the server's clock, milliseconds since 1970.
    """

    version: int
    isin: str
    entry: IssueEntry | None
    changed_ms: int = 0


def encode_issue(entry: IssueEntry | None) -> bytes:
    """Encode what a change holds beside its ISIN; empty for an end."""
    return b"" if entry is None else orjson.dumps(entry.to_fields())


def decode_change(
    version: int, isin: bytes, issue: bytes | None, changed_ms: int = 0
) -> IssueChange:
    """Decode a change, whoever wrote it. Raises BadIssues."""
    if len(isin) + len(issue or b"") > MAX_CHANGE_BYTES:
        raise BadIssues(f"a change has more than {MAX_CHANGE_BYTES} bytes")
    name = isin.decode("ascii", "backslashreplace")
    if not issue:
        return IssueChange(version, read_entry({"isin": name}).isin, None, changed_ms)
    entry = read_entry(_fields(issue))
    if entry.isin != name:
        raise BadIssues(f"isin {entry.isin!r}: must be the change's own, {name!r}")
    return IssueChange(version, name, entry, changed_ms)


def difference(
    known: Iterable[IssueEntry],
    wanted: Iterable[IssueEntry],
    *,
    keeps_others: bool = False,
) -> list[tuple[str, IssueEntry | None]]:
    """Return what has to change for the known issues to be the wanted ones.

    Pairs of ISIN and entry, None for an end, in the order of ISINs. Issues that are not
    wanted end, unless they are kept.
    """
    before = {entry.isin: entry for entry in known}
    later = {entry.isin: entry for entry in wanted}
    changed: dict[str, IssueEntry | None] = {
        isin: entry for isin, entry in later.items() if before.get(isin) != entry
    }
    if not keeps_others:
        changed.update(dict.fromkeys(before.keys() - later.keys()))
    return sorted(changed.items(), key=lambda pair: pair[0])


def _fields(issue: bytes) -> dict[str, str]:
    try:
        fields: Any = orjson.loads(issue)
    except ValueError:
        raise BadIssues("an issue must be JSON") from None
    if not isinstance(fields, dict):
        raise BadIssues("an issue must be a JSON object")
    for name, text in fields.items():
        if not isinstance(text, str):
            raise BadIssues(f"{name[:40]}: must be text")
    return fields
