"""What is counted of a page."""

from tests.page_figures import figures_of, pages

PAGE = """# A title counts for nothing

One sentence of [five words](elsewhere.md#anchor). Two.

| a | b |
| --- | ---: |
| one cell of six words here | `x \\| y` |

```sh
code counts for nothing
```
"""


def test_words_sentences_and_cells_are_counted() -> None:
    """Of a link its words, of code nothing."""
    figures = figures_of(PAGE)
    assert (figures.words, figures.cell) == (5 + 1 + 2 + 6 + 3, 6)
    assert figures.sentence == 5
    assert figures_of("") == (0, 0, 0)


def test_every_page_can_be_counted() -> None:
    assert all(figures_of(path.read_text("utf-8")).words for path in pages())
