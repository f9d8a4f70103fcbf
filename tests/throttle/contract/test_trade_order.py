"""Which of two trades is newer: by time, seq and position, as numbers and as text."""

from hypothesis import given
from hypothesis import strategies as st

from ingest.trade import EARLIEST_TIME_US, LATEST_TIME_US, MAX_SEQ
from throttle.contract.trade_order import (
    MOST_REVISIONS,
    REVISION_CHARS,
    VERSION_CHARS,
    as_shown,
    decode_version,
    encode_version,
    is_newer,
)

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


@given(ORDERS, ORDERS, st.integers(0, MOST_REVISIONS), st.booleans())
def test_only_where_the_shown_trade_is_gone_an_older_one_is_shown(
    one: tuple[int, int, int], shown: tuple[int, int, int], revision: int, is_gone: bool
) -> None:
    """Then the revision is raised, as long as there is one left."""
    known = encode_version(*shown, revision)
    gone = {known[REVISION_CHARS:]} if is_gone else set[bytes]()
    version = as_shown(encode_version(*one), known, gone)
    assert decode_version(version) == one
    if one > shown or not is_gone:
        assert version[:REVISION_CHARS] == known[:REVISION_CHARS]
    else:
        assert version[:REVISION_CHARS] == b"%04d" % min(revision + 1, MOST_REVISIONS)
    is_stuck = revision == MOST_REVISIONS
    assert is_newer(version, known) == (one > shown or (is_gone and not is_stuck))


@given(ORDERS)
def test_the_first_trade_is_of_no_revision(one: tuple[int, int, int]) -> None:
    assert as_shown(encode_version(*one), b"") == encode_version(*one)
