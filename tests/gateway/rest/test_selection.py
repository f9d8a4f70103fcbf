"""Which instruments a request means."""

import pytest

from gateway.http.problems import Problem
from gateway.rest.selection import Wish, resolve, select
from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.known_instruments import Instruments
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG, make_isins

INSTRUMENTS = Instruments(
    [
        InstrumentEntry(SAMSUNG, "005930", "Samsung", "KOSPI", "chips"),
        InstrumentEntry(HYNIX, "000660", "SK hynix", "KOSPI", "chips"),
        InstrumentEntry(NAVER, "035420", "NAVER", "KOSDAQ", "internet, media"),
    ]
)
NONE = Instruments()


def test_what_fits_all_that_is_said() -> None:
    """One condition more never gives more."""
    for wish, isins in [
        (Wish(), None),
        (Wish(isins=f"{SAMSUNG},{SAMSUNG}"), {SAMSUNG}),
        (Wish(isins=""), set()),
        (Wish(isins=f"005930,{SAMSUNG},000660"), {SAMSUNG, HYNIX}),
        (Wish(codes="005930,000660"), {SAMSUNG, HYNIX}),
        (Wish(market="KOSPI"), {SAMSUNG, HYNIX}),
        (Wish(sector="internet, media"), {NAVER}),
        (Wish(isins=f"{SAMSUNG},{NAVER}", market="KOSPI"), {SAMSUNG}),
        (Wish(codes="035420", sector="chips"), set()),
    ]:
        assert select(wish, INSTRUMENTS) == isins


def test_what_no_instrument_is_called_is_named() -> None:
    """The field, the value and the rule."""
    for wish, instruments, code, words in [
        (Wish(isins="KR7005930004"), INSTRUMENTS, "bad_isin", "check digit is 3"),
        (
            Wish(isins=",".join(make_isins(1_001))),
            INSTRUMENTS,
            "bad_request",
            "isins: 1001 are named, 1000 at most",
        ),
        (Wish(isins="*"), INSTRUMENTS, "bad_isin", "leave isins out"),
        (
            Wish(codes="005931"),
            INSTRUMENTS,
            "unknown_key",
            "codes: 005931: the code of no",
        ),
        (Wish(isins="005931"), INSTRUMENTS, "bad_isin", "no instrument has this code"),
        (Wish(codes="005930"), NONE, "unknown_key", "codes are not known here"),
        (
            Wish(market="KOSP"),
            INSTRUMENTS,
            "unknown_key",
            "KOSP: the market of no instrument",
        ),
        (
            Wish(sector="x" * 99),
            INSTRUMENTS,
            "unknown_key",
            f"{'x' * 60}...: the sector",
        ),
    ]:
        with pytest.raises(Problem) as caught:
            select(wish, instruments)
        assert (caught.value.status, caught.value.code) == (400, code)
        assert words in str(caught.value)


def test_an_instrument_is_named_by_isin_or_code() -> None:
    """An ISIN needs no list, a code does."""
    assert resolve(SAMSUNG, NONE) == resolve("005930", INSTRUMENTS) == SAMSUNG


def test_a_key_that_is_none_is_refused() -> None:
    """A bad ISIN is the client's fault, an unknown code may be anybody's."""
    for key, instruments, status in [
        ("KR7005930004", INSTRUMENTS, 400),
        ("005931", INSTRUMENTS, 404),
        ("005930", NONE, 404),
    ]:
        with pytest.raises(Problem) as caught:
            resolve(key, instruments)
        assert caught.value.status == status


def test_wishes_have_different_names() -> None:
    """What is left out is not what is empty."""
    wishes = [Wish(), Wish(isins=""), Wish(codes=""), Wish("a", "b"), Wish("a,b")]
    assert len({wish.encode() for wish in wishes}) == len(wishes)
