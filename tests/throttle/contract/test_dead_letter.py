"""Where a dead letter stands, by the place of its trade in the log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.tradelog.contract import LogKind
from throttle.contract.dead_letter import letter_id, letter_position

positions = st.integers(0, 2**63 - 1)


def test_a_letter_of_a_redis_log_has_the_id_of_its_trade() -> None:
    """Both can be looked at side by side."""
    assert letter_id((77 << 21) + 3, "redis") == "77-3"
    assert letter_position(b"77-3", "redis") == (77 << 21) + 3


def test_a_letter_of_a_topic_has_the_offset_of_its_trade() -> None:
    """The first offset is 0, and 0-0 is no id that a stream takes."""
    assert letter_id(0, "kafka") == "0-1"
    assert letter_id(4_711, "kafka") == "4711-1"
    assert letter_position(b"4711-1", "kafka") == 4_711


@pytest.mark.parametrize("log", ["redis", "kafka"])
@given(one=positions, other=positions)
def test_ids_grow_with_positions_and_lead_back_to_them(
    log: LogKind, one: int, other: int
) -> None:
    """A stream takes its entries in order only."""
    ids = [letter_id(position, log) for position in (one, other)]
    assert [letter_position(found.encode(), log) for found in ids] == [one, other]
    places = [tuple(map(int, found.split("-"))) for found in ids]
    assert (places[0] < places[1]) == (one < other)
