"""What frames become, and what is counted of them; clocks compared."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.adapters.adapter import (
    Adapter,
    ExchangeTrade,
    Frame,
    InstrumentDay,
    Notice,
    Numbering,
    Piece,
    Reply,
    Skip,
    Told,
    read_records,
)
from ingest.adapters.intake import (
    MAX_TEXT_CHARS,
    MOST_FAULTS_A_FRAME,
    MOST_SKIP_NAMES,
    NOT_ASKED,
    REST_OF_FRAME,
    ClockDifference,
    Intake,
)
from ingest.instrument_table.day_facts import DayFacts
from ingest.sources.event import Refusals
from ingest.trade import InvalidTrade, Trade

ISIN = "KR7005930003"
NOW_US = 1_773_964_800_000_000


class Played(Adapter):
    """Yields what it is given, whatever the frame."""

    def __init__(self, *pieces: Piece, error: Exception | None = None) -> None:
        super().__init__((), {})
        self._pieces = pieces
        self._error = error

    def decode(self, frame: Frame) -> Iterator[Piece]:
        yield from self._pieces
        if self._error is not None:
            raise self._error


def traded(**changes: Any) -> ExchangeTrade:
    trade = ExchangeTrade("A", NOW_US, "1.50", "2", 7)
    return trade._replace(**changes)


@pytest.fixture
def intake() -> Intake:
    return Intake("MYX", Numbering.UNIQUE, {"A": ISIN}, Refusals())


def test_a_trade_becomes_an_entry(intake: Intake) -> None:
    entries, others = intake.read(
        Played(traded(extra={"side": "B"}), Reply("pong"), Skip("ack")), "", NOW_US
    )
    [(isin, payload)] = entries
    assert isin == ISIN
    fields = {"venue": "MYX", "symbol": "A", "trade_id": 7, "side": "B"}
    assert Trade.from_wire(payload) == Trade(ISIN, NOW_US, NOW_US, "1.50", "2", fields)
    assert others == [Reply("pong")]
    assert intake.counts.skipped == {"ack": 1}
    assert (intake.counts.frames, intake.counts.trades) == (1, 1)


def test_trades_before_a_fault_are_kept() -> None:
    refusals = Refusals()
    intake = Intake("MYX", Numbering.NONE, {"A": ISIN}, refusals)
    adapter = Played(traded(), error=KeyError("price"))
    entries, _ = intake.read(adapter, "frame", NOW_US)
    assert len(entries) == 1
    assert refusals.counts == {"not_decoded": 1}
    assert refusals.examples == [
        "frame 1: not_decoded: frame 'frame': KeyError: 'price'"
    ]


def read_by(decode: Any) -> tuple[int, dict[str, int], dict[str, int]]:
    """Return how many trades an adapter's ``decode`` gives, refusals and skips."""
    refusals = Refusals()
    intake = Intake("MYX", Numbering.NONE, {"A": ISIN}, refusals)

    class Own(Played):
        def decode(self, frame: Frame) -> Any:
            return decode(frame)

    entries, _ = intake.read(Own(), "frame", NOW_US)
    return len(entries), dict(refusals.counts), dict(intake.counts.skipped)


def make_trade(price: str) -> ExchangeTrade:
    """Return a trade at a price; raise for no price."""
    return traded(price={"x": "1"}[price])


def raise_within(frame: Frame) -> Iterator[Piece]:
    """Loop over records and raise at the second of three."""
    for price in ("x", "", "x"):
        yield make_trade(price)


def test_a_record_that_makes_an_adapter_raise_costs_itself() -> None:
    """Where the adapter's loop can go on; where it cannot, what is lost has a name."""
    prices = ("x", "", "x")
    with_help = read_by(
        lambda _: read_records(prices, lambda price: [make_trade(price)])
    )
    assert with_help == (2, {"not_decoded": 1}, {})
    assert read_by(lambda _: map(make_trade, prices)) == (2, {"not_decoded": 1}, {})
    fault = InvalidTrade("bad_price", "price", "", "is missing")
    assert read_by(lambda _: [fault, traded()]) == (1, {"bad_price": 1}, {})

    lost = {REST_OF_FRAME: 1}
    assert read_by(raise_within) == (1, {"not_decoded": 1}, lost)
    assert read_by(lambda _: None) == (0, {"not_decoded": 1}, lost)


def test_a_piece_of_an_odd_type_costs_itself() -> None:
    """Also in a generator, which could not go on if it had raised itself."""

    def decode(_: Frame) -> Iterator[Any]:
        yield traded(symbol=["A"])
        yield Skip(None, "x")  # type: ignore[arg-type]
        yield 5
        yield traded()

    assert read_by(decode) == (1, {"not_decoded": 3}, {})


def test_numbers_may_be_text() -> None:
    """As a trade's may."""
    intake = Intake("MYX", Numbering.BY_ONE, {"A": ISIN}, Refusals())
    numbers: list[Any] = ["7", 8, "8", "10"]
    entries, _ = intake.read(Played(*(traded(number=n) for n in numbers)), "", NOW_US)
    assert [Trade.from_wire(payload).seq for _, payload in entries] == [7, 8, 10]
    assert (intake.numbers.missing, intake.numbers.repeated) == (1, 1)


def test_an_iterator_that_raises_for_ever_is_asked_so_often_only() -> None:
    def count_for_ever() -> Iterator[int]:
        while True:
            yield 0

    broken = map(lambda _: 1 // 0, count_for_ever())
    refused = {"not_decoded": MOST_FAULTS_A_FRAME}
    assert read_by(lambda _: broken) == (0, refused, {REST_OF_FRAME: 1})


def test_everything_of_a_frame_is_counted(intake: Intake) -> None:
    pieces = [
        *(traded(number=n) for n in (1, 2, 1)),
        *(traded(symbol="B"), Skip("ack"), traded(price="-1")),
        *(Told("words"), Notice("grown", is_drift=True), Notice("other channel")),
    ]
    entries, others = intake.read(Played(*pieces), "", NOW_US)
    assert len(entries) == 2
    assert others == [Told("words")]
    assert intake.account() == {
        "frames": 1,
        "trades": 2,
        "repeated": 1,
        "missing": 0,
        "refused": {"bad_price": 1},
        "skipped": {NOT_ASKED: 1, "ack": 1, "told": 1},
        "not_asked_symbols": ["B"],
    }
    assert intake.counts.drifted == 1
    assert list(intake.counts.notices) == ["grown", "other channel"]
    # Of another symbol, and refused: the rest is no trade.
    assert intake.counts.left == 2


def test_unordered_numbers_do_not_say_what_is_newer(intake: Intake) -> None:
    """Arrival does; the exchange's number goes along."""
    trades = [traded(number=n, price=f"{n}") for n in (9, 3, 5)]
    entries, _ = intake.read(Played(*trades), "", NOW_US)
    logged = [Trade.from_wire(payload) for _, payload in entries]
    assert max(logged, key=lambda trade: trade.version).price == "5"
    assert [trade.extra["trade_id"] for trade in logged] == [9, 3, 5]


def test_a_volume_that_went_back_does_not_hide_what_came_later() -> None:
    """Of trades of one second the last to come is the newest."""
    intake = Intake("MYX", Numbering.CUMULATIVE, {"A": ISIN}, Refusals())
    trades = [traded(number=n, price=f"{n}") for n in (9 * 10**17, 20, 22)]
    later = traded(number=24, price="24", time_us=NOW_US + 10**6)
    entries, _ = intake.read(Played(*trades, later), "", NOW_US)
    logged = [Trade.from_wire(payload) for _, payload in entries]
    assert max(logged[:3], key=lambda trade: trade.version).price == "22"
    assert logged[3].seq == 24


def test_a_trade_of_another_venue_that_comes_late_hides_none_after_it() -> None:
    """Venues count volumes of their own; of one second the last to come is newest."""
    keys = {"A": ISIN}
    intake = Intake("XKRX", Numbering.CUMULATIVE, keys, Refusals())
    second_us = NOW_US - NOW_US % 10**6
    trades = [
        traded(number=number, price=price, series=series, time_us=second_us + late_us)
        for number, price, series, late_us in (
            (1_000_000, "1", "KRX", 0),
            (4_990, "2", "NXT", -(10**6)),
            (5_000, "3", "NXT", 0),
        )
    ]
    entries, _ = intake.read(Played(*trades), "", NOW_US)
    logged = [Trade.from_wire(payload) for _, payload in entries]
    assert max(logged, key=lambda trade: trade.version).price == "3"


def test_a_time_far_ahead_spoils_no_order_behind_it() -> None:
    """The job refuses that trade; those after it are in order as before."""
    intake = Intake("XKRX", Numbering.CUMULATIVE, {"A": ISIN}, Refusals())
    trades = [
        traded(number=number, price=f"{number}", time_us=NOW_US + ahead_s * 10**6)
        for number, ahead_s in ((100, 0), (101, 3_600), (200, 1), (150, 1))
    ]
    entries, _ = intake.read(Played(*trades), "", NOW_US)
    logged = [Trade.from_wire(payload) for _, payload in entries]
    assert max(logged[2:], key=lambda trade: trade.version).price == "150"


def test_what_a_frame_says_of_the_day_is_news_once(intake: Intake) -> None:
    days = [
        InstrumentDay("A", "70.5"),
        InstrumentDay("A", "70.5"),
        InstrumentDay("B", "1"),
    ]
    intake.read(Played(*days, InstrumentDay("A", "-1")), "", NOW_US)
    assert intake.days.take() == {ISIN: DayFacts("70.5")}
    assert intake.counts.skipped == {"day_unread": 1}
    intake.read(Played(*days), "", NOW_US)
    assert intake.days.take() == {}


def test_a_trade_that_breaks_a_rule_is_refused_alone() -> None:
    for changes, reason in (
        ({"price": "-1"}, "bad_price"),
        ({"price": "0.00"}, "bad_price"),
        ({"price": 1.5}, "bad_price"),
        ({"size": "x"}, "bad_size"),
        ({"size": "1E-19"}, "bad_size"),
        ({"time_us": 5}, "bad_time"),
        ({"number": -1}, "bad_seq"),
        ({"extra": {"note": "x" * (MAX_TEXT_CHARS + 1)}}, "bad_field"),
        ({"extra": {"note": [1]}}, "bad_field"),
        ({"extra": {"isin": "US0378331005"}}, None),
    ):
        refusals = Refusals()
        intake = Intake("MYX", Numbering.NONE, {"A": ISIN}, refusals)
        entries, _ = intake.read(Played(traded(**changes), traded()), "", NOW_US)
        # A further field cannot take the place of one that the feed has made.
        assert all(Trade.from_wire(payload).isin == ISIN for _, payload in entries)
        assert len(entries) == (2 if reason is None else 1)
        assert refusals.counts == ({} if reason is None else {reason: 1})


def test_a_refused_trade_may_come_again_rightly(intake: Intake) -> None:
    """Its number is not taken by the wrong one."""
    intake.read(Played(traded(price="x")), "", NOW_US)
    assert intake.read(Played(traded()), "", NOW_US)[0]


def test_without_numbers_trades_are_numbered_as_they_come() -> None:
    intake = Intake("MYX", Numbering.NONE, {"A": ISIN}, Refusals())
    trades = [traded(number=None)] * 3
    entries, _ = intake.read(Played(*trades), "", NOW_US)
    later, _ = intake.read(Played(*trades), "", NOW_US + 1)
    numbers = [Trade.from_wire(payload).seq for _, payload in entries + later]
    assert numbers == [NOW_US + n for n in range(6)]


def test_names_of_skips_are_bounded(intake: Intake) -> None:
    pieces = [Skip(f"name {n}") for n in range(MOST_SKIP_NAMES + 5)]
    intake.read(Played(*pieces, traded(symbol="B")), "", NOW_US)
    assert len(intake.counts.skipped) == MOST_SKIP_NAMES + 1
    assert intake.counts.skipped["other"] == 6


@given(st.integers(-(10**10), 10**10), st.lists(st.integers(0, 10**6), min_size=1))
def test_the_clocks_difference_is_nearest_where_the_way_was_shortest(
    ahead_us: int, ways_us: list[int]
) -> None:
    clock = ClockDifference()
    assert clock.seconds is None
    for way_us in ways_us:
        clock.note(NOW_US + ahead_us, NOW_US + way_us)
    assert clock.seconds == pytest.approx((ahead_us - min(ways_us)) / 1e6)


def test_a_clock_that_was_set_right_is_seen() -> None:
    clock = ClockDifference()
    clock.note(NOW_US + 3_600_000_000, NOW_US)
    assert clock.seconds == 3_600
    for turn in (1, 2, 3):
        now_us = NOW_US + turn * clock.RENEWED_EVERY_US
        clock.note(now_us, now_us)
    assert clock.seconds == 0
