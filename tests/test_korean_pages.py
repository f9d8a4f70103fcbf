"""The Korean pages say what the English ones say now."""

import hashlib
import re
from pathlib import Path

import pytest

from tests.doc_pages import blocks_in
from tests.paths import ROOT

DOCS = ROOT / "docs"
KOREAN = sorted((DOCS / "ko").rglob("*.md"))
LANGUAGES = ("", "sh", "text", "python", "html", "js", "jsx", "vue", "json")


def english_of(page: Path) -> Path:
    """Return the page that a Korean one translates."""
    return DOCS / page.relative_to(DOCS / "ko")


def stamp_of(english: str) -> str:
    """Return the line with which a Korean page says what it translates."""
    digest = hashlib.sha256(english.encode()).hexdigest()
    return f"<!-- Translates the English page with the digest {digest[:12]}. -->"


def shape_of(page: Path) -> dict[str, object]:
    """Return what no language changes: levels, rows, code, pages that it leads to."""
    text = page.read_text("utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(r"\]\(([^)#\s]*)[^)\s]*\)", prose)
    return {
        "headings": re.findall(r"^(#+) ", prose, re.MULTILINE),
        "rows": [line.count(" | ") for line in prose.splitlines() if line[:1] == "|"],
        "items": len(re.findall(r"^- ", prose, re.MULTILINE)),
        "code": [blocks_in(text, language) for language in LANGUAGES],
        "links": sorted(Path(target).name for target in targets if target),
    }


@pytest.mark.parametrize("page", KOREAN, ids=lambda p: str(p.relative_to(DOCS)))
def test_a_korean_page_is_in_step_with_the_english_one(page: Path) -> None:
    """Whoever changes the English page changes the Korean one, and its last line."""
    english = english_of(page)
    assert shape_of(page) == shape_of(english)
    stamp = stamp_of(english.read_text("utf-8"))
    last = page.read_text("utf-8").rstrip().rpartition("\n")[2]
    assert last == stamp, (
        f"{english.relative_to(ROOT)} has changed: translate the change, then end the "
        f"Korean page with {stamp}"
    )
