"""The tables of what was measured."""

from bench.peers.oracle import Verdict
from bench.peers.results import (
    Drained,
    Live,
    Silence,
    drain_table,
    live_table,
    silence_table,
)

RIGHT = Verdict(100, 0, 0, 0)


def cells(table: str) -> list[list[str]]:
    """Return the cells of a table's rows, without its head."""
    lines = table.splitlines()
    assert len({line.count("|") for line in lines}) == 1
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]


def test_lags_are_those_of_all_rounds_and_the_rest_are_medians() -> None:
    """A round is no sample of its own: its windows are."""
    runs = [
        Live("a", 900, [10, 20], 2, 8, 0.1, 100, 5),
        Live("b", 900, [30], 2, 1, 0.1, 100, 5),
        Live("a", 900, [90, 30], 2, 8, 0.3, 200, 7),
    ]
    assert cells(live_table(runs)) == [
        ["a", "900", "4", "20", "90", "90", "4.0", "0.20", "150", "7"],
        ["b", "900", "1 of 2", "30", "30", "30", "0.5", "0.10", "100", "5"],
    ]


def test_an_engine_without_a_whole_window_has_no_lag() -> None:
    """The table says so and goes on."""
    [row] = cells(live_table([Live("a", 900, [], 2, 0, 0.1, 100, 5)]))
    assert row[2:6] == ["0 of 2", "-", "-", "-"]


def test_the_fate_of_a_last_window_is_told_in_words() -> None:
    """Whole, in part, or never."""
    runs = [
        Silence("a", 2.0, 10, 10, 55.4, RIGHT),
        Silence("a", 4.0, 10, 3, 55.4, RIGHT),
        Silence("a", 4.0, 10, 0, None, Verdict(50, 1, 2, 3)),
    ]
    fates = "whole, after 55 ms, 3 of 10 rows came, never came"
    assert cells(silence_table(runs)) == [["a", "4", fates, "250", "1", "2", "3"]]


def test_a_drain_has_rates_and_costs_per_trade() -> None:
    """Medians over rounds; rows and late trades are added up."""
    one = Drained("a", 1_000, 2.0, 4.0, 0.004, 5.0, 300, RIGHT, 40, 0, 40)
    other = Drained("a", 1_000, 4.0, 8.0, 0.008, 7.0, 500, RIGHT, 40, 1, 39)
    assert cells(drain_table([one, other])) == [
        [
            *("a", "375", "500, 250", "188", "6.0", "6", "400"),
            *("200", "0", "0", "0", "1 of 80", "79"),
        ]
    ]
