"""What the client for scripts knows of bars."""

from typing import Any

from tests.gateway.samples import HYNIX, SAMSUNG
from tickthrottle_client.bar_book import MOST_KNOWN, BarBook, read_bar


def bar(isin: str = SAMSUNG, start: int = 0, trades: int = 1, **more: Any) -> Any:
    """Return a bar as a frame has it."""
    fields = {"interval": "1m", "isin": isin, "start": start, "trades": trades}
    return {**fields, "closed": False, "revision": 0, **more}


def message(*bars: Any, **more: Any) -> dict[str, Any]:
    return {"type": "bars", "epoch": "b", "sequence": 1, "bars": list(bars), **more}


def test_no_bar_goes_back() -> None:
    """An older state, from a gateway that is behind, is told to nobody."""
    book, told = BarBook(), []
    book.add([f"bars:1m:{SAMSUNG}"], told.append, 1)
    for trades, closed in [(2, False), (1, False), (2, True), (2, False)]:
        book.take(message(bar(trades=trades, closed=closed)), is_waiting=False)
    assert [(b["trades"], b["closed"]) for b in told] == [(2, False), (2, True)]


def test_a_bar_that_lost_a_trade_is_newer() -> None:
    book, told = BarBook(), []
    book.add([f"bars:1m:{SAMSUNG}"], told.append, 1)
    for revision, trades in [(0, 2), (1, 1), (0, 3), (1, 2)]:
        state = bar(trades=trades, revision=revision)
        book.take(message(state), is_waiting=False)
    assert [(b["revision"], b["trades"]) for b in told] == [(0, 2), (1, 1), (1, 2)]


def test_another_epoch_may_begin_lower() -> None:
    """After the log was emptied there are fewer trades, and that is right."""
    book, told = BarBook(), []
    book.add(["bars:1m:*"], told.append, 1)
    book.take(message(bar(trades=9)), is_waiting=False)
    snapshot = {"snapshot": True, "final": True, "resumed": False}
    book.take(message(bar(trades=1), **snapshot | {"epoch": "c"}), is_waiting=False)
    assert [b["trades"] for b in told] == [9, 1]


def test_a_position_holds_for_all_keys() -> None:
    """It is none while one waits for its snapshot, or half of it has come."""
    book = BarBook()
    assert book.add(["bars:1m:*"], print, 1) == ["bars:1m:*"]
    piece = {"snapshot": True, "final": False, "resumed": False}
    book.take(message(**piece), is_waiting=False)
    assert book.position is None
    book.take(message(**piece | {"final": True}), is_waiting=False)
    assert book.position == {"epoch": "b", "sequence": 1}


def test_keys_are_asked_for_by_how_many_bars_are_wanted() -> None:
    """By one message for each number; what nobody follows is not asked for."""
    book, five = BarBook(), f"bars:5m:{HYNIX}"
    assert book.add(["bars:1m:*", five], print, 1) == ["bars:1m:*", five]
    assert book.add([five], print, 3) == []
    assert book.wanted(["bars:1m:*", five, "bars:1h:*"]) == {
        **{1: ["bars:1m:*"], 3: [five]}
    }


def test_what_nobody_follows_is_forgotten() -> None:
    """And of what is followed no more than the newest bars are kept."""
    book, told = BarBook(), []
    book.add(["bars:1m:*"], told.append, 1)
    for start in range(MOST_KNOWN + 5):
        book.take(message(bar(start=start)), is_waiting=False)
    later: list[Any] = []
    book.add(["bars:1m:*"], later.append, 1)
    assert len(book.known(["bars:1m:*"])) == MOST_KNOWN
    assert book.remove(["bars:1m:*"], told.append) == []
    assert book.remove(["bars:1m:*"], later.append) == ["bars:1m:*"]
    assert not book.has_bars


def test_a_sum_that_does_not_fit_stays_none() -> None:
    """It is no number, and not nought."""
    decimals = dict.fromkeys(("open", "high", "low", "close", "vwap"), 1)
    read = read_bar({**decimals, "volume": None, "value": None})
    assert (read["volume"], read["value"]) == (None, None)
