"""One plot: thinned without hiding what stood out, and the same in words."""

from dataclasses import replace

import pytest

from bench.load.page.plot import Line, Plot, data, draw, elapsed, in_words
from bench.load.page.plots import plots
from bench.load.results import Check, Outcome
from tests.load.samples import BEGAN_MS, make_outcome

OUTCOME = make_outcome(seconds=40, clients=20)


def plot_of(*lines: Line, points: int) -> Plot:
    """Return a plot by the second."""
    at_ms = [BEGAN_MS + 1_000 * number for number in range(points)]
    return Plot("name", "Title", "About.", "ms", at_ms, lines)


def named(name: str, outcome: Outcome = OUTCOME) -> Plot:
    """Return one plot of an outcome."""
    return next(plot for plot in plots(outcome) if plot.name == name)


def test_many_points_become_few_that_keep_the_peak() -> None:
    """One slow second in three hours is seen; so is one lost client."""
    slow = [1.0] * 10_800
    slow[4_321] = 900.0
    there = [500.0] * 10_800
    there[77] = 499.0
    plot = plot_of(
        Line("lag", slow, "accent"),
        Line("clients", there, "amber", keeps="least"),
        points=10_800,
    )
    drawn = data(plot, OUTCOME)
    assert len(drawn["at"]) == len(drawn["lines"][0]["points"]) == 1_350
    assert max(drawn["lines"][0]["points"]) == 900
    assert min(drawn["lines"][1]["points"]) == 499
    assert "Each point is the greatest of 8 seconds." in draw(plot, OUTCOME)


def test_few_points_are_drawn_as_they_are() -> None:
    """Nothing is thinned that has room; what was not measured is a gap."""
    plot = plot_of(Line("lag", [1.0, None, 2.12345], "accent"), points=3)
    drawn = data(plot, OUTCOME)
    assert drawn["at"] == [0, 1, 2]
    assert drawn["lines"][0]["points"] == [1.0, None, 2.123]
    assert "Each point" not in draw(plot, OUTCOME)


def test_a_line_in_words_has_its_middle_and_when_it_was_worst() -> None:
    """The greatest of most, the least of what may be lost."""
    points = [200.0, None, 100.0, 300.0, 250.0]
    plot = plot_of(Line("lag", points, "accent"), points=5)
    assert in_words(plot, plot.lines[0], OUTCOME) == (
        "lag: 200 ms in the middle, at most 300 ms (0:03)."
    )
    least = replace(plot.lines[0], keeps="least")
    assert in_words(plot, least, OUTCOME).endswith("at least 100 ms (0:02).")
    early = replace(OUTCOME, from_ms=BEGAN_MS + 4_000)
    assert in_words(plot, plot.lines[0], early).endswith("at most 250 ms (0:00).")
    nothing = replace(plot.lines[0], points=[None] * 5)
    assert in_words(plot, nothing, OUTCOME) == "lag: not measured."


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0:00"),
        (59_999, "0:59"),
        (302_000, "5:02"),
        (-20_000, "-0:20"),
        (3_723_000, "1:02:03"),
    ],
)
def test_a_moment_is_told_from_when_measuring_began(ms: float, text: str) -> None:
    """What was before is there, with a minus."""
    assert elapsed(ms) == text


def test_a_plot_shows_the_thresholds_of_what_it_shows() -> None:
    """Of other metrics, or of a version that knows more, it shows none."""
    checks = [
        Check("lag.p99>250ms", 1.0, "", False),
        Check("lag.market.p99>1s", 1.0, "", False),
        Check("luck.p99>1s", 1.0, "", False),
        Check("feed.behind.max>2s", 1.0, "", False),
    ]
    outcome = replace(OUTCOME, checks=checks)
    assert [limit.value for limit in named("lag", outcome).limits] == [250]
    assert [limit.value for limit in named("behind", outcome).limits] == [2_000]
    assert not named("staleness", outcome).limits


def test_what_was_not_measured_has_no_plot() -> None:
    """An empty frame would look like a zero."""
    windows = replace(OUTCOME.windows, staleness_mean_ms=[None] * 20)
    windows = replace(windows, staleness_p99_ms=[None] * 20)
    names = [plot.name for plot in plots(replace(OUTCOME, windows=windows))]
    assert "staleness" not in names
    assert names[0] == "lag"


def test_cpu_is_summed_by_side() -> None:
    """What was tested apart from what tests; unknown is not zero."""
    one, two, ours = OUTCOME.processes[0], OUTCOME.processes[1], OUTCOME.processes[-1]
    processes = [
        replace(one, cpu=[0.5, None, None]),
        replace(two, cpu=[0.25, 0.5]),
        replace(ours, cpu=[1.0]),
    ]
    lines = {
        line.name: line
        for line in named("cpu", replace(OUTCOME, processes=processes)).lines
    }
    assert list(lines["tested"].points[:3]) == [0.75, 0.5, None]
    assert list(lines["load test"].points[:2]) == [1.0, None]
