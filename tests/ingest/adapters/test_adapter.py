"""Fields that adapters read: times with a unit, decimals, records one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.adapters.adapter import (
    Piece,
    Skip,
    milliseconds,
    read_records,
    shortest_decimal,
)
from ingest.trade import EARLIEST_TIME_US, LATEST_TIME_US, InvalidTrade

NOW_MS = 1_795_593_601_000


@given(st.integers(EARLIEST_TIME_US // 1000, LATEST_TIME_US // 1000 - 1))
def test_milliseconds_become_microseconds(value: int) -> None:
    assert milliseconds({"T": value}, "T") == value * 1000


def test_a_time_in_another_unit_is_refused_by_its_name() -> None:
    for value, rule in (
        (NOW_MS // 1000, "this seems to be in seconds"),
        (NOW_MS * 1000, "this seems to be in microseconds"),
        (NOW_MS * 1_000_000, "this seems to be in nanoseconds"),
        (5, "must be in milliseconds since 1970"),
        (-NOW_MS, "must be in milliseconds since 1970"),
        (10**40, "must be in milliseconds since 1970"),
        ("5", "is of another type"),
        (None, "is required"),
    ):
        with pytest.raises(InvalidTrade) as refused:
            milliseconds({"T": value}, "T")
        assert str(refused.value).endswith(rule)


def test_a_decimal_loses_zeros_at_its_end() -> None:
    for text, short in (
        ("70000000.0", "70000000"),
        ("6E-8", "0.00000006"),
        ("1.50", "1.5"),
        (100, "100"),
    ):
        assert shortest_decimal(text) == short


def test_records_are_read_one_by_one() -> None:
    """What one of them raises stands in its place."""

    def read(record: int) -> list[Piece]:
        if record == 2:
            raise InvalidTrade("bad_price", "price", record, "is bad")
        return [Skip(str(10 // record))]

    pieces = list(read_records([1, 0, 2, 5], read))
    assert [p.name for p in pieces if isinstance(p, Skip)] == ["10", "2"]
    faults = [p for p in pieces if isinstance(p, InvalidTrade)]
    assert [pieces.index(fault) for fault in faults] == [1, 2]
    assert [fault.reason for fault in faults] == ["not_decoded", "bad_price"]
    assert str(faults[0]).startswith("record 0: ZeroDivisionError: ")
