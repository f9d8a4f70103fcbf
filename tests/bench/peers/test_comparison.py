"""How what came compares with what had to be published."""

from bench.peers.comparison import Rows, compare

ONE, OTHER = "KR7005930003", "KR7000660001"
WINDOWS = {2_000: {ONE: (1, 1)}, 4_000: {ONE: (2, 1), OTHER: (1, 1)}}


def compared(expected: Rows, came: Rows) -> tuple[str, ...]:
    """Return how many rows were compared, missing, wrong and backwards."""
    return tuple(compare(expected, came).values())


def test_rows_are_right_missing_or_wrong() -> None:
    """Wrong is another trade than the newest, or an instrument that did not trade."""
    assert compared(WINDOWS, WINDOWS) == ("3", "0", "0", "0")
    assert compared(WINDOWS, {2_000: {ONE: (1, 1)}}) == ("3", "2", "0", "0")
    older = {2_000: {ONE: (1, 1), OTHER: (1, 1)}}
    assert compared({2_000: {ONE: (2, 1)}}, older) == ("1", "0", "2", "0")


def test_an_older_trade_may_be_kept_back_and_goes_backwards_if_it_is_not() -> None:
    """A window's newest trade may be older than what was shown before."""
    expected = {2_000: {ONE: (5, 1)}, 4_000: {ONE: (4, 1)}, 6_000: {ONE: (6, 1)}}
    kept_back = {2_000: {ONE: (5, 1)}, 6_000: {ONE: (6, 1)}}
    assert compared(expected, kept_back) == ("3", "0", "0", "0")
    assert compared(expected, expected) == ("3", "0", "0", "1")
    # The row that was shown before, said again with the sums of what came late.
    restated = expected | {4_000: {ONE: (5, 1)}}
    assert compared(expected, restated) == ("3", "0", "0", "0")
    assert compared(expected, restated | {6_000: {ONE: (5, 1)}})[2] == "1"
