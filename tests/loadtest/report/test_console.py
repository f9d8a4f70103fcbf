"""RunDisplay while a run goes on."""

from array import array
from collections import Counter
from io import StringIO

from rich.console import Console

from loadtest.feed.fed import Fed
from loadtest.judge.tallies import CrowdTick
from loadtest.report.console import RunDisplay, figures
from loadtest.report.recorder import Moment
from loadtest.results import ClientTally

SO_FAR = ClientTally(closes=Counter({"4408": 3, "1012": 1}))
TICK = CrowdTick(
    Counter(watch=990),
    ClientTally(frames=960, bytes=1_300_000),
    array("f", [150, 150, 320]),
)
FIGURES = figures([Moment(0, 2, Fed(2, 1_794, 12), TICK)], SO_FAR, 1_000)
LINE = (
    "1:05 measuring; trades in 897/s, 12 ms behind; "
    "lag p50 150 ms, p99 320 ms; clients 990 of 1,000; out 480 frames/s, 635 KiB/s; "
    "closed 1012 1, 4408 3; refused 0; faults 0"
)


def text_of(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_what_is_not_known_yet_is_a_dash() -> None:
    nothing = [Moment(0, 1, Fed(), CrowdTick())]
    assert (
        figures(nothing, ClientTally(), 0)["lag"] == "p50 \N{EN DASH}, p99 \N{EN DASH}"
    )


def test_without_a_terminal_there_is_a_line_now_and_then() -> None:
    """At most one in ten seconds, but a phase that begins is told at once."""
    clock_s = iter([0.0, 1.0, 9.9, 10.0, 11.0]).__next__
    console = Console(file=StringIO(), width=60)
    with RunDisplay(console, clock_s) as progress:
        for _ in range(4):
            progress.show("measuring", 65.4, FIGURES)
        progress.show("settling", 3_725, FIGURES)
    settling = LINE.replace("1:05 measuring", "1:02:05 settling")
    assert text_of(console).splitlines() == [LINE, LINE, settling]


def test_a_terminal_shows_one_line_and_leaves_what_was_said() -> None:
    """Figures are drawn over; a sentence stays above them."""
    console = Console(
        file=StringIO(), width=300, force_terminal=True, color_system=None
    )
    with RunDisplay(console) as progress:
        progress.show("measuring", 65.4, FIGURES)
        progress.say("[the deployment] is ready")
        progress.show("measuring", 66.4, {**FIGURES, "faults": "2"})
    text = text_of(console)
    assert "[the deployment] is ready" in text
    assert LINE in text
