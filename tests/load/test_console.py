"""Progress while a run goes on."""

from dataclasses import replace
from io import StringIO

from rich.console import Console

from bench.load.console import Now, Progress, line

NOW = Now(
    phase="measuring",
    elapsed_s=65.4,
    total_s=600,
    due_rate=900,
    append_rate=897,
    behind_ms=12,
    lag_p50_ms=150,
    lag_p99_ms=320,
    clients=990,
    aimed=1_000,
    frame_rate=480,
    byte_rate=650_000,
    closes={"4408": 3, "1012": 1},
)
LINE = (
    "1:05 of 10:00 measuring; trades in 897/s of 900/s due, 12 ms behind; "
    "lag p50 150 ms, p99 320 ms; clients 990 of 1,000; out 480 frames/s, 635 KiB/s; "
    "closed 1012 1, 4408 3; refused 0; faults 0"
)


def text_of(console: Console) -> str:
    """Return what was printed."""
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_one_line_says_all() -> None:
    """What is not known yet is a dash, not a zero."""
    assert line(NOW) == LINE
    text = line(Now(phase="starting", elapsed_s=3_725))
    assert text.startswith("1:02:05 starting; trades in \N{EN DASH}/s of ")


def test_without_a_terminal_there_is_a_line_now_and_then() -> None:
    """At most one in ten seconds, but a phase that begins is told at once."""
    clock_s = iter([0.0, 1.0, 9.9, 10.0, 11.0]).__next__
    console = Console(file=StringIO(), width=60)
    with Progress(console, clock_s) as progress:
        for _ in range(4):
            progress.show(NOW)
        progress.show(replace(NOW, phase="settling"))
    lines = text_of(console).splitlines()
    assert lines == [LINE, LINE, LINE.replace("measuring", "settling")]


def test_a_terminal_shows_one_block_and_leaves_what_was_said() -> None:
    """Figures are drawn over; a sentence stays above them."""
    console = Console(
        file=StringIO(), width=100, force_terminal=True, color_system=None
    )
    with Progress(console) as progress:
        progress.show(NOW)
        progress.say("[the deployment] is ready")
        progress.show(replace(NOW, faults=2))
    text = text_of(console)
    assert "[the deployment] is ready" in text
    assert "p50 150 ms, p99 320 ms" in text
    assert LINE not in text
