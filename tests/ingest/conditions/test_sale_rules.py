"""Which trade sets the last price, where that depends on those before."""

from collections import Counter

import pytest

from ingest.conditions import sale_rules
from ingest.conditions.rule_table import parse_table
from ingest.conditions.sale_rules import Sale, SaleRules
from ingest.trade import Trade

TABLE = parse_table(
    "own",
    "#time-zone: America/New_York\ncode,last,range,volume\n@,yes,yes,yes\n"
    "Z,first_only,yes,yes\nL,own_market,yes,yes\nI,no,no,yes\n",
)
OTHERS = parse_table("other", "code,last,range,volume\nI,no,no,yes\n")
EVENING_US = 1_795_651_200_000_000
"""2026-11-25, 19:00 in New York: midnight of the 26th, UTC."""
DAY_US = 86_400_000_000
A, B = "US0378331005", "US5949181045"


class Source:
    """Trades as they come, and which of them set the last price."""

    def __init__(self, *, is_whole: bool) -> None:
        self.unknown: Counter[str] = Counter()
        self.rules = SaleRules(TABLE, self.unknown, is_whole=is_whole)

    def sets(
        self, codes: str, at_us: int = 0, market: str = "V", isin: str = A, **extra: str
    ) -> bool:
        """Tell whether a trade sets the last price."""
        trade = Trade(isin, EVENING_US + at_us, 1, "1", "1", extra)
        return self.rules.apply(trade, Sale(codes, market=market)).updates.last


def test_only_the_first_trade_of_the_day_sets_it_by_first_only() -> None:
    source = Source(is_whole=True)
    assert source.sets("Z")
    assert not source.sets("Z", 1)
    assert source.sets("@", 2)
    assert not source.sets("Z", 3)
    assert source.sets("Z", isin=B)


def test_a_day_is_one_of_the_market_s_clock() -> None:
    """Midnight of UTC is in the middle of the evening."""
    source = Source(is_whole=True)
    assert source.sets("@", -1)
    assert not source.sets("Z", 1)
    assert source.sets("Z", DAY_US)
    # A late one of the day before, which nobody knows any more.
    assert not source.sets("Z", 0)
    assert not source.sets("L", 0)


def test_the_market_that_set_it_last_sets_it_by_own_market() -> None:
    source = Source(is_whole=True)
    assert source.sets("L", 0, "N")
    assert source.sets("L", 1, "N")
    assert not source.sets("L", 2, "V")
    assert source.sets("@", 3, "V")
    # An odd lot sets nothing, and an older trade is not the last.
    assert not source.sets("I", 4, "N")
    assert source.sets("@", 1, "N")
    assert source.sets("L", 5, "V")
    assert not source.sets("L", 6, "N")
    assert not source.sets("L", 6, "")


def test_a_source_that_began_during_the_day_does_not_know_its_first_trade() -> None:
    source = Source(is_whole=False)
    assert not source.sets("Z")
    assert not source.sets("L", 1)
    assert source.sets("@", 2)
    assert source.sets("L", 3)
    assert not source.sets("Z", 4, isin=B)
    assert source.sets("Z", DAY_US, isin=B)


def test_what_is_forgotten_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sale_rules, "MOST_INSTRUMENTS", 1)
    source = Source(is_whole=True)
    assert source.sets("@")
    assert source.sets("@", isin=B)
    assert not source.sets("Z", 1)
    assert source.sets("Z", DAY_US)


def test_a_trade_that_says_more_counts_for_the_least() -> None:
    source = Source(is_whole=True)
    assert not source.sets("@", updates="range,volume")
    # So it has set nothing, either.
    assert source.sets("Z", 1)
    trade = Trade(A, EVENING_US, 1, "1", "1", {"updates": "last"})
    told = source.rules.apply(trade, Sale("I"))
    assert told.extra == {"updates": "none"}


def test_an_ordinary_trade_is_left_as_it_is() -> None:
    trade = Trade(A, EVENING_US, 1, "1", "1")
    assert Source(is_whole=True).rules.apply(trade, Sale("@")) is trade
    assert SaleRules(OTHERS).apply(trade, Sale("")) is trade
    assert not SaleRules(OTHERS).apply(trade, Sale("I")).updates.last


def test_unknown_conditions_are_counted_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sale_rules, "MOST_NAMES", 2)
    source = Source(is_whole=True)
    for codes in ("?", "@ ?", "!", "#", "Z" * 50 + "12"):
        source.sets(codes)
    assert source.unknown == {"?": 2, "!": 1, "other": 3}
