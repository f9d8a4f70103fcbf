"""Which trades and which windows a command asks for."""

from collections.abc import Iterable

import pytest

from cli.commands.arguments import BadArgument, Place
from cli.commands.open_history import newest_last
from cli.commands.rebuild import window_end
from cli.commands.trades import TradeQuery
from ingest.trade import InvalidTrade
from tests.throttle.past import (
    FIRST_MS,
    A,
    B,
    W,
    make_batch,
    make_cut,
    make_entry,
    make_trade,
)
from throttle.audit.recompute import WindowRule
from throttle.contract.ledger import Books
from tickthrottle_client.log_v1 import append_time_ms

RULE = WindowRule(W, 5_000)


def wanted(**fields: object) -> TradeQuery:
    """Return a wish for all trades but for what is given."""
    wish = {"start": None, "partition": None, "isin": None, "reason": None, "limit": 5}
    return TradeQuery(**{**wish, **fields})


def nowhere(time_ms: int, partitions: Iterable[int]) -> dict[int, int]:
    raise AssertionError(time_ms)


def appended(partition: int, position: int) -> int | None:
    """Tell the time as a position of a Redis log does; it is of partition 0."""
    return append_time_ms(position) if partition == 0 else None


def test_without_a_wish_every_partition_is_looked_into_from_its_beginning() -> None:
    assert wanted().partitions(3) == [0, 1, 2]
    assert wanted().after([0, 1], nowhere) == {}


def test_one_partition_is_looked_into_when_it_is_named_or_a_place_in_it() -> None:
    """Naming both is fine as long as they agree."""
    assert wanted(partition=2).partitions(3) == [2]
    assert wanted(start=Place(1, 7)).partitions(3) == [1]
    assert wanted(start=Place(1, 7), partition=1).partitions(3) == [1]


def test_what_the_log_cannot_hold_is_refused() -> None:
    """Option, value and rule, before anything is read."""
    for fields, sentence in (
        ({"partition": 3}, "partition 3: the log has the partitions 0 to 2"),
        ({"partition": -1}, "partition -1: the log has the partitions 0 to 2"),
        ({"start": Place(3, 9)}, "from 3:9: the log has the partitions 0 to 2"),
        ({"start": Place(1, 9), "partition": 0}, "partition 0: --from 1:9 is in"),
        ({"reason": "ugly"}, "reason ugly: must be one of empty, too_large"),
    ):
        with pytest.raises(BadArgument, match=f"^{sentence}"):
            wanted(**fields).partitions(3)


def test_reading_begins_at_a_moment_or_a_place_included() -> None:
    """The first entry of that millisecond, or that very entry."""

    def before(time_ms: int, partitions: Iterable[int]) -> dict[int, int]:
        return {p: time_ms * 10 + p for p in partitions}

    assert wanted(start=7).after([0, 2], before) == {0: 70, 2: 72}
    assert wanted(start=0).after([1], before) == {1: 1}
    assert wanted(start=Place(1, 9)).after([1], nowhere) == {1: 8}
    assert wanted(start=Place(1, 0)).after([1], nowhere) == {1: -1}


VALID = make_trade(A, 1)
BROKEN = InvalidTrade("bad_isin", "isin", "KR", "is broken")


def test_a_trade_is_wanted_for_its_instrument_and_its_reason() -> None:
    """A refused one belongs to an instrument if its bytes name it."""
    for fields, trade, is_wanted in (
        ({}, VALID, True),
        ({"isin": A}, VALID, True),
        ({"isin": B}, VALID, False),
        ({"reason": "bad_isin"}, VALID, False),
        ({"reason": "bad_isin"}, BROKEN, True),
        ({"reason": "not_json"}, BROKEN, False),
        ({"isin": A}, BROKEN, True),
        ({"isin": B}, BROKEN, False),
    ):
        assert wanted(**fields).has(trade, b"? %b ?" % A.encode()) is is_wanted


def test_some_are_the_first_ones_oldest_first() -> None:
    assert newest_last(iter(range(9)), 3, newest_first=False) == [0, 1, 2]
    assert newest_last(iter(range(9, 0, -1)), 3, newest_first=True) == [7, 8, 9]


def test_a_trade_stands_for_the_window_it_was_published_in() -> None:
    """By the cuts of the batch that read it; a straggler for the batch's first."""
    for after_ms, window in ((3 * W + 10, 4), (W, 3)):
        entry = make_entry(VALID, after_ms)
        batch = make_batch(
            make_cut(2, (entry.position - 1,)), make_cut(5, (2**62,)), [Books()]
        )
        end = window_end("from", Place(0, entry.position), [batch], RULE, appended)
        assert end == FIRST_MS + window * W


def test_a_moment_stands_for_itself() -> None:
    assert window_end("from", 77, [], RULE, appended) == 77
    assert window_end("from", None, [], RULE, appended) is None


def test_a_trade_in_no_recorded_batch_is_refused() -> None:
    """Which window it was in is not known."""
    with pytest.raises(BadArgument, match=r"^to 0:5: in no batch"):
        window_end("to", Place(0, 5), [], RULE, appended)


def test_a_trade_that_the_log_has_lost_is_refused_where_only_the_log_knew() -> None:
    """A position of Kafka says nothing of time."""
    batch = make_batch(make_cut(0, (0, 0)), make_cut(1, (9, 9)), [Books(), Books()])
    with pytest.raises(BadArgument, match=r"^to 1:5: the log has no such entry"):
        window_end("to", Place(1, 5), [batch], RULE, appended)
