"""A move is completed by the trade that is far enough from its span's extreme."""

from decimal import Decimal

import pytest

from throttle.analytics.moves.move_rule import MoveRule, PricedTrade, moves_of

SECOND = 1_000_000
RULE = MoveRule(10 * SECOND, Decimal(3))


def moves(prices: str, rule: MoveRule = RULE, since_s: int = 0) -> list[str]:
    """Return the moves of ``second:price`` pairs, as ``first>last from>to``."""
    pairs = [pair.partition(":")[::2] for pair in prices.split()]
    trades = [
        PricedTrade(int(second) * SECOND, seq, 0, Decimal(price))
        for seq, (second, price) in enumerate(pairs)
    ]
    return [
        f"{m.start_us // SECOND}>{m.end_us // SECOND} {m.before}>{m.after}"
        for m in moves_of("I", trades, rule, since_s * SECOND)
    ]


@pytest.mark.parametrize(
    ("prices", "expected"),
    [
        ("0:100 5:103", ["0>5 100>103"]),
        ("0:100 5:102.999999999999999999", []),
        ("0:100 5:97", ["0>5 100>97"]),
        ("0:100 5:97.000000000000000001", []),
        # Ten seconds apart is within the span, and no more.
        ("0:100 10:103", ["0>10 100>103"]),
        ("0:100 11:103", []),
        # From the latest trade at the lowest price.
        ("0:100 2:101 3:100 4:102 6:103", ["3>6 100>103"]),
        # Told once while the price stays up, and again after it came down.
        ("0:100 1:103 2:104 3:110", ["0>1 100>103"]),
        ("0:100 1:103 2:101 3:103", ["0>1 100>103", "0>3 100>103"]),
        # The low leaves the span, and the price goes on from a higher one.
        ("0:100 1:103 12:104 13:107.2", ["0>1 100>103", "12>13 104>107.2"]),
        # The same trade may be far above the lowest and far below the highest.
        ("0:100 1:110 2:105", ["0>1 100>110", "1>2 110>105"]),
        ("0:110 1:100 2:105", ["0>1 110>100", "1>2 100>105"]),
        ("0:100", []),
    ],
)
def test_a_move_is_told_as_the_rule_says(prices: str, expected: list[str]) -> None:
    """From which trade to which."""
    assert moves(prices) == expected


def test_what_was_told_before_is_not_told_again() -> None:
    """Trades before the moment are there to be compared with."""
    prices = "0:100 1:103 2:104 3:100 4:104"
    assert moves(prices) == ["0>1 100>103", "2>3 104>100", "3>4 100>104"]
    assert moves(prices, since_s=2) == ["2>3 104>100", "3>4 100>104"]
    assert moves(prices, since_s=4) == ["3>4 100>104"]


def test_a_share_of_a_per_cent_is_a_rule_too() -> None:
    """Compared exactly, as decimals."""
    rule = MoveRule(SECOND, Decimal("0.01"))
    assert moves("0:10000 1:10001", rule) == ["0>1 10000>10001"]
    assert moves("0:10001 1:10000", rule) == []
    assert rule.is_met(Decimal("1e-18"), Decimal("2e-18"))
