"""What an exchange takes back: entries that name a trade by its number in the log."""

from typing import Any

import orjson
import pytest

from ingest.adapters.adapter import (
    ExchangeCancel,
    ExchangeCorrection,
    ExchangeTrade,
    Numbering,
    Piece,
)
from ingest.adapters.intake import NOT_ASKED, Intake
from ingest.adapters.trade_numbers import LEAST_REMEMBERED, REMEMBERED
from ingest.sources.event import Refusals
from tests.ingest.adapters.test_intake import ISIN, NOW_US, Played, traded

LATER_US = NOW_US + 5_000_000


class Taken:
    """An intake, and the entries that became of what it was told."""

    def __init__(self, numbering: Numbering, symbols: int = 1) -> None:
        keys = {"A": ISIN} | {f"B{n}": ISIN for n in range(symbols - 1)}
        self.refusals = Refusals()
        self.intake = Intake("MYX", numbering, keys, self.refusals)

    def told(self, *pieces: Piece) -> list[dict[str, Any]]:
        entries, _ = self.intake.read(Played(*pieces), "", LATER_US)
        return [orjson.loads(payload) for _, payload in entries]

    @property
    def skipped(self) -> dict[str, int]:
        return dict(self.intake.counts.skipped)


def cancel(number: int = 7, **changes: Any) -> ExchangeCancel:
    """Return what takes the trade of ``traded`` back."""
    return ExchangeCancel("A", LATER_US, number)._replace(**changes)


def correction(number: int = 7, by: int = 8, **changes: Any) -> ExchangeCorrection:
    """Return what puts a trade in its place, said five seconds later."""
    fields = {"time_us": LATER_US, "number": by, "price": "1.40", **changes}
    return ExchangeCorrection(number, traded(**fields))


@pytest.fixture
def unique() -> Taken:
    """Numbers are in no order: arrival numbers the trades in the log."""
    return Taken(Numbering.UNIQUE)


def test_a_cancel_names_the_number_of_the_log(unique: Taken) -> None:
    [trade] = unique.told(traded())
    assert unique.told(cancel(extra={"exchange": "V"})) == [
        {
            "isin": ISIN,
            "time": LATER_US,
            "seq": trade["seq"],
            "cancels": trade["seq"],
            "venue": "MYX",
            "symbol": "A",
            "exchange": "V",
        }
    ]


def test_a_correction_stands_where_the_trade_stood(unique: Taken) -> None:
    """Its time in the log is not when the exchange said so: later trades stay newer."""
    [trade] = unique.told(traded(extra={"tape": "C"}))
    [entry] = unique.told(correction(extra={"tape": "C"}))
    assert entry == {
        **trade,
        "price": "1.40",
        "trade_id": 8,
        "corrects": trade["seq"],
    }


def test_it_is_taken_back_once(unique: Taken) -> None:
    unique.told(traded())
    assert len(unique.told(cancel(), cancel())) == 1
    assert unique.told(correction(), correction())[1:] == []
    assert unique.intake.numbers.repeated == 2
    assert unique.told(traded(), traded(number=8)) == []


def test_the_correction_of_a_cancelled_trade_is_a_trade(unique: Taken) -> None:
    [trade] = unique.told(traded())
    [_, entry] = unique.told(cancel(), correction())
    assert "corrects" not in entry
    assert (entry["time"], entry["seq"]) == (trade["time"], trade["seq"])


@pytest.mark.parametrize("by", [8, 7])
def test_a_correction_is_corrected_and_cancelled(by: int, unique: Taken) -> None:
    """Under a number of its own, or that of the trade."""
    [trade] = unique.told(traded())
    entries = unique.told(correction(by=by), correction(by, by=9), cancel(9))
    fields = [(e.get("corrects"), e.get("cancels")) for e in entries]
    seq = trade["seq"]
    assert fields == [(seq, None), (seq, None), (None, seq)]


def test_what_this_feed_does_not_know_is_counted(unique: Taken) -> None:
    unique.told(traded(series="V"))
    assert unique.told(cancel(), cancel(series="D"), cancel(symbol="Z")) == []
    assert unique.told(correction(), correction(9, series="V")) == []
    assert unique.skipped == {
        "cancel_not_applied": 2,
        "correction_not_applied": 2,
        NOT_ASKED: 1,
    }


def test_what_was_forgotten_is_not_taken_back() -> None:
    taken = Taken(Numbering.UNIQUE, REMEMBERED)
    taken.told(traded(number=0), cancel(0))
    taken.told(*(traded(number=1 + n) for n in range(LEAST_REMEMBERED)))
    assert taken.told(cancel(0)) == []
    assert taken.skipped == {"cancel_not_applied": 1}
    assert len(taken.told(cancel(1))) == 1


@pytest.mark.parametrize(
    ("piece", "reason"),
    [
        (correction(price="-1"), "bad_price"),
        (correction(extra={"name": "n" * 201}), "bad_field"),
        (cancel(time_us=-1), "bad_time"),
    ],
)
def test_what_breaks_a_rule_takes_nothing_back(
    piece: Piece, reason: str, unique: Taken
) -> None:
    [trade] = unique.told(traded())
    assert unique.told(piece) == []
    assert dict(unique.refusals.by_reason()) == {reason: 1}
    assert [e["cancels"] for e in unique.told(cancel())] == [trade["seq"]]


def test_numbers_by_one_are_those_of_the_log() -> None:
    """A correction has a place of its own there, and leaves no gap."""
    taken = Taken(Numbering.BY_ONE)
    taken.told(traded())
    [entry, _] = taken.told(correction(), traded(number=9))
    assert (entry["seq"], entry["time"], entry["corrects"]) == (8, LATER_US, 7)
    assert [e["cancels"] for e in taken.told(cancel(8))] == [8]
    assert taken.intake.numbers.missing == 0


def test_where_numbers_name_no_trade_nothing_is_taken_back() -> None:
    for numbering in (
        Numbering.NONE,
        Numbering.CUMULATIVE,
    ):
        taken = Taken(numbering)
        trade = ExchangeTrade("A", NOW_US, "1.50", "2", 7)
        assert len(taken.told(trade, cancel(), correction())) == 1
        assert set(taken.skipped) == {"cancel_not_applied", "correction_not_applied"}
