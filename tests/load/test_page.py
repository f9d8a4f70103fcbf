"""The report's page, in a real Chromium that has no network."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from bench.load.page.render import EXPORT, render
from bench.load.results import Result, Seconds, Summary, Windows
from tests.e2e.axe import grave_findings
from tests.load.samples import (
    make_broken_result,
    make_capacity_result,
    make_comparison_result,
    make_result,
)

WIDTHS = (360, 800, 1_440)
Make = Callable[[], Result]


def small_result() -> Result:
    """Return a short run that passed."""
    return make_result(120, 50)


def bare_result() -> Result:
    """Return a run of which next to nothing was measured."""
    result = small_result()
    nothing = Summary(0)
    outcome = replace(
        result.outcome,
        feeding=replace(result.outcome.feeding, behind_ms=nothing, seconds=0.0),
        lag_ms=nothing,
        publish_ms=nothing,
        fanout_ms=nothing,
        staleness_ms=nothing,
        kinds=(),
        audit=None,
        books=replace(
            result.outcome.books, read=0, published=0, superseded=0, stale=0, refused={}
        ),
        seconds=Seconds(*[()] * len(Seconds.__slots__)),
        windows=Windows(*[()] * len(Windows.__slots__)),
        processes=(),
        checks=(),
    )
    return replace(result, outcome=outcome)


def show(page: Page, result: Result, folder: Path) -> list[str]:
    """Open the report from a file, with no network; return what it asked for."""
    file = folder / "report.html"
    file.write_text(render(result), "utf-8")
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        if route.request.url == file.as_uri():
            route.continue_()
        else:
            route.abort()

    page.route("**/*", answer)
    page.goto(file.as_uri())
    return asked


def is_wide(page: Page) -> bool:
    """Tell whether the page itself has to be scrolled sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))


@pytest.mark.browser
@pytest.mark.parametrize(
    "make",
    [
        small_result,
        make_broken_result,
        make_capacity_result,
        make_comparison_result,
        bare_result,
    ],
)
def test_a_report_opens_from_a_file_at_every_width(
    page: Page, tmp_path: Path, make: Make
) -> None:
    """It loads nothing, draws all of its plots, and fits phones and wide screens."""
    result = make()
    asked = show(page, result, tmp_path)
    boxes = page.locator("[data-plot]")
    expect(page.locator("[data-plot] canvas")).to_have_count(boxes.count())
    assert boxes.count() > 0 or not result.outcome.kinds
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert not is_wide(page), width
    assert asked == [(tmp_path / "report.html").as_uri()]
    expect(page).to_have_title(result.title)


@pytest.mark.browser
def test_the_verdict_is_what_is_read_first(page: Page, tmp_path: Path) -> None:
    """Whether it held, and each threshold with what was found."""
    show(page, small_result(), tmp_path)
    expect(page.locator("main > section:first-of-type h2")).to_have_text("It held")
    show(page, make_broken_result(), tmp_path)
    expect(page.locator("#verdict")).to_have_text(
        "It did not hold: 6 of 9 thresholds broke"
    )
    row = page.locator(".verdict tbody tr").filter(has_text="cpu.nobody.max")
    expect(row).to_contain_text("nothing measured")
    expect(row.locator("[data-level=bad].worded")).to_have_text("broken")


@pytest.mark.browser
def test_words_from_outside_stay_words(page: Page, tmp_path: Path) -> None:
    """A script in a fault, a command or a reason is shown, not run."""
    result = make_broken_result()
    show(page, result, tmp_path)
    expect(page.locator("h1")).to_have_text(result.title)
    expect(page.locator(".faults li").first).to_contain_text("<script>throw")
    assert page.locator("script").count() == 2


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_reads_in_light_and_dark(page: Page, tmp_path: Path, scheme: str) -> None:
    """Nothing grave stands in anybody's way, and colours differ enough in both."""
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    rules = ("color-contrast",) if scheme == "dark" else ()
    show(page, make_capacity_result(), tmp_path)
    assert grave_findings(page, *rules) == []
    show(page, make_broken_result(), tmp_path)
    assert grave_findings(page, "color-contrast") == []


@pytest.mark.browser
def test_the_reader_may_choose_the_scheme(page: Page, tmp_path: Path) -> None:
    """Plots are drawn again in the other colours."""
    page.emulate_media(color_scheme="light")
    show(page, small_result(), tmp_path)
    back = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(back)
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate(back) != before
    boxes = page.locator("[data-plot]").count()
    expect(page.locator("[data-plot] canvas")).to_have_count(boxes)


@pytest.mark.browser
def test_the_cursor_tells_one_moment_in_every_plot(page: Page, tmp_path: Path) -> None:
    """All plots have one axis: what was slow is seen beside what was busy."""
    show(page, small_result(), tmp_path)
    page.locator("[data-plot=lag] .u-over").hover()
    moment = re.compile(r" at 0:(49|5[012])$")
    expect(page.locator("[data-plot=lag] + .legend li span").first).to_have_text(moment)
    expect(page.locator("[data-plot=cpu] + .legend li span").first).to_have_text(moment)
    page.locator("h1").hover()
    expect(page.locator("[data-plot=lag] + .legend li span").first).to_contain_text(
        "in the middle"
    )


@pytest.mark.browser
def test_on_paper_it_is_light_and_whole(page: Page, tmp_path: Path) -> None:
    """Printing at night gives black on white, and the screen stays dark."""
    page.emulate_media(color_scheme="dark")
    show(page, small_result(), tmp_path)
    assert page.pdf().startswith(b"%PDF")
    assert page.evaluate("document.documentElement.dataset.theme ?? null") is None


@pytest.mark.browser
def test_without_its_script_every_figure_is_there(tmp_path: Path, page: Page) -> None:
    """Words and tables are in the page itself; only plots are drawn."""
    browser = page.context.browser
    assert browser is not None
    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    show(plain, small_result(), tmp_path)
    expect(plain.locator("#verdict")).to_have_text("It held")
    expect(plain.locator(".chart .legend").first).to_contain_text("at most")
    expect(plain.locator(".ledger")).to_contain_text("balanced")
    context.close()


def test_the_library_comes_with_its_licence() -> None:
    """A part of somebody else's work is named, with the terms it is under."""
    text = render(small_result())
    assert "Leon Sorokin" in text
    assert "Permission is hereby granted, free of charge" in text
    assert EXPORT not in text


def test_no_slot_is_left_and_nothing_ends_the_data() -> None:
    """The template is filled once; a result cannot end its own element."""
    result = make_broken_result()
    text = render(replace(result, title="{{script}} {{nobody}}"))
    assert text.count("{{script}}") == text.count("{{nobody}}") == 2
    data = text.split('id="data">', 1)[1].split("</script>", 1)[0]
    assert "<" not in data
