"""The rules of a trade, as whoever appends follows them."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stdnum import isin as stdnum_isin

from ingest.trade import InvalidTrade, JsonNumber, Trade, read_wire
from tests.ingest.strategies import decimals, isins, trades
from tickthrottle_client.trade_v1 import (
    as_microseconds,
    check_isin,
    encode_trade,
    isin_check_digit,
)

numbers = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=11, max_size=11)
values = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=5)
    | st.lists(st.integers(), max_size=2)
)


@given(numbers)
def test_a_check_digit_is_that_of_the_standard(number: str) -> None:
    """A library that was written by others computes the same."""
    assert isin_check_digit(number) == str(stdnum_isin.calc_check_digit(number))


@given(isins, decimals, decimals)
def test_what_is_written_is_known_at_a_glance(isin: str, price: str, size: str) -> None:
    """In the form that readers have a short way for, if it is above one."""
    fields = {"isin": isin, "time": 1_773_964_804_000_000, "price": price, "size": size}
    found, payload = encode_trade({**fields, "side": "B"}, count(1).__next__)
    assert found == isin
    trade = Trade.from_wire(payload)
    assert trade.to_wire() == payload
    assert (trade.price, trade.size, trade.seq) == (price, size, 1)
    if not price.startswith("0") and not size.startswith("0"):
        assert read_wire(payload) is not None


@given(trades)
def test_what_is_sent_comes_out_of_the_log_equal(sent: Trade) -> None:
    """Whatever the product takes for a trade, with every digit and every field."""
    fields = {"isin": sent.isin, "time": sent.time_us, "seq": sent.seq}
    # Not every number of JSON is a Decimal: -0 has no other notation there.
    extra = {
        name: Decimal(value.text) if type(value) is JsonNumber else value
        for name, value in sent.extra.items()
    }
    amounts = {"price": Decimal(sent.price), "size": sent.size}
    _, payload = encode_trade({**fields, **amounts, **extra}, int)
    other = Trade.from_wire(payload)
    assert (other.isin, other.version) == (sent.isin, sent.version)
    assert (other.price, other.size) == (sent.price, sent.size)
    assert other.extra.keys() == sent.extra.keys()
    for name, value in sent.extra.items():
        assert exactly(other.extra[name]) == exactly(value)


def exactly(value: Any) -> Any:
    """Return a value that equals only one with the same digits."""
    if type(value) is JsonNumber or type(value) is int:
        text = value.text if type(value) is JsonNumber else str(value)
        return Decimal(text).as_tuple()
    return (type(value), value)


def test_a_producer_says_what_its_trade_counts_for() -> None:
    fields = {"isin": "KR7005930003", "time": 1_773_964_804_000_000, "price": "1"}
    for text in ("volume", "last,range,volume", "none"):
        wire = {**fields, "size": 1, "updates": text}
        _, payload = encode_trade(wire, count(1).__next__)
        assert Trade.from_wire(payload).updates.encode() == text
    for wrong in ("", None, "price", "last;range", 1):
        with pytest.raises(InvalidTrade, match="must name what the trade counts for"):
            encode_trade({**fields, "size": 1, "updates": wrong}, count(1).__next__)


@given(
    st.dictionaries(
        st.sampled_from(["isin", "time", "seq", "price", "size", "x"]), values
    ),
    isins,
)
def test_whatever_is_given_is_a_trade_or_an_error_by_name(
    fields: dict[str, Any], isin: str
) -> None:
    """What is written can be read, and nothing but InvalidTrade comes out."""
    good = {"isin": isin, "time": 1_773_964_804_000_000, "price": "1.5", "size": 1}
    with suppress(InvalidTrade):
        found, payload = encode_trade({**good, **fields}, count(1).__next__)
        assert Trade.from_wire(payload).isin == found


def test_what_has_no_names_is_no_trade() -> None:
    """A list, for instance."""
    with pytest.raises(InvalidTrade, match="is no mapping of fields"):
        encode_trade([1], int)  # type: ignore[arg-type]


def test_the_right_check_digit_is_told() -> None:
    for isin, rule in (
        ("KR7005930004", "check digit is 3"),
        ("QX0000000BTC", "1 check digit, which is 7 here"),
        ("KR700593000", "1 check digit, which is 3 here"),
        ("kr7005930003", "1 check digit; it has small letters"),
        ("kr7005930004", "1 check digit; it has small letters"),
        ("BTC", "must be 2 capitals, 9 capitals or digits, 1 check digit"),
        ("KR70059300033", "must be 2 capitals, 9 capitals or digits, 1 check digit"),
    ):
        with pytest.raises(InvalidTrade) as caught:
            check_isin(isin)
        assert str(caught.value).endswith(rule)


NEW_YORK = ZoneInfo("America/New_York")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")


def test_a_time_that_comes_twice_is_refused_unless_it_is_said() -> None:
    """Clocks are set back by an hour, and in one place by half of one."""
    for zone, twice in (
        (NEW_YORK, datetime.fromisoformat("2026-11-01T01:10")),
        (LORD_HOWE, datetime.fromisoformat("2026-04-05T01:45")),
    ):
        text = twice.isoformat()
        with pytest.raises(InvalidTrade, match="comes twice on the clocks of"):
            as_microseconds(text, zone)
        earlier = int(as_microseconds(text, zone, "earlier"))
        later = int(as_microseconds(text, zone, "later"))
        assert later - earlier == (3_600_000_000 if zone is NEW_YORK else 1_800_000_000)
        for minutes in (-90, 90):
            other = (twice + timedelta(minutes=minutes)).isoformat()
            assert as_microseconds(other, zone) == as_microseconds(other, zone, "later")


def test_a_time_that_the_clocks_leave_out_is_refused() -> None:
    for fold in (None, "earlier", "later"):
        for zone, text in (
            (NEW_YORK, "2026-03-08T02:30:00"),
            (LORD_HOWE, "2026-10-04T02:15:00"),
            (ZoneInfo("Asia/Seoul"), "1988-05-08T02:30:00"),
        ):
            with pytest.raises(InvalidTrade, match=r"the clocks of .* leave out"):
                as_microseconds(text, zone, fold)


@given(st.integers(946_684_800, 3_786_912_000))
def test_a_local_time_is_the_moment_that_shows_it_or_is_refused(second: int) -> None:
    """There is one moment that the clocks show so, or none is taken."""
    moment = datetime.fromtimestamp(second, UTC).replace(tzinfo=None)
    shown = moment.isoformat()
    with suppress(InvalidTrade):
        time_us = int(as_microseconds(shown, NEW_YORK))
        back = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=time_us)
        assert back.astimezone(NEW_YORK).replace(tzinfo=None) == moment
        for hours in (-1, 1):
            other = (back + timedelta(hours=hours)).astimezone(NEW_YORK)
            assert other.replace(tzinfo=None) != moment


def test_a_datetime_that_its_clocks_leave_out_is_refused() -> None:
    """One that comes twice says by its own ``fold`` which one it is."""
    fields = {"isin": "KR7005930003", "price": 1, "size": 1}
    left_out = datetime(2026, 3, 8, 2, 30, tzinfo=NEW_YORK)
    with pytest.raises(InvalidTrade, match="America/New_York leave out"):
        encode_trade({**fields, "time": left_out}, int)
    for edge in (
        datetime(1, 1, 1, tzinfo=NEW_YORK),
        datetime(9999, 12, 31, 23, tzinfo=NEW_YORK),
    ):
        with pytest.raises(InvalidTrade):
            encode_trade({**fields, "time": edge}, int)
    twice = datetime(2026, 11, 1, 1, 10, tzinfo=NEW_YORK)
    times = [
        Trade.from_wire(encode_trade({**fields, "time": moment}, int)[1]).time_us
        for moment in (twice, twice.replace(fold=1))
    ]
    assert times == [1_793_509_800_000_000, 1_793_513_400_000_000]


def test_a_producer_takes_a_trade_back() -> None:
    """What it writes is what the rules of a log's entries read."""
    moment = {"isin": "KR7005930003", "time": "2026-11-27T09:00:00+09:00"}
    _, payload = encode_trade({**moment, "cancels": 7, "why": "late"}, int)
    entry = Trade.from_wire(payload)
    assert (entry.is_trade, entry.takes_back, entry.seq) == (False, 7, 7)
    assert entry.extra["why"] == "late"
    amounts = {"price": "5", "size": "1"}
    _, payload = encode_trade({**moment, **amounts, "corrects": 7}, lambda: 8)
    trade = Trade.from_wire(payload)
    assert (trade.is_trade, trade.takes_back, trade.seq) == (True, 7, 8)
    empty = {"cancels": "", "corrects": None}
    assert Trade.from_wire(
        encode_trade({**moment, **amounts, **empty}, int)[1]
    ).is_trade
    for wrong in ({**amounts, "cancels": 7}, {"cancels": -7}, {"cancels": "seven"}):
        with pytest.raises(InvalidTrade, match=r"seq|none of price"):
            encode_trade({**moment, **wrong}, int)
