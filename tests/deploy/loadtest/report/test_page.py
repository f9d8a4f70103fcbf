"""The report's page, in a real Chromium that has no network."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from playwright.sync_api import Page, Route, expect

from deploy.loadtest.figures import words
from deploy.loadtest.report.page import EXPORT, render
from deploy.loadtest.results import Check, Result, Seconds, Summary, Windows
from tests.deploy.loadtest.samples import (
    make_broken_result,
    make_capacity_result,
    make_comparison_result,
    make_result,
)
from tests.e2e.axe import grave_findings
from tests.paths import ROOT

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


def data_of(result: Result) -> Any:
    """Return what the page's script draws."""
    return orjson.loads(render(result).split('id="data">')[1].split("</script>")[0])


def with_outcome(**changes: Any) -> Result:
    """Return a short run with another outcome."""
    result = small_result()
    return replace(result, outcome=replace(result.outcome, **changes))


def load_pure_scripts(page: Page) -> None:
    """Load what is pure of the page's scripts, and nothing else."""
    folder = ROOT / "deploy" / "loadtest" / "report" / "page"
    for name in ("words.js", "series.js"):
        page.add_script_tag(path=folder / name)


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
def test_without_its_script_the_figures_are_there(tmp_path: Path, page: Page) -> None:
    """What a terminal shows of the run is in the page itself."""
    browser = page.context.browser
    assert browser is not None
    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    show(plain, small_result(), tmp_path)
    expect(plain.locator(".plain")).to_contain_text("It held")
    expect(plain.locator(".plain")).to_contain_text("balanced")
    expect(plain.locator(".plain")).to_contain_text("staleness")
    assert not is_wide(plain)
    context.close()


@pytest.mark.browser
def test_figures_are_worded_as_in_the_terminal(page: Page) -> None:
    """Two languages, one wording."""
    amounts = [None, 0, 0.04, 0.3, 1, 7.77, 9.94, 9.96, 12.4, 99.4, 99.6, 999.4]
    amounts += [1_023, 1_500, 9_994, 9_996, 119_400, 119_600, 3_723_000, 5e9]
    load_pure_scripts(page)
    for name in ("count", "duration", "size", "cores", "ratio", "rate"):
        worded = page.evaluate(f"(amounts) => amounts.map({name})", amounts)
        assert worded == [getattr(words, name)(amount) for amount in amounts], name
    assert page.evaluate("[plural(1, 'client'), plural(2000, 'client')]") == [
        words.plural(1, "client"),
        words.plural(2_000, "client"),
    ]
    moments = page.evaluate("[0, 59999, 302000, -20000, 3723000].map(elapsed)")
    assert moments == ["0:00", "0:59", "5:02", "-0:20", "1:02:03"]
    prose = page.evaluate("prose('10 min 00 s, 5 clients')")
    assert prose == "10\N{NO-BREAK SPACE}min 00\N{NO-BREAK SPACE}s, 5 clients"


@pytest.mark.browser
def test_many_points_become_few_that_keep_the_peak(page: Page) -> None:
    """One slow second in three hours is seen; so is one lost client."""
    slow = [1.0] * 10_800
    slow[4_321] = 900.0
    there = [500.0] * 10_800
    there[77] = 499.0
    load_pure_scripts(page)
    assert page.evaluate("stepOf(10800)") == 8
    peaks = page.evaluate("(points) => thin(points, 8)", slow)
    assert len(peaks) == 1_350
    assert max(peaks) == 900
    assert min(page.evaluate("(points) => thin(points, 8, 'least')", there)) == 499
    assert page.evaluate("stepOf(3)") == 1
    assert page.evaluate("thin([1, null, 2.5], 1)") == [1, None, 2.5]
    assert page.evaluate("thin([null, null, 2.5], 2)") == [None, 2.5]


@pytest.mark.browser
def test_a_thinned_plot_says_so(page: Page, tmp_path: Path) -> None:
    """A reader knows what a point stands for."""
    show(page, make_result(1_600, 20), tmp_path)
    chart = page.locator(".chart").filter(has=page.locator("[data-plot=rate]"))
    expect(chart).to_contain_text("Each point is the greatest of 2 seconds.")
    chart = page.locator(".chart").filter(has=page.locator("[data-plot=clients]"))
    expect(chart).to_contain_text("Each point is the least of 2 seconds.")
    chart = page.locator(".chart").filter(has=page.locator("[data-plot=lag]"))
    expect(chart).not_to_contain_text("Each point")


@pytest.mark.browser
def test_a_line_in_words_has_its_middle_and_when_it_was_worst(page: Page) -> None:
    """The greatest of most, the least of what may be lost."""
    plot = {"at": [0, 1_000, 2_000, 3_000, 4_000], "unit": "ms"}
    points = [200.0, None, 100.0, 300.0, 250.0]
    load_pure_scripts(page)

    def in_words(from_ms: int = 0, **line: Any) -> Any:
        outcome = {"from_ms": from_ms, "to_ms": 10_000}
        inputs = [outcome, plot, {"points": points, **line}]
        return page.evaluate("(inputs) => lineInWords(...inputs)", inputs)

    assert in_words() == "200 ms in the middle, at most 300 ms (0:03)."
    assert in_words(keeps="least").endswith("at least 100 ms (0:02).")
    assert in_words(from_ms=4_000).endswith("at most 250 ms (0:00).")
    assert in_words(points=[None] * 5) == "not measured."


@pytest.mark.browser
def test_a_small_line_breaks_where_a_process_was_not_there(page: Page) -> None:
    """But not between two measurements of what is measured less often."""
    load_pure_scripts(page)

    def paths(points: list[float | None], most: float = 1.0) -> Any:
        return page.evaluate(f"(points) => sparkPaths(points, {most}, 220, 30)", points)

    assert len(paths([0.5] * 10 + [None] * 30 + [0.5] * 10)) == 2
    assert len(paths([0.5 if n % 5 == 0 else None for n in range(50)])) == 1
    assert len(paths([None, 0.5, None])) == 1
    assert paths([None], 0.0) == []


@pytest.mark.browser
def test_cpu_is_summed_by_side(page: Page) -> None:
    """What was tested apart from what tests; unknown is not zero."""
    processes = [
        {"is_ours": False, "cpu": [0.5, None, None]},
        {"is_ours": False, "cpu": [0.25, 0.5]},
        {"is_ours": True, "cpu": [1.0]},
    ]
    load_pure_scripts(page)
    used = "(processes) => [false, true].map((ours) => usedBy(processes, ours, 3))"
    assert page.evaluate(used, processes) == [[0.75, 0.5, None], [1.0, None, None]]


@pytest.mark.browser
def test_what_was_not_measured_has_no_plot(page: Page, tmp_path: Path) -> None:
    """An empty frame would look like a zero."""
    windows = small_result().outcome.windows
    nothing = [None] * len(windows.end_ms)
    windows = replace(windows, staleness_mean_ms=nothing, staleness_p99_ms=nothing)
    show(page, with_outcome(windows=windows), tmp_path)
    expect(page.locator("[data-plot=lag]")).to_have_count(1)
    expect(page.locator("[data-plot=staleness]")).to_have_count(0)


@pytest.mark.browser
def test_what_is_tested_stands_before_what_tests(page: Page, tmp_path: Path) -> None:
    """Both are shown: they may share the machine. What runs elsewhere cannot be."""
    processes = small_result().outcome.processes
    show(page, with_outcome(processes=processes[::-1]), tmp_path)
    names = page.locator(".processes tbody b").all_inner_texts()
    assert names.index("valkey") < names.index("crowd 1")
    expect(page.locator(".processes svg")).to_have_count(2 * len(processes))
    show(page, with_outcome(processes=()), tmp_path)
    expect(page.locator(".processes")).to_contain_text("ran elsewhere")


def test_a_plot_shows_the_thresholds_of_what_it_shows() -> None:
    """By what its rule is about, in the unit of the plot."""
    checks = [
        Check("lag.p99>250ms", 1.0, "", False),
        Check("feed.behind.max>2s", 1.0, "", False),
    ]
    limits = data_of(with_outcome(checks=checks))["limits"]
    assert [(limit["family"], limit["value"]) for limit in limits] == [
        ("lag", 250),
        ("feed.behind", 2_000),
    ]


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
    assert text.count("{{script}}") == text.count("{{nobody}}") == 3
    data = text.split('id="data">', 1)[1].split("</script>", 1)[0]
    assert "<" not in data
