"""Which of two trades is newer: by time, seq and position, as numbers and as text."""

from hypothesis import given
from hypothesis import strategies as st

from ingest.trade import EARLIEST_TIME_US, LATEST_TIME_US, MAX_SEQ
from throttle.contract.trade_order import VERSION_CHARS, encode_version, is_newer

ORDERS = st.tuples(
    st.integers(EARLIEST_TIME_US, LATEST_TIME_US - 1),
    st.integers(0, MAX_SEQ),
    st.integers(0, 2**63 - 1),
)


@given(ORDERS, ORDERS)
def test_text_compares_as_the_numbers_do(
    one: tuple[int, int, int], other: tuple[int, int, int]
) -> None:
    """Time first, then seq, then the position; equal ones are no news."""
    assert is_newer(encode_version(*one), encode_version(*other)) == (one > other)
    assert len(encode_version(*one)) == VERSION_CHARS


def test_any_trade_is_newer_than_none() -> None:
    """An instrument's first trade is news."""
    assert is_newer(encode_version(EARLIEST_TIME_US, 0, 0), None)
