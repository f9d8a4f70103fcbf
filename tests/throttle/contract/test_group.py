"""What a window says of a group."""

import pytest

from throttle.contract.group import (
    Group,
    GroupFigures,
    StoredGroup,
    change_of,
    decode_groups,
    encode_groups,
    market_key,
    sector_key,
    units,
)


def test_a_group_says_how_its_instruments_and_their_trades_went() -> None:
    """Breadth counts instruments, sums count all trades, numbers are exact."""
    figures = GroupFigures()
    figures.add_instrument("110", "100")
    figures.add_instrument("99.5", "100")
    figures.add_instrument("100.00", "100")
    figures.add_instrument("7", None)
    figures.add_trades(3, units("12345678901234567890.5"), units("0.10"))
    figures.add_trades(1, units("1.5"), units("0.000000000000000003"))
    assert figures.encode(market_key("KOSPI"), 4_000) == Group(
        "group:market:KOSPI",
        b'{"group":"group:market:KOSPI","window":4000,"instruments":4,"advancing":1,'
        b'"declining":1,"unchanged":1,"unpriced":1,"trades":4,'
        b'"volume":12345678901234567892,"value":0.100000000000000003,'
        b'"mean_change_pct":3.1667}',
    )


@pytest.mark.parametrize(
    ("prices", "mean"),
    [
        ([], None),
        (["100"], "0.0000"),
        (["99.99995"], "0.0000"),
        (["99.9999"], "-0.0001"),
        (["100.00005"], "0.0001"),
        (["0.000000000000000001"], "-100.0000"),
        (["999999999999999999", "1"], "499999999999999900.0000"),
    ],
)
def test_the_mean_change_has_four_places_and_a_half_goes_up(
    prices: list[str], mean: str | None
) -> None:
    """Whole numbers all the way: every machine rounds alike."""
    figures = GroupFigures()
    for price in prices:
        figures.add_instrument(price, "100")
    assert figures.mean_change_pct == mean


def test_a_change_that_is_rounded_away_is_a_change_nevertheless() -> None:
    """An instrument is unchanged only if its price is the previous close."""
    figures = GroupFigures()
    figures.add_instrument("100000000000000000.1", "100000000000000000")
    assert figures.advancing == 1
    assert figures.changes == 0
    assert change_of(1, 3) == -66_666_667


HOSTILE = (
    'a"b\\c',
    '},{"group":"group:market:X","window":1',
    "],",
    "\u200b\U0001f4a5 반도체",
    "",
    "x" * 200,
)


def test_whatever_a_market_is_called_its_group_comes_back() -> None:
    """Bodies are taken apart as bytes, and names are others' words."""
    figures = GroupFigures()
    figures.add_trades(1, units("0.1"), units("12345678901234567890.12"))
    for name in HOSTILE:
        groups = tuple(
            figures.encode(key, 2_000) for key in (market_key(name), sector_key(name))
        )
        assert decode_groups(encode_groups(groups)) == groups
        assert groups[0].field == f"market:{name}"
        stored = StoredGroup.decode(b"17 " + groups[1].body)
        assert stored == StoredGroup(17, groups[1])
    assert decode_groups(encode_groups(())) == ()


@pytest.mark.parametrize("encoded", [b"", b"[1]", b'[{"x":1}]'])
def test_what_the_throttle_would_not_write_is_a_value_error(encoded: bytes) -> None:
    """There is one kind of error."""
    with pytest.raises(ValueError):  # noqa: PT011 - the contract is the type
        decode_groups(encoded)
