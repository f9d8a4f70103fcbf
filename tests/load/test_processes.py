"""CPU and memory of every process, drawn small."""

from dataclasses import replace

from bench.load.page.processes import processes, sparkline
from tests.load.samples import make_outcome

OUTCOME = make_outcome(seconds=40, clients=20)


def test_what_is_tested_stands_before_what_tests() -> None:
    """Both are shown: they may share the machine."""
    text = processes(replace(OUTCOME, processes=OUTCOME.processes[::-1]))
    assert text.index("valkey") < text.index("crowd 1")
    assert text.count("<svg") == 2 * len(OUTCOME.processes)


def test_without_a_process_it_says_so() -> None:
    """What runs elsewhere cannot be measured from here."""
    assert "ran elsewhere" in processes(replace(OUTCOME, processes=()))


def test_a_line_breaks_where_a_process_was_not_there() -> None:
    """But not between two measurements of what is measured less often."""
    gone = [0.5] * 10 + [None] * 30 + [0.5] * 10
    assert sparkline(gone, 1.0, "accent").count("<path") == 2
    rare = [0.5 if number % 5 == 0 else None for number in range(50)]
    assert sparkline(rare, 1.0, "accent").count("<path") == 1
    assert sparkline([None, 0.5, None], 1.0, "accent").count("<path") == 1
    assert "<path" not in sparkline([None], 0.0, "accent")
