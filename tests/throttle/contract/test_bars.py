"""A bar: its encoded form, its average price, which of two is kept."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from throttle.contract.bars import Bar, BarsUpdate, add, newer, subtract, text

DECIMALS = st.decimals(
    min_value=Decimal("0.000001"), max_value=Decimal(10) ** 17, places=6
)
BAR = Bar(
    "KR7005930003",
    60_000,
    120_000,
    *(Decimal(price) for price in ("199400.00", "199500", "199300", "0.30")),
    Decimal("10.50"),
    Decimal("2093702"),
    3,
    False,
    0,
)


def test_clients_get_decimals_as_numbers_with_their_own_digits() -> None:
    """Named as everybody names them; no zeros at the end, no exponent."""
    assert BAR.body() == (
        b'{"isin":"KR7005930003","start":60000,"end":120000,"open":199400,'
        b'"high":199500,"low":199300,"close":0.3,"volume":10.5,"value":2093702,'
        b'"trades":3,"vwap":199400.19048,"closed":false,"revision":0}'
    )


def test_a_sum_that_does_not_fit_is_none_and_so_is_the_average() -> None:
    """Never a wrong one."""
    assert add([Decimal(10) ** 20 - 1, Decimal(1)]) is None
    assert add([None, Decimal(1)]) is None
    bar = replace(BAR, value=None)
    assert bar.vwap is None
    assert Bar.decode(bar.isin, bar.encode()) == bar
    assert b'"value":null' in bar.body()


def test_a_price_that_no_trade_sets_is_null() -> None:
    """What counts for the volume alone has an average all the same."""
    unpriced = replace(BAR, open=None, close=None, high=None, low=None)
    assert unpriced.encode() == b"60000 120000 - - - - 10.5 2093702 3 0 0"
    assert b'"open":null,"high":null,"low":null,"close":null' in unpriced.body()
    assert unpriced.vwap == Decimal("199400.1905")
    nothing = replace(unpriced, volume=Decimal(0), value=Decimal(0))
    assert nothing.body().endswith(
        b'"volume":0,"value":0,"trades":3,"vwap":null,"closed":false,"revision":0}'
    )


MAYBE = st.none() | DECIMALS


@given(
    st.tuples(MAYBE, MAYBE, MAYBE, MAYBE),
    DECIMALS,
    DECIMALS,
    st.integers(1, 10**9),
    st.booleans(),
)
def test_a_bar_survives_redis(
    prices: tuple[Decimal | None, ...],
    volume: Decimal,
    value: Decimal,
    trades: int,
    closed: bool,
) -> None:
    """What is decoded equals what was encoded, alone and in a message."""
    bar = Bar("KR7005930003", 0, 60_000, *prices, volume, value, trades, closed, 2)
    assert Bar.decode(bar.isin, bar.encode()) == bar
    update = BarsUpdate("e", 5, 9, (bar, BAR), ((bar.isin, b"1 2 x"),))
    assert BarsUpdate.decode(update.encode()) == update


@given(DECIMALS, DECIMALS)
def test_sums_are_exact(one: Decimal, other: Decimal) -> None:
    """What was added can be taken away again."""
    total = add([one, other])
    assert total is not None
    assert subtract(total, other) == one
    assert Decimal(text(total)) == total


def test_the_bar_with_more_trades_is_kept_and_what_was_closed_stays_so() -> None:
    """A bar only ever gains trades."""
    richer = replace(BAR, trades=4, close=Decimal(7))
    assert newer(None, BAR) == BAR
    assert newer(BAR, richer) == richer
    assert newer(richer, BAR) == richer
    assert newer(replace(BAR, closed=True), richer).closed
    assert newer(richer, replace(BAR, closed=True)) == replace(richer, closed=True)


def test_a_bar_that_lost_a_trade_is_newer_and_closed_if_it_was() -> None:
    """Trades are taken back: the number of revisions grows, that of trades does not."""
    poorer = replace(BAR, trades=1, revision=BAR.revision + 1)
    assert newer(BAR, poorer) == poorer
    assert newer(poorer, BAR) == poorer
    assert newer(replace(BAR, closed=True), poorer) == replace(poorer, closed=True)


@pytest.mark.parametrize("line", [b"", b"1 2 3", b"a b c d e f g h i j k"])
def test_a_foreign_line_is_a_value_error(line: bytes) -> None:
    """There is one kind of error."""
    with pytest.raises(ValueError):  # noqa: PT011 - the contract is the type
        Bar.decode("KR7005930003", line)


@pytest.mark.parametrize("message", [b"", b"{}", b"[]", b'{"bars":1}\nx'])
def test_a_foreign_message_is_a_value_error(message: bytes) -> None:
    """Whatever comes over the channel, there is one kind of error."""
    with pytest.raises(ValueError):  # noqa: PT011 - the contract is the type
        BarsUpdate.decode(message)
