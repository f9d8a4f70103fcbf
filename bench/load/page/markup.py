"""HTML from values: whatever is not markup already is escaped. Pure."""

import re
from collections.abc import Iterable, Sequence
from html import escape

_NUMBER_AND_UNIT = re.compile(r"(?<=\d) (?=(?:ms|s|min|h|B|[KMGT]iB)\b)")


class Markup(str):
    """Text that is HTML."""

    __slots__ = ()


def element(name: str, *inside: str, **attributes: str | None) -> Markup:
    """Return one element; a trailing ``_`` and other ``_`` of names are not HTML's.

    An attribute of None is left out. Text inside is escaped, markup is not.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{join(inside)}</{name}>")


def join(parts: Iterable[str]) -> Markup:
    """Return parts one after another, escaped but for markup."""
    return Markup(
        "".join(part if isinstance(part, Markup) else escape(part) for part in parts)
    )


def prose(text: str) -> str:
    """Return text for people, its numbers on one line with their units."""
    return _NUMBER_AND_UNIT.sub("\N{NO-BREAK SPACE}", text)


def meter(value: float, most: float, colour: str = "accent") -> Markup:
    """Return a value as a bar, full for the greatest of its column."""
    share = min(1.0, value / most) if most > 0 else 0.0
    return Markup(
        f'<span class="meter" aria-hidden="true"><i style="width: {share * 100:.1f}%; '
        f'background: var(--{colour})"></i></span>'
    )


def panel(name: str, title: str, about: str, *inside: str) -> Markup:
    """Return a titled section with its line of explanation."""
    return element(
        "section",
        element("h2", title, id=f"{name}-title"),
        element("p", about, class_="soft note") if about else "",
        *inside,
        class_=f"panel {name}",
        aria_labelledby=f"{name}-title",
    )


def table(
    caption: str,
    heads: Sequence[tuple[str, str]],
    rows: Iterable[Sequence[str]],
    foot: Sequence[str] | None = None,
) -> Markup:
    """Return a table that scrolls sideways; ``heads`` are text and class.

    The first cell of every row is the row's head.
    """
    names = [name or None for _, name in heads]

    def line(cells: Sequence[str]) -> Markup:
        first, *rest = cells
        return element(
            "tr",
            element("th", first, scope="row", class_=names[0]),
            *(
                element("td", cell, class_=name)
                for cell, name in zip(rest, names[1:], strict=True)
            ),
        )

    head = element(
        "tr",
        *(
            element("th", text, scope="col", class_=name or None)
            for text, name in heads
        ),
    )
    return element(
        "div",
        element(
            "table",
            element("caption", caption, class_="visually-hidden"),
            element("thead", head),
            element("tbody", *map(line, rows)),
            element("tfoot", line(foot)) if foot else "",
        ),
        class_="scroll",
        role="region",
        aria_label=caption,
        tabindex="0",
    )


_SHAPES = {"ok": "M7 12.5l3.2 3.2L17 9", "bad": "M8.5 8.5l7 7M15.5 8.5l-7 7"}
_FRAMES = {
    "ok": '<circle cx="12" cy="12" r="10"/>',
    "bad": '<path d="M7.9 2h8.2L22 7.9v8.2L16.1 22H7.9L2 16.1V7.9z"/>',
}


def level(is_good: bool, word: str = "") -> Markup:
    """Return how good something is: a shape, a colour and a word."""
    name = "ok" if is_good else "bad"
    icon = Markup(
        f'<svg class="level" data-level="{name}" viewBox="0 0 24 24" '
        f'aria-hidden="true"><g fill="currentColor">{_FRAMES[name]}</g>'
        f'<path class="mark" d="{_SHAPES[name]}" fill="none" stroke-width="2.4" '
        'stroke-linecap="round" stroke-linejoin="round"/></svg>'
    )
    if not word:
        return icon
    return element("span", icon, word, class_="worded", data_level=name)
