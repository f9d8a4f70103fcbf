"""The report's page: `loadtest/report/page.py`."""

import re
from dataclasses import replace
from html.parser import HTMLParser

from loadtest.report.page import HEIGHT, WIDTH, render, stretches
from loadtest.results import Seconds, Windows
from tests.loadtest.samples import (
    make_broken_result,
    make_capacity_result,
    make_comparison_result,
    make_result,
)


class Elements(HTMLParser):
    """Counts elements, and keeps what each loads."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.loaded += [str(v) for name, v in attrs if name in ("src", "href")]


def elements(page: str) -> Elements:
    parser = Elements()
    parser.feed(page)
    return parser


def test_a_report_has_everything_in_it() -> None:
    """It loads nothing, runs nothing, and draws every series that was measured."""
    for result in (
        make_broken_result(),
        make_capacity_result(),
        make_comparison_result(),
    ):
        page = render(result)
        seen = elements(page)
        assert seen.loaded == []
        assert "script" not in seen.names
        assert seen.names.count("svg") == 10
        assert result.machine in page
        for process in result.outcome.processes:
            assert f">{process.name}</span>" in page


def test_what_was_found_is_text() -> None:
    """A fault's words end no element; the terminal's verdict stands in the page."""
    page = render(make_broken_result())
    assert "It did not hold: 6 of 9" in page
    assert "&lt;/script&gt;: 3 missing" in page


def test_a_run_of_which_nothing_was_measured_has_no_plots() -> None:
    result = make_result(120, 50)
    outcome = replace(
        result.outcome,
        seconds=Seconds(*[()] * len(Seconds.__slots__)),
        windows=Windows(*[()] * len(Windows.__slots__)),
        processes=(),
    )
    page = render(replace(result, outcome=outcome))
    assert "<svg" not in page
    assert "It held" in page


def test_a_line_has_a_hole_where_nothing_was_measured() -> None:
    """From 0 at the bottom to the greatest value at the top, over the whole time."""
    drawn = stretches([0, 1_000, 2_000, 3_000], [0, 5, None, 10], 10)
    assert drawn == [
        f"0.0,{HEIGHT:.1f} {WIDTH / 3:.1f},{HEIGHT / 2:.1f}",
        f"{WIDTH:.1f},0.0",
    ]
    assert not any(re.search("nan|None", corner) for corner in drawn)
