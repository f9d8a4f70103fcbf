"""What the documents tell a reader to type, for the tests that type it."""

import re

from tests.paths import ROOT


def text_of(page: str) -> str:
    """Return a page by its path in the project."""
    return (ROOT / page).read_text("utf-8")


def section_of(page: str, title: str) -> str:
    """Return the part of a page under a heading of the second level."""
    [found] = re.findall(
        rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", text_of(page), re.DOTALL | re.M
    )
    return str(found)


def blocks(page: str, *languages: str) -> list[str]:
    """Return a page's blocks in some languages, in their order; "" has none named."""
    return blocks_in(text_of(page), *languages)


def blocks_in(text: str, *languages: str) -> list[str]:
    """Return a text's blocks, as ``blocks`` does."""
    # Of a list's item, a block stands further in.
    found = re.findall(r"^( *)```(\w*)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    return [
        re.sub(f"^{indent}", "", block, flags=re.MULTILINE)
        for indent, language, block in found
        if language in languages
    ]


def commands(page: str, beginning: str = "") -> list[str]:
    """Return the commands of a page that begin so, each on one line; there are some."""
    lines = "".join(blocks(page, "sh")).replace("\\\n", "").splitlines()
    chosen = [
        re.sub(r"\s+", " ", line).partition(" # ")[0].strip()
        for line in lines
        if re.match(beginning, line) and not line.startswith("#")
    ]
    chosen = [line for line in chosen if line]
    assert chosen, f"{page}: no command begins with {beginning!r}"
    return chosen
