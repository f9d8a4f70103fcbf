"""The clauses of the specification, as its pages list them."""

import re
from collections.abc import Iterable
from pathlib import Path

PAGES = "tick-v1*.md"
CLAUSE = re.compile(r"^- \*\*([SC][A-Z]*-\d+)\*\* ", re.M)
_BESIDE = Path(__file__).resolve().parent
FOLDERS = (_BESIDE / "spec", _BESIDE.parent / "docs" / "spec")
"""Where the pages are: in an installed kit, and in a clone."""


class NoPages(OSError):
    """The pages of the specification are not there."""


def read_clauses(folder: Path | None = None) -> list[str]:
    """Return the identifiers of all clauses, in order. Raises NoPages."""
    for one in FOLDERS if folder is None else (folder,):
        if pages := sorted(one.glob(PAGES)):
            texts = [page.read_text("utf-8") for page in pages]
            return sorted_clauses(CLAUSE.findall("\n".join(texts)))
    raise NoPages(f"spec {folder or FOLDERS[0]}: must hold {PAGES}; --spec names it")


def sorted_clauses(clauses: Iterable[str]) -> list[str]:
    """Return clauses in order of their kind and number, each once."""

    def order(clause: str) -> tuple[str, int]:
        kind, _, number = clause.partition("-")
        return kind, int(number)

    return sorted(set(clauses), key=order)


def is_of_clients(clause: str) -> bool:
    return clause.startswith("C")
