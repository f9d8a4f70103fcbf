"""The plan, the steps and the joined cut of a batch that is open."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from throttle.contract.cut import Cut
from throttle.window.open_batch import (
    LAST_STEP_MS,
    BatchPlan,
    join_cuts,
    next_step_ms,
    plan_after,
)

START = Cut(4_000, (5, 6, 7), (5, None, 7))


def test_a_plan_survives_spark_as_the_same_text() -> None:
    """Spark writes it as JSON and compares texts: another one would be news."""
    plan = BatchPlan(START, 6_000, (0, 1, 2, 3))
    text = json.dumps(plan.to_offset())
    again = BatchPlan.from_offset(json.loads(text))
    assert again == plan
    assert json.dumps(again.to_offset()) == text


def test_a_job_begins_behind_a_batch_of_nothing() -> None:
    """The first batch follows it like any other."""
    plan = plan_after(START)
    assert (plan.start, plan.end_ms, plan.partitions) == (START, 4_000, (0, 1, 2))


@given(st.floats(0.01, 3_600_000))
def test_a_step_is_ahead_and_not_too_short(left: float) -> None:
    """Reading in ever smaller steps would cost more than it brings."""
    step = next_step_ms(left)
    assert 0 <= step < left
    assert step == 0 or left - step >= LAST_STEP_MS


def test_the_cuts_of_tasks_are_joined_by_partition() -> None:
    """Whoever reads which partitions, the cut is that of one task for all."""
    whole = Cut(6_000, (8, 6, 9), (8, None, 9))
    parts = [
        Cut(6_000, (6,), (None,), (1,)),
        Cut(6_000, (8, 9), (8, 9), (0, 2)),
    ]
    assert join_cuts((START, part) for part in parts) == (START, whole)
    assert join_cuts([(START, whole)]) == (START, whole)


@pytest.mark.parametrize(
    "parts",
    [
        [(START, Cut(6_000, (8, 6), (8, 6)))],
        [(START, Cut(6_000, (8, 6, 9), (8, 6, 9)))] * 2,
        [
            (START, Cut(6_000, (8, 6), (8, 6))),
            (START, Cut(8_000, (9,), (9,), (2,))),
        ],
        [
            (START, Cut(6_000, (8, 6), (8, 6))),
            (Cut(2_000, (), ()), Cut(6_000, (9,), (9,), (2,))),
        ],
    ],
    ids=["one is missing", "one is there twice", "two ends", "two starts"],
)
def test_cuts_that_are_no_parts_of_one_batch_are_refused(
    parts: list[tuple[Cut, Cut]],
) -> None:
    """Guessing what was read is worse than stopping."""
    with pytest.raises(ValueError, match="do not fit together"):
        join_cuts(parts)
