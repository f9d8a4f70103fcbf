"""The user's own decoder: found by its name, and not trusted."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import tickthrottle_client
from ingest.process.packages import PACKAGES
from ingest.trade import MAX_PAYLOAD_BYTES, InvalidTrade, JsonNumber, Trade
from tests.ingest.strategies import trades
from throttle.window.decoder import (
    MOST_TRADES,
    Decoder,
    NoDecoder,
    Skipped,
    find_decoder,
)
from throttle.window.decoder import decode as decode_all

GOOD = Trade("KR7005930003", 1_773_964_804_000_000, 7, "199500", "3", {"side": "B"})
FIELDS = {
    "isin": GOOD.isin,
    "time": GOOD.time_us,
    "seq": GOOD.seq,
    "price": GOOD.price,
    "size": GOOD.size,
    "side": "B",
}
NO_FUNCTION = "not to be called"


def by_line(payload: bytes) -> dict[str, Any]:
    """Decode a line of five fields: a decoder as a user writes one."""
    isin, time, seq, price, size = payload.decode().split(";")
    return {"isin": isin, "time": time, "seq": seq, "price": price, "size": size}


def decode(payload: bytes, decoder: Decoder | None) -> Trade:
    """Return an entry's only trade. Raises InvalidTrade."""
    [one] = decode_all(payload, decoder)
    if isinstance(one, InvalidTrade):
        raise one
    assert isinstance(one, Trade)
    return one


def refusal(payload: bytes, decoder: Any) -> InvalidTrade:
    """Return why an entry is refused."""
    with pytest.raises(InvalidTrade) as caught:
        decode(payload, decoder)
    return caught.value


def test_a_decoder_is_found_by_module_and_name() -> None:
    """The very function that the module has; no name is no decoder."""
    assert find_decoder("tests.throttle.window.test_decoder:by_line") is by_line
    assert find_decoder("") is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("no.such.module:f", "ModuleNotFoundError: No module named 'no'"),
        (f"{__name__}:nothing", "AttributeError: .* has no attribute 'nothing'"),
        (f"{__name__}:NO_FUNCTION", "is not a function"),
    ],
)
def test_a_decoder_that_cannot_be_had_is_one_sentence(name: str, why: str) -> None:
    """It names the setting, its value and what is wrong with it."""
    with pytest.raises(NoDecoder, match=f"^decoder {name}: {why}$"):
        find_decoder(name)


def test_a_decoder_of_a_name_of_ours_is_refused() -> None:
    """Whichever of the two were found, the other one would be missed."""
    for package in PACKAGES:
        why = f"^decoder {package}:decode: {package} is a package of tickthrottle, .*"
        with pytest.raises(NoDecoder, match=f"{why}give it another name$"):
            find_decoder(f"{package}:decode")


def test_a_module_that_cannot_be_loaded_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong in it."""
    (tmp_path / "broken_decoder.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(NoDecoder, match=r"^decoder broken_decoder:f: ZeroDiv"):
        find_decoder("broken_decoder:f")


def test_without_a_decoder_an_entry_is_json() -> None:
    """The rules of the wire form, unchanged."""
    assert decode(GOOD.to_wire(), None) == GOOD
    assert refusal(b"{", None).reason == "not_json"


def test_a_decoder_turns_any_form_into_a_trade() -> None:
    """Its fields are checked as those of JSON are."""
    line = b"KR7005930003;1773964804000000;7;199500;3"
    assert decode(line, by_line) == Trade(
        "KR7005930003", 1_773_964_804_000_000, 7, "199500", "3"
    )
    assert refusal(line.replace(b"199500", b"-1"), by_line).reason == "bad_price"
    assert refusal(line.replace(b"0003;", b"0004;"), by_line).reason == "bad_isin"


@given(trades)
def test_any_trade_may_come_from_a_decoder(trade: Trade) -> None:
    """What JSON can hold a decoder can return."""

    def decoder(payload: bytes) -> Mapping[str, Any]:
        return {
            "isin": trade.isin,
            "time": trade.time_us,
            "seq": trade.seq,
            "price": trade.price,
            "size": trade.size,
            **trade.extra,
        }

    assert decode(b"x", decoder) == trade


def test_an_empty_entry_is_not_given_to_the_decoder() -> None:
    """A tombstone has one reason, whatever the form of the others."""
    assert refusal(b"", by_line).reason == "empty"
    assert refusal(b"", None).reason == "empty"


def test_what_a_decoder_raises_refuses_the_entry() -> None:
    """Its kind and its words are in the dead letter."""
    error = refusal(b"one;two", by_line)
    assert error.reason == "not_decoded"
    assert str(error) == (
        "trade b'one;two': ValueError: not enough values to unpack (expected 5, got 2)"
    )


def test_what_a_decoder_raises_has_one_reason() -> None:
    """Reasons are the project's: they name counters."""

    def decoder(payload: bytes) -> Mapping[str, Any]:
        raise InvalidTrade('odd"', "x", 1, "is odd")

    assert refusal(b"x", decoder).reason == "not_decoded"


def test_what_a_decoder_says_can_be_stored() -> None:
    """Words that are no UTF-8, or go on for ever, would stop the batch."""

    def decoder(payload: bytes) -> Mapping[str, Any]:
        raise KeyError(payload.decode("utf-8", "surrogateescape") * 1_000)

    class Odd(Exception):
        def __str__(self) -> str:
            return "\udcff"

    def odd(payload: bytes) -> Mapping[str, Any]:
        raise Odd

    assert len(str(refusal(b"\xff" * 100, decoder)).encode()) < 1_000
    assert str(refusal(b"x", odd)).encode().endswith(b"Odd: \\udcff")


def test_a_decoder_that_returns_no_fields_refuses_the_entry() -> None:
    """A list, or nothing at all, is no trade."""
    for value in (None, b"x", [("isin", "x")], 7):
        assert refusal(b"x", partial(repeat_value, value)).reason == "not_object"


def repeat_value(value: Any, _: bytes) -> Any:
    """Decode any entry to one value."""
    return value


class Lazy(Mapping[str, Any]):
    """Fields that are looked for when they are asked for, and not found."""

    def __getitem__(self, name: str) -> Any:
        raise RuntimeError("truncated")

    def __iter__(self) -> Iterator[str]:
        return iter(["isin"])

    def __len__(self) -> int:
        return 1


class Ratio(float):
    """A number that JSON does not know."""


class Side(StrEnum):
    """Text that has a name."""

    BUY = "B"


class Vague:
    """A value that cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = None  # type: ignore[assignment]


def test_what_could_not_be_published_is_refused() -> None:
    """One entry with a strange value would otherwise stop its batch, for ever."""
    for value, reason in (
        (Lazy(), "not_decoded"),
        ({**FIELDS, "ratio": Ratio(1.5)}, "not_decoded"),
        ({**FIELDS, "price": Vague()}, "not_decoded"),
        ({**FIELDS, "price": 199500.5}, "bad_price"),
        ({**FIELDS, "time": datetime(2026, 3, 20, tzinfo=UTC)}, "bad_time"),
        ({**FIELDS, "when": datetime(2026, 3, 20, tzinfo=UTC)}, "bad_field"),
        ({**FIELDS, 7: "x"}, "bad_field"),
        ({**FIELDS, "trades": 3}, "bad_field"),
        ({**FIELDS, "pad": "x" * MAX_PAYLOAD_BYTES}, "too_large"),
        ({}, "missing_field"),
    ):
        assert refusal(b"x", partial(repeat_value, value)).reason == reason, value


def test_values_leave_as_json_would_have_brought_them() -> None:
    """A trade that was accepted is plain data, equal to itself read again."""
    trade = decode(b"x", lambda payload: {**FIELDS, "side": Side.BUY})
    assert trade == GOOD
    assert type(trade.extra["side"]) is str


def test_an_entry_may_hold_several_trades() -> None:
    """In their order; one that breaks a rule is refused alone."""
    good, bad = dict(FIELDS), {**FIELDS, "price": "-1"}

    held = decode_all(b"x", lambda _: iter([good, bad, {**good, "seq": 8}, 5]))

    first, refused, second, odd = held
    assert first == GOOD
    assert isinstance(refused, InvalidTrade)
    assert refused.reason == "bad_price"
    assert isinstance(second, Trade)
    assert second.seq == 8
    assert isinstance(odd, InvalidTrade)
    assert odd.reason == "not_object"


def test_an_entry_may_be_no_trade() -> None:
    """Under a name of the decoder's own, which is a word and not long."""
    assert decode_all(b"x", lambda _: "order_book") == [Skipped("order_book")]
    for name in ("", "Order Book", "x" * 33, "\u00fc", 'a"b'):
        error = refusal(b"x", lambda _, name=name: name)  # type: ignore[misc]
        assert error.reason == "not_decoded"
        assert "a name for what is no trade has 1 to 32" in str(error)


def test_nothing_and_too_much_are_refused() -> None:
    """Nothing is dropped without a name, and an entry has a bound."""
    assert "return a name for what is no trade" in str(refusal(b"x", lambda _: []))

    def endless(_: bytes) -> Iterator[dict[str, Any]]:
        while True:
            yield FIELDS

    error = refusal(b"x", endless)
    assert (error.reason, f"more than {MOST_TRADES} trades" in str(error)) == (
        "too_large",
        True,
    )

    def broken(_: bytes) -> Iterator[dict[str, Any]]:
        yield FIELDS
        raise RuntimeError("half a frame")

    assert "half a frame" in str(refusal(b"x", broken))


def test_exponents_are_carried_out() -> None:
    """Exactly, or not at all."""
    for price in ("6E-8", JsonNumber("6E-8"), "0.00000006"):
        fields = {**FIELDS, "price": price}
        assert decode(b"x", partial(repeat_value, fields)).price == "0.00000006"
    error = refusal(b"x", lambda _: {**FIELDS, "price": "6E-19"})
    assert (error.reason, "18 digits" in str(error)) == ("bad_price", True)


def test_numbers_of_a_decoder_may_have_exponents_and_empty_fractions() -> None:
    written = {
        **FIELDS,
        "time": JsonNumber("1.773964804e15"),
        "seq": "7.0",
        "price": JsonNumber("1.995E5"),
    }
    assert decode(b"x", lambda _: written) == GOOD
    assert refusal(b"x", lambda _: {**FIELDS, "seq": "7.5"}).reason == "bad_seq"


def test_a_decoder_makes_keys_of_symbols() -> None:
    isin = tickthrottle_client.key_of("QX", "BTC")
    assert decode(b"x", lambda _: {**FIELDS, "isin": isin}).isin == isin
