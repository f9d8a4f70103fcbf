"""The made-up market's rules: price grid, daily limits, instruments."""

import csv
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.sources.company_names import SECTORS
from ingest.sources.market import (
    COLUMNS,
    Book,
    create_instruments,
    daily_limits,
    encode_instruments,
    popularity,
    price_step,
    step_down,
    step_up,
)
from ingest.trade import Trade, check_isin


def test_price_step_follows_the_exchange_table() -> None:
    """The step changes exactly at the table's bounds."""
    bounds = (2_000, 5_000, 20_000, 50_000, 200_000, 500_000)
    steps = (1, 5, 10, 50, 100, 500, 1_000)
    assert [price_step(bound - 1) for bound in bounds] == list(steps[:-1])
    assert [price_step(bound) for bound in bounds] == list(steps[1:])


@given(st.integers(10, 3_000_000))
def test_stepping_up_and_down_returns(price: int) -> None:
    """Up is the inverse of down on the grid, across every bound."""
    on_grid = price - price % price_step(price)
    assert step_down(step_up(on_grid)) == on_grid
    assert step_up(step_down(on_grid)) == on_grid


@pytest.mark.parametrize(
    ("base", "upper"), [(51_900, 67_400), (19_680, 25_550), (2_085, 2_710), (259, 336)]
)
def test_upper_limit_is_the_exchange_s(base: int, upper: int) -> None:
    """The limit is cut to the step twice, as upper-limit closes show."""
    assert daily_limits(base)[1] == upper


@given(st.integers(200, 1_500_000))
def test_limits_are_on_the_grid_within_thirty_percent(base: int) -> None:
    """Both limits are prices that can trade, at most 30 % from the base price."""
    base -= base % price_step(base)
    lower, upper = daily_limits(base)
    assert 0.7 * base <= lower <= base <= upper <= 1.3 * base
    assert lower % price_step(lower) == upper % price_step(upper) == 0


def test_instruments_are_distinct_and_valid() -> None:
    """Every instrument has its own code and its own ISIN with the right check digit."""
    instruments = create_instruments("1", 2_879)
    assert len({check_isin(instrument.isin) for instrument in instruments}) == 2_879
    assert len({instrument.code for instrument in instruments}) == 2_879
    assert all(
        instrument.base_price % price_step(instrument.base_price) == 0
        for instrument in instruments
    )


def test_some_codes_are_not_part_of_their_isin() -> None:
    """Preferred shares differ from their code; some codes hold a letter."""
    instruments = create_instruments("1", 2_879)
    plain = [
        instrument
        for instrument in instruments
        if instrument.isin[3:9] == instrument.code
    ]
    lettered = [
        instrument for instrument in instruments if not instrument.code.isdigit()
    ]
    assert 50 <= len(instruments) - len(plain) <= 150
    assert 20 <= len(lettered) <= 60
    assert all(instrument.isin.startswith("KR7") for instrument in instruments)


def test_names_are_distinct_and_leave_trades_alone() -> None:
    """However many there are, all have names of their own; a seed is one market."""
    instruments = create_instruments("1", 20_000)
    assert len({instrument.name for instrument in instruments}) == 20_000
    first = create_instruments("1/listing", 2_879)[0]
    assert (first.isin, first.base_price) == ("KR7005930003", 42_500)


def test_the_instruments_of_the_documents_are_the_most_traded() -> None:
    """Whoever copies an example sees prices come."""
    for seed in ("1", "2", "1/listing"):
        first, second, *others = create_instruments(seed, 2_879)
        assert (first.isin, first.code, first.name) == (
            *("KR7005930003", "005930", "삼성전자"),
        )
        assert (second.isin, second.market) == ("KR7000660001", "KOSPI")
        assert not {first.isin, second.isin} & {i.isin for i in others}


def test_an_instrument_is_the_same_in_a_market_of_any_size() -> None:
    """What a smaller market shows is what everybody calls it."""
    most = create_instruments("1/listing", 20_000)
    for count in (1, 3, 2_879):
        assert create_instruments("1/listing", count) == most[:count]


def test_a_preferred_share_is_named_after_its_company() -> None:
    """It has name, market and sector of the common share listed before it."""
    instruments = create_instruments("2", 500)
    preferred = [k for k, i in enumerate(instruments) if i.isin[3:9] != i.code]
    assert len(preferred) >= 15
    for rank in preferred:
        share, common = instruments[rank], instruments[rank - 1]
        assert share.name == common.name + "우"
        assert (share.market, share.sector) == (common.market, common.sector)


def test_markets_have_the_shares_of_the_real_ones() -> None:
    """A third KOSPI, most of the rest KOSDAQ; KONEX is small and hardly trades."""
    instruments = create_instruments("1", 2_879)
    counts = Counter(instrument.market for instrument in instruments)
    assert counts["KOSPI"] / 2_879 == pytest.approx(0.33, abs=0.03)
    assert counts["KOSDAQ"] / 2_879 == pytest.approx(0.63, abs=0.03)
    assert counts["KONEX"] / 2_879 == pytest.approx(0.04, abs=0.01)
    assert "KONEX" not in {instrument.market for instrument in instruments[:2_500]}
    assert {instrument.sector for instrument in instruments} == {*SECTORS}


def test_popularity_is_heavy_tailed() -> None:
    """Ten instruments of 2,879 have a third of the trades, a hundred two thirds."""
    weights = popularity(2_879)
    total = sum(weights)
    assert weights == sorted(weights, reverse=True)
    assert 0.3 < sum(weights[:10]) / total < 0.45
    assert 0.6 < sum(weights[:100]) / total < 0.8


def test_price_stays_at_a_limit_it_has_reached() -> None:
    """Only upward bits take the price to the upper limit and no further."""
    (instrument,) = create_instruments("1", 1)
    lower, upper = daily_limits(instrument.base_price)
    for move, limit in ((0, upper), (1, lower)):
        book = Book(instrument)
        for _ in range(2_000):
            last = book.trade(1_773_964_800_000_000, move, [1] * 4_096)
        assert Trade.from_wire(last).price == str(limit)


def test_peeking_changes_nothing() -> None:
    """A trade that is not executed leaves seq and totals alone."""
    book = Book(create_instruments("1", 1)[0])
    peeked = book.peek(1_773_964_800_000_000)
    assert book.peek(1_773_964_800_000_000) == peeked
    assert Trade.from_wire(book.trade(1_773_964_800_000_000, 0, [5] * 4_096)).seq == 1


def test_every_instrument_is_a_line_under_the_header() -> None:
    """What is read back is what was listed, in its order."""
    instruments = create_instruments("1", 50)
    header, *rows = csv.reader(encode_instruments(instruments).splitlines())
    assert tuple(header) == COLUMNS
    assert rows == [
        [
            *(i.isin, i.code, i.name, i.market, i.sector, str(i.base_price)),
            *("KRW", str(i.listed_shares), "krx"),
        ]
        for i in instruments
    ]
