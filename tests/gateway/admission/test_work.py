"""What work costs, and who pays for it."""

import pytest

from gateway.admission.limits import TokenBucket
from gateway.admission.work import (
    BURST_S,
    SNAPSHOT_SHARE,
    STREAM_BURST_ROWS,
    STREAM_ROWS_PER_S,
    WorkBudget,
    WorkRefused,
    check_snapshots,
    message_rows,
    payers_of,
)


def test_who_has_a_row_left_may_ask_for_anything() -> None:
    """What it costs is known afterwards; then he waits until he has paid for it."""
    budget = WorkBudget(rows_per_s=100)
    budget.check(("a",), 0.0)
    budget.charge(("a",), 100 * BURST_S + 500, 0.0)
    with pytest.raises(WorkRefused, match="100 rows a second") as refused:
        budget.check(("a",), 0.0)
    assert refused.value.wait_ms == 5_010
    with pytest.raises(WorkRefused):
        budget.check(("a",), 5.0)
    budget.check(("a",), 5.02)


def test_whole_boards_may_take_a_part_of_it() -> None:
    """So that what is short is still to be had."""
    budget = WorkBudget(rows_per_s=100)
    budget.charge(("a",), 100 * BURST_S * SNAPSHOT_SHARE, 0.0)
    budget.check(("a",), 0.0)
    with pytest.raises(WorkRefused) as refused:
        budget.check(("a",), 0.0, SNAPSHOT_SHARE)
    assert refused.value.wait_ms == 10
    budget.check(("a",), 0.02, SNAPSHOT_SHARE)


def test_others_do_not_pay() -> None:
    """Each address has rows of its own, and each holder of tokens."""
    budget = WorkBudget(rows_per_s=100)
    budget.charge(("a", "token x"), 1_000_000, 0.0)
    budget.check(("b",), 0.0)
    budget.check(("b", "token y"), 0.0)
    for payers in [("b", "token x"), ("a", "token y")]:
        with pytest.raises(WorkRefused):
            budget.check(payers, 0.0)


def test_a_token_pays_wherever_it_is_shown() -> None:
    """An address alone pays where none is shown."""
    assert payers_of("a", "") == ("a",)
    assert payers_of("a", "x") != payers_of("a", "y")
    assert payers_of("a", "x")[1:] == payers_of("b", "x")[1:]


def test_the_heaviest_is_who_has_spent_most_and_much() -> None:
    """Nobody is, as long as nobody has asked for more than others do."""
    budget = WorkBudget(rows_per_s=100)
    most = 100 * BURST_S
    budget.charge(("a",), 0.4 * most, 0.0)
    assert budget.heaviest(["a", "b"], 0.0) is None
    assert budget.heaviest([], 0.0) is None
    budget.charge(("b",), 0.9 * most, 0.0)
    budget.charge(("c",), 0.6 * most, 0.0)
    assert budget.heaviest(["a", "b", "c"], 0.0) == "b"
    assert [budget.is_heavy(name, 0.0) for name in "abc"] == [False, True, True]
    assert not budget.is_heavy("c", 0.2 * BURST_S)


def test_a_message_costs_what_is_in_it() -> None:
    """A thousand keys take as long to read as many instruments to send."""
    assert message_rows('{"op":"ping"}') == 5
    assert message_rows("x" * 32_000) == 1_005


def test_a_stream_has_rows_of_its_own() -> None:
    """Whole boards at once, and then one now and then."""
    budget = TokenBucket(STREAM_ROWS_PER_S, STREAM_BURST_ROWS, 5.0)
    for _ in range(10):
        check_snapshots(budget, 5.0)
        budget.charge(STREAM_BURST_ROWS // 10, 5.0)
    with pytest.raises(WorkRefused) as refused:
        check_snapshots(budget, 5.0)
    assert refused.value.wait_ms <= 2
    budget.charge(3 * STREAM_ROWS_PER_S, 5.0)
    with pytest.raises(WorkRefused):
        check_snapshots(budget, 7.9)
    check_snapshots(budget, 8.1)
