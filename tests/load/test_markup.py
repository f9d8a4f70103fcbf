"""HTML from values."""

from bench.load.page.markup import Markup, element, join, meter, prose, table


def test_text_is_escaped_and_markup_is_not() -> None:
    """Inside and in attributes; the result is markup again."""
    made = element("p", "a < b & c", Markup("<br>"), class_='"x"', title=None)
    assert made == '<p class="&quot;x&quot;">a &lt; b &amp; c<br></p>'
    assert join([made, "<"]) == made + "&lt;"
    assert element("i", data_level="ok") == '<i data-level="ok"></i>'


def test_a_table_has_a_caption_and_heads_of_rows() -> None:
    """Cells take the class of their column; a foot is a row."""
    made = table("All", [("A", ""), ("B", "number")], [["x", "<1>"]], ["sum", "2"])
    assert '<caption class="visually-hidden">All</caption>' in made
    assert '<th scope="row">x</th><td class="number">&lt;1&gt;</td>' in made
    assert '<tfoot><tr><th scope="row">sum</th><td class="number">2</td>' in made
    assert "<tfoot" not in table("All", [("A", "")], [["x"]])


def test_a_number_stays_with_its_unit() -> None:
    """Only units are bound, so that sentences still break."""
    space = "\N{NO-BREAK SPACE}"
    assert prose("10 min 00 s, 5 clients") == f"10{space}min 00{space}s, 5 clients"


def test_a_meter_is_a_share_of_the_greatest() -> None:
    """Never more than all of it; of nothing, nothing."""
    assert "width: 25.0%" in meter(1, 4)
    assert "width: 100.0%" in meter(5, 4)
    assert "width: 0.0%" in meter(0, 0)
