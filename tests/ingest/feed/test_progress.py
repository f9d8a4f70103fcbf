"""What an operator sees of a feed."""

import io
import sys
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from ingest.feed.pacer import FeedProgress, FeedReport
from ingest.feed.progress import LogDisplay, log_report, open_display, status_line

PROGRESS = FeedProgress(12.0, 1_234, 749.6, 0.126, 3, 0, 0)


def test_status_names_the_numbers_of_a_healthy_feed() -> None:
    """Trades, rate, lag and refusals are always there, trouble is not."""
    assert status_line(PROGRESS) == "1,234 trades, 750/s, 0.13 s behind, 3 refused"


def test_status_names_trouble() -> None:
    """What was tried again and what a full log dropped is told."""
    line = status_line(replace(PROGRESS, retried=7, dropped_at_cap=5_000))
    assert line.endswith("7 tried again, 5,000 dropped: the log is full")


def test_log_lines_come_every_ten_seconds() -> None:
    """The feed's own time decides, however often progress is told."""
    display = LogDisplay("replay")
    with capture_logs() as logs:
        for tenth in range(0, 350):
            display(replace(PROGRESS, elapsed_s=tenth / 10))
    assert [entry["event"] for entry in logs] == ["replay"] * 3
    assert (logs[0]["acknowledged"], logs[0]["lag_s"]) == (1_234, 0.126)


def test_a_terminal_shows_a_bar_with_the_status(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The numbers stand beside it."""
    out = io.StringIO()
    out.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setenv("COLUMNS", "120")
    with open_display("simulator", 2_000) as display:
        display(PROGRESS)
    assert "simulator" in out.getvalue()
    assert status_line(PROGRESS) in out.getvalue()


def test_without_a_terminal_there_are_log_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A file keeps lines, not bars."""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with open_display("replay", None) as display:
        assert isinstance(display, LogDisplay)


@pytest.mark.parametrize(("stopped", "said"), [(True, "stopped"), (False, "finished")])
def test_report_is_logged_with_its_refusals(stopped: bool, said: str) -> None:
    """The last lines say how a feed ended and which rows were refused first."""
    report = FeedReport(9, {"bad_isin": 1}, ("line 3: bad",), 0, 1.25, 0.5, 0, stopped)
    report = replace(report, unknown_conditions={"?": 2})
    with capture_logs() as logs:
        log_report("replay", report)
    assert logs[0]["event"] == f"replay: {said}"
    assert logs[0]["refused"] == {"bad_isin": 1}
    assert logs[0]["unknown_conditions"] == {"?": 2}
    assert "left_out" not in logs[0]
    assert logs[1]["row"] == "line 3: bad"
