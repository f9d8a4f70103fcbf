"""Prints how long the documents are to read; ``python -m tests.page_figures``.

A line a page, the longest cell first: words, sentences and cells of tables. It counts
what can be counted, and judges nothing.
"""

import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.paths import ROOT

_SENTENCE_ENDS = re.compile(r"(?<=[.!?:;])\s+")


class PageFigures(NamedTuple):
    """Words of a page, of a sentence at the 95th percentile, of its longest cell."""

    words: int
    sentence: int
    cell: int


def figures_of(text: str) -> PageFigures:
    """Count a page of Markdown; its code and its comments count for nothing."""
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    # Of a link and of a picture the words stay.
    text = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", text)
    cells = [len(cell.split()) for cell in _cells(text)]
    sentences = sorted(len(sentence.split()) for sentence in _sentences(text))
    at_95 = (
        statistics.quantiles(sentences, n=20, method="inclusive")[-1]
        if len(sentences) > 1
        else 0
    )
    return PageFigures(sum(sentences) + sum(cells), round(at_95), max(cells, default=0))


def _cells(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.startswith("|") and not re.fullmatch(r"[|:\- ]+", line):
            yield from (re.split(r"(?<!\\)\|", line)[1:-1])


def _sentences(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.strip() and not line.startswith(("|", "#")):
            yield from _SENTENCE_ENDS.split(line.strip())


def pages() -> list[Path]:
    """Return the pages that readers are sent to, the README first."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main() -> None:
    """Print all pages, and their sum."""
    found = {path: figures_of(path.read_text("utf-8")) for path in pages()}
    sys.stdout.write("   words  sentence  longest cell\n")
    for path, page in sorted(found.items(), key=lambda one: -one[1].cell):
        name = path.relative_to(ROOT)
        row = f"{page.words:>8,}  {page.sentence:>8}  {page.cell:>12}  {name}\n"
        sys.stdout.write(row)
    words = sum(page.words for page in found.values())
    sys.stdout.write(f"{words:>8,}  on {len(found)} pages\n")


if __name__ == "__main__":
    main()
