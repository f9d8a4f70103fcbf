"""The end of a run in a terminal."""

from io import StringIO

import pytest
from rich.console import Console

from loadtest.report.terminal import summary
from loadtest.results import Result
from tests.loadtest.samples import (
    make_broken_result,
    make_capacity_result,
    make_comparison_result,
    make_result,
)


def printed(result: Result, width: int = 140) -> str:
    """Return what a terminal of a width shows."""
    console = Console(file=StringIO(), width=width)
    console.print(summary(result))
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue()


def test_the_answer_comes_first() -> None:
    """Then thresholds, distributions, kinds, the ledger and the reduction."""
    text = printed(make_result(40, 20))
    parts = ["It held", "faults>0", "staleness ", "Kind", "Ledger: "]
    parts += ["Audit: ", "Reduction: "]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "refused: balanced" in text


def test_all_that_is_wrong_is_told_and_nothing_is_markup() -> None:
    """Words of faults are printed as they are, brackets included."""
    text = printed(make_broken_result())
    assert "It did not hold: 6 of 9" in text
    assert "fault: client 9: a gap" in text
    assert "</script>: 3 missing" in text
    assert "41 differences" in text


@pytest.mark.parametrize("width", [80, 140])
def test_a_search_and_a_comparison_have_their_tables(width: int) -> None:
    """A narrow terminal folds what is wide, and loses none of it."""
    text = printed(make_capacity_result(), width)
    assert "65,000" in text
    assert "broke" in text
    text = printed(make_comparison_result(), width)
    assert "WebSocket" in text
