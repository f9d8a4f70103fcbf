"""The history: what an instrument did, window by window."""

import json
from itertools import islice

import pytest

from gateway.upstream import instrument_history
from gateway.upstream.instrument_history import (
    BLOCK_BYTES,
    InstrumentHistory,
    Point,
    points_object,
)
from tests.gateway.samples import (
    FIRST_WINDOW,
    HYNIX,
    NAVER,
    SAMSUNG,
    make_isins,
    make_row,
    make_snapshot,
)
from throttle.contract.snapshot import Row
from throttle.contract.trade_order import encode_version

ROOM = 1_000_000


def newest(history: InstrumentHistory, isin: str, limit: int) -> list[Point]:
    """Return the newest points of an instrument, oldest window first."""
    return list(islice(history.newest_first(isin), limit))[::-1]


def windows_of(history: InstrumentHistory, isin: str, limit: int = 300) -> list[int]:
    """Return the windows an instrument has points in, as their offsets."""
    return [(p.window - FIRST_WINDOW) // 2_000 for p in newest(history, isin, limit)]


def test_an_instruments_points_come_oldest_first() -> None:
    """Windows in which it did not trade have none; price and size keep their text."""
    history = InstrumentHistory(ROOM)
    history.append(make_snapshot(1, make_row(HYNIX), make_row(price="0.30", trades=3)))
    history.append(make_snapshot(2, make_row(NAVER)))
    history.append(make_snapshot(3, make_row(price="7", seq=2)))
    assert newest(history, SAMSUNG, 300) == [
        Point(FIRST_WINDOW + 2_000, "0.30", "40", 3, FIRST_WINDOW * 1_000 + 1),
        Point(FIRST_WINDOW + 6_000, "7", "40", 1, FIRST_WINDOW * 1_000 + 2),
    ]
    assert windows_of(history, NAVER) == [2]
    assert windows_of(history, "KR7000000001") == []


def test_the_newest_points_are_told() -> None:
    """A limit leaves out the oldest."""
    history = InstrumentHistory(ROOM)
    for offset in range(1, 6):
        history.append(make_snapshot(offset, make_row(seq=offset)))
    assert windows_of(history, SAMSUNG, 2) == [4, 5]


def test_older_windows_are_put_before() -> None:
    """They are read from the log while newer ones arrive."""
    history = InstrumentHistory(ROOM)
    history.append(make_snapshot(3, make_row(seq=3)))
    assert history.prepend(make_snapshot(2, make_row(seq=2))) == 0
    history.append(make_snapshot(4, make_row(seq=4)))
    assert history.prepend(make_snapshot(1, make_row(seq=1))) == 0
    assert windows_of(history, SAMSUNG) == [1, 2, 3, 4]
    history.clear()
    assert (windows_of(history, SAMSUNG), len(history), history.size_bytes) == (
        [],
        0,
        0,
    )


def test_the_oldest_make_room_for_the_newest() -> None:
    """Its size never exceeds its bound, and what is older does not come back."""
    rows = [make_row(isin) for isin in make_isins(50)]
    history = InstrumentHistory(20 * BLOCK_BYTES)
    for offset in range(10, 30):
        history.append(make_snapshot(offset, *rows))
        assert 0 < history.size_bytes <= 20 * BLOCK_BYTES
    assert 1 < len(history) < 20
    assert windows_of(history, rows[0].isin)[-1] == 29
    assert history.prepend(make_snapshot(1, *rows)) is None
    nothing = InstrumentHistory(0)
    nothing.append(make_snapshot(1, *rows))
    assert newest(nothing, rows[0].isin, 1) == []


def test_how_far_it_goes_is_the_end_of_its_newest_window() -> None:
    """One without rows counts; an older one, put before it, takes nothing back."""
    history = InstrumentHistory(1 << 20)
    assert history.upto_ms == 0
    newest = make_snapshot(8, window=16_000)
    for snapshot in (make_snapshot(7, window=14_000), newest):
        history.append(snapshot)
    history.prepend(make_snapshot(6, window=12_000))
    assert history.upto_ms == 16_000
    history.clear()
    history.prepend(newest)
    assert history.upto_ms == 16_000
    nothing = InstrumentHistory(0)
    nothing.append(newest)
    assert nothing.upto_ms == 0


def test_windows_without_rows_take_no_place_and_no_time() -> None:
    """A weekend of them lies between Friday's trades and Monday's."""
    history = InstrumentHistory(ROOM)
    history.append(make_snapshot(1, make_row()))
    for offset in range(2, 50_000):
        history.append(make_snapshot(offset))
    history.append(make_snapshot(50_000, make_row(seq=2), make_row(HYNIX)))
    assert len(history) == 2
    assert windows_of(history, SAMSUNG) == [1, 50_000]
    assert history.prepend(make_snapshot(0)) == 0
    assert len(history) == 2


def test_an_instruments_points_are_found_without_the_windows_of_others() -> None:
    """However many there are, and wherever they lie."""
    history = InstrumentHistory(10 * ROOM)
    history.append(make_snapshot(1, make_row()))
    for offset in range(2, 3_000):
        history.append(make_snapshot(offset, make_row(HYNIX, seq=offset)))
    looked_at = 0
    find = instrument_history._Block.find

    def counted(block: instrument_history._Block, isin: str) -> Point | None:
        nonlocal looked_at
        looked_at += 1
        return find(block, isin)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(instrument_history._Block, "find", counted)
        assert windows_of(history, SAMSUNG) == [1]
        assert windows_of(history, "KR7000000001") == []
    assert looked_at == 1


def test_what_made_room_is_not_found_any_more() -> None:
    """Nor is a window beyond the moment that is asked for."""
    history = InstrumentHistory(3 * (BLOCK_BYTES + 60))
    for offset in range(1, 9):
        history.append(make_snapshot(offset, make_row(seq=offset)))
    kept = windows_of(history, SAMSUNG)
    assert kept == list(range(9 - len(history), 9))
    until_ms = FIRST_WINDOW + 7 * 2_000
    newest = next(history.newest_first(SAMSUNG, until_ms))
    assert newest.window == until_ms


def test_parts_of_a_window_are_one_point() -> None:
    """The newer trade, and how many they are together; a late part finds its place."""
    history = InstrumentHistory(ROOM)
    for offset, window, seq, trades in [(1, 1, 1, 2), (2, 2, 5, 1), (3, 1, 3, 4)]:
        end_ms = FIRST_WINDOW + window * 2_000
        row = make_row(price=str(seq), seq=seq, trades=trades)
        history.append(make_snapshot(offset, row, window=end_ms))
    points = [(p.price, p.trades) for p in newest(history, SAMSUNG, 2)]
    assert points == [("3", 6), ("5", 1)]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"time":5,"size":1.50,"price":0.10}', "0.10"),
        (b'{"isin":"X","time":5,"seq":1,"price":12345678901234567.10,"size":1}', None),
    ],
)
def test_a_row_of_another_form_keeps_its_text(body: bytes, text: str | None) -> None:
    """However the JSON is written."""
    history = InstrumentHistory(ROOM)
    assert history.append(make_snapshot(1, row_of(body))) == 0
    [point] = newest(history, SAMSUNG, 1)
    assert point.price == (text or "12345678901234567.10")
    assert point.time_us == 5


def test_a_row_without_its_numbers_is_left_out_and_counted() -> None:
    """The others of its window are there."""
    for body in [
        b"{}",
        b"[]",
        b"nothing",
        b'{"time":5,"size":1}',
        b'{"time":5,"size":1,"price":"x y"}',
        b'{"time":5.5,"size":1,"price":1}',
        b'{"time":5,"size":null,"price":1}',
        b'{"time":5,"size":1e3,"price":1}',
    ]:
        history = InstrumentHistory(ROOM)
        snapshot = make_snapshot(1, row_of(body), make_row(HYNIX))
        assert history.append(snapshot) == 1
        assert newest(history, SAMSUNG, 1) == []
        assert len(newest(history, HYNIX, 1)) == 1


def test_points_are_told_with_their_text() -> None:
    """Prices are numbers as they were written."""
    body = points_object(SAMSUNG, [Point(2_000, "0.30", "1.0", 3, 1_999_000)])
    assert b'"price":0.30,"size":1.0,' in body
    assert json.loads(body) == {
        "isin": SAMSUNG,
        "count": 1,
        "data": [
            {"window": 2000, "price": 0.3, "size": 1.0, "trades": 3, "time": 1999000}
        ],
    }


def row_of(body: bytes) -> Row:
    """Return a row with this text."""
    return Row(SAMSUNG, encode_version(5, 1, 1), b"1", body)


def test_closes_are_the_newest_prices_of_each_step() -> None:
    """A window is of the step that it ends in; what is outside is left out."""
    history = InstrumentHistory(ROOM)
    assert history.since_ms is None
    for offset, price in enumerate(["1", "2", "3.0", "4", "5"]):
        history.append(make_snapshot(offset, make_row(price=price, seq=offset + 1)))
    history.append(make_snapshot(5, make_row(HYNIX)))
    assert history.since_ms == FIRST_WINDOW
    closes: list[dict[str, bytes]] = [{}, {}]
    for _ in history.fill_closes(closes, FIRST_WINDOW, 4_000):
        pass
    assert closes == [{SAMSUNG: b"3.0"}, {SAMSUNG: b"5"}]
