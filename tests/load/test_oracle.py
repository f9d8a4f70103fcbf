"""The oracle: by the trade's contract, at speed, window after window."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.load.oracle import Expected, Oracle, Piece
from ingest.trade import InvalidTrade, Trade, check_not_ahead
from tests.throttle.payloads import MAX_AHEAD_MS, NOW_MS, payloads

A, B = "KR7005930003", "KR7000660001"


def entries(*trades: tuple[int, bytes]) -> Piece:
    """Return entries with the given append times, one position after the other."""
    return Piece(
        [append_ms for append_ms, _ in trades],
        [append_ms << 21 | n for n, (append_ms, _) in enumerate(trades)],
        [payload for _, payload in trades],
    )


def trade(isin: str, price: str, time_ms: int, seq: int = 0) -> bytes:
    """Return a trade's bytes."""
    return Trade(isin, time_ms * 1_000, seq, price, "1").to_wire()


def prices(expected: dict[str, Expected]) -> dict[str, tuple[str, int, int]]:
    """Return price, trades and first news of every issue."""
    return {
        isin: (Trade.from_wire(e.payload).price, e.trades, e.first_ms)
        for isin, e in expected.items()
    }


def test_of_an_issue_the_newest_by_version_is_published_and_stands_for_all() -> None:
    """Not the one that came last; the first news is the first that is newer."""
    oracle, at = Oracle(5_000, {}), NOW_MS
    first = entries((at, trade(A, "1", at)), (at + 5, trade(A, "2", at - 100)))
    assert prices(oracle.window([first])) == {A: ("1", 2, at)}
    second = entries(
        (at + 2_000, trade(A, "3", at - 50)),
        (at + 2_010, trade(A, "4", at + 1)),
        (at + 2_020, trade(A, "5", at + 3)),
        (at + 2_030, trade(A, "6", at + 2)),
        (at + 2_040, trade(B, "7", at + 2)),
    )
    expected = prices(oracle.window([second]))
    assert expected == {A: ("5", 4, at + 2_010), B: ("7", 1, at + 2_040)}
    assert (oracle.read, oracle.superseded, oracle.stale) == (7, 4, 0)
    assert oracle.issues == 2


def test_what_is_not_newer_than_what_was_published_is_stale() -> None:
    """Older, or the very same again with a smaller position; a repeat is newer."""
    at = NOW_MS
    oracle = Oracle(5_000, {A: (at * 1_000, 0, at << 21), B: (at * 1_000, 0, 0)})
    late = (at + 1, trade(A, "1", at - 1))
    again = (at + 2, trade(B, "1", at))
    assert prices(oracle.window([entries(late, again)])) == {B: ("1", 1, at + 2)}
    assert (oracle.superseded, oracle.stale) == (0, 1)
    oracle.learn(B, ((at + 9) * 1_000, 0, 0))
    oracle.learn(B, (at * 1_000, 0, 0))
    assert oracle.window([entries((at + 3, trade(B, "2", at + 8)))]) == {}


def test_ties_are_broken_by_the_position_in_the_log() -> None:
    """Of equal versions the last entry wins, in whatever partition it stands."""
    at = NOW_MS
    one = Piece([at + 9], [9], [trade(A, "9", at)])
    other = Piece([at, at + 1], [1, 2], [trade(A, "1", at), trade(A, "2", at)])
    for pieces in ([one, other], [other, one]):
        assert prices(Oracle(5_000, {}).window(pieces)) == {A: ("9", 3, at)}


def test_seq_comes_before_position() -> None:
    """Of equal times the greater number of the feed is the newer one."""
    at = NOW_MS
    piece = entries((at, trade(A, "2", at, seq=2)), (at, trade(A, "1", at, seq=1)))
    assert prices(Oracle(5_000, {}).window([piece])) == {A: ("2", 2, at)}


def test_a_stamp_past_the_window_counts_as_its_last_moment() -> None:
    """What is ahead is measured from there, in logs that let others stamp."""
    at, ahead = NOW_MS, trade(A, "1", NOW_MS + 5_500)
    oracle = Oracle(5_000, {})
    assert oracle.window([entries((at + 1_000, ahead))], last_ms=at) == {}
    assert oracle.refused == {"future_time": 1}
    assert prices(oracle.window([entries((at + 1_000, ahead))])) != {}


@given(st.lists(payloads, max_size=12))
def test_every_entry_is_judged_as_the_contract_says(several: list[bytes]) -> None:
    """Twice in one oracle: what it remembers changes no verdict."""
    oracle, refused, accepted = Oracle(MAX_AHEAD_MS, {}), Counter[str](), 0
    for payload in several * 2:
        try:
            judged = Trade.from_wire(payload)
            check_not_ahead(judged, NOW_MS * 1_000, MAX_AHEAD_MS * 1_000)
            accepted += 1
        except InvalidTrade as error:
            refused[error.reason] += 1
    found = oracle.window([entries(*((NOW_MS, p) for p in several * 2))])
    assert oracle.refused == refused
    assert sum(one.trades for one in found.values()) == accepted
    assert oracle.superseded == accepted - len(found)


@pytest.mark.parametrize(
    ("known", "spoilt"),
    [
        (b'"price":"1"', b'"price":"01"'),
        (b'"price":"1"', b'"price":1.5e3'),
        (b'"time":17', b'"time":"17'),
        (b'"size":"1"', b'"size":null'),
        (b'"size":"1"', b'"size":"1","trades":1'),
        (b'"size":"1"', b'"size":"1","x":[1]'),
        (b'"size":"1"', b'"size":"1","x":"\\ud800"'),
        (b'"seq":0', b'"seq":-1'),
        (b'"seq":0', b'"seq":true'),
        (b'"isin":"KR7005930003"', b'"isin":["KR7005930003"]'),
        (b'"isin":"KR7005930003"', b'"isin":"KR7005930004"'),
    ],
)
def test_what_is_remembered_lets_nothing_broken_pass(
    known: bytes, spoilt: bytes
) -> None:
    """A trade much like one that was good is refused for its own fault."""
    good = trade(A, "1", NOW_MS)
    assert known in good
    broken = good.replace(known, spoilt)
    oracle = Oracle(5_000, {})
    oracle.window([entries((NOW_MS, good), (NOW_MS, good), (NOW_MS, broken))])
    assert oracle.refused.total() == 1
