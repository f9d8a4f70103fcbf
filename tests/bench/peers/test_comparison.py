"""How what came compares with what had to be published."""

from bench.peers.comparison import Verdict, compare

ONE, OTHER = "KR7005930003", "KR7000660001"


def test_rows_as_they_have_to_be_are_right() -> None:
    """Every row counts as expected."""
    rows = {2_000: {ONE: (1, 1), OTHER: (1, 1)}, 4_000: {ONE: (2, 1)}}
    assert compare(rows, rows) == Verdict(3, missing=0, wrong=0, backwards=0)


def test_a_row_that_did_not_come_is_missing() -> None:
    """A window that never came, all of its rows."""
    expected = {2_000: {ONE: (1, 1)}, 4_000: {ONE: (2, 1), OTHER: (1, 1)}}
    came = {2_000: {ONE: (1, 1)}}
    assert compare(expected, came) == Verdict(3, missing=2, wrong=0, backwards=0)


def test_another_trade_than_the_newest_is_wrong() -> None:
    """So is the row of an instrument that did not trade in the window."""
    expected = {2_000: {ONE: (2, 1)}}
    came = {2_000: {ONE: (1, 1), OTHER: (1, 1)}}
    assert compare(expected, came) == Verdict(1, missing=0, wrong=2, backwards=0)


def test_an_older_trade_may_be_kept_back_and_goes_backwards_if_it_is_not() -> None:
    """A window's newest trade may be older than what was shown before."""
    expected = {2_000: {ONE: (5, 1)}, 4_000: {ONE: (4, 1)}, 6_000: {ONE: (6, 1)}}
    kept_back = {2_000: {ONE: (5, 1)}, 6_000: {ONE: (6, 1)}}
    assert compare(expected, kept_back) == Verdict(3, 0, 0, backwards=0)
    assert compare(expected, expected) == Verdict(3, 0, 0, backwards=1)
