"""Lines of others' sources: names, times, numbers, symbols; nothing changes."""

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from ingest.files.records import BadHeader
from ingest.instrument_table.instrument_list import parse_list
from ingest.instrument_table.known_instruments import Instruments
from ingest.sources.trade_lines import UNKNOWN_SYMBOL, LineOptions, LineReader
from ingest.trade import InvalidTrade, Trade
from tests.gateway.samples import INSTRUMENT_LIST, SAMSUNG
from tests.ingest.strategies import trades

NOW_US = 1_773_964_804_000_000
WIRE = b'{"isin":"KR7005930003","time":1773964804123456,"seq":7,"price":71900,"size":3}'
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def make_reader(instruments: Instruments | None = None, **options: Any) -> LineReader:
    """Return a reader whose clock stands still."""
    return LineReader(LineOptions(**options), NOW_US, lambda: NOW_US + 5, instruments)


def read(
    *lines: bytes, instruments: Instruments | None = None, **options: Any
) -> list[Trade]:
    """Return the trades of some lines."""
    reader = make_reader(instruments, **options)
    is_header = reader.begin(lines[0])
    return [
        Trade.from_wire(payload)
        for _, payload in map(reader.read, lines[1:] if is_header else lines)
    ]


def refused(line: bytes, first: bytes = WIRE, **options: Any) -> InvalidTrade:
    """Return why a line is refused."""
    reader = make_reader(**options)
    reader.begin(first)
    with pytest.raises(InvalidTrade) as caught:
        reader.read(line)
    return caught.value


def fields(**changed: Any) -> bytes:
    """A trade as JSON, with some fields changed; None leaves one out."""
    whole = {**json.loads(WIRE), **changed}
    return orjson.dumps({k: v for k, v in whole.items() if v is not None})


def test_json_as_the_log_wants_it_leaves_as_it_came() -> None:
    reader = make_reader()
    line = b' { "seq" : 7, ' + WIRE[1:].replace(b'"seq":7,', b"").replace(
        b":3", b":3.0"
    )

    assert not reader.begin(line)
    assert reader.read(line) == ("KR7005930003", line)


@given(trades, st.booleans())
def test_a_mapped_line_is_the_same_trade(trade: Trade, is_nested: bool) -> None:
    assume(not {"s", "px", "d"}.intersection(trade.extra))
    price = b',"price":"%b"' % trade.price.encode()
    head, rest = trade.to_wire().split(price, 1)
    isin, others = b'"s":"%b"' % trade.isin.encode(), head[len('{"isin":"') + 12 + 1 :]
    own = b'%b,"px":%b' % (isin, trade.price.encode())
    line = (b'{"d":{%b}%b%b' if is_nested else b"{%b%b%b") % (own, others, rest)
    where = "d." if is_nested else ""

    [read_back] = read(line, map=f"isin={where}s,price={where}px")

    assert read_back == trade


@pytest.mark.parametrize(
    ("unit", "time", "time_us"),
    [
        ("s", 1773964804, 1_773_964_804_000_000),
        ("s", "1773964804.123456789", 1_773_964_804_123_456),
        ("ms", 1773964804123, 1_773_964_804_123_000),
        ("ms", "1773964804123.4", 1_773_964_804_123_400),
        ("us", "1773964804123456", 1_773_964_804_123_456),
        ("ns", 1773964804123456789, 1_773_964_804_123_456),
        ("ms", "2026-03-20T00:00:04.123Z", 1_773_964_804_123_000),
        ("s", "2026-03-20T09:00:04+09:00", 1_773_964_804_000_000),
    ],
)
def test_times_of_any_unit(unit: str, time: Any, time_us: int) -> None:
    [trade] = read(fields(time=time), time_unit=unit)

    assert trade.time_us == time_us


def test_a_time_of_another_unit_is_told_which() -> None:
    error = refused(fields(time=1773964804123), time_unit="s")

    assert error.reason == "bad_time"
    assert "in s since 1970 it is not between" in str(error)
    assert "in ms it is: --form time-unit=ms" in str(error)


def test_a_local_time_needs_its_zone() -> None:
    line = fields(time="2026-03-20T09:00:04.5")

    assert "needs its offset" in str(refused(line))
    [trade] = read(line, time_zone="Asia/Seoul")
    assert EPOCH + timedelta(microseconds=trade.time_us) == datetime(
        2026, 3, 20, 0, 0, 4, 500_000, UTC
    )


def test_a_source_without_times_is_stamped() -> None:
    line = fields(time=None)

    assert "--stamp now" in str(refused(line, first=line))
    [trade] = read(line, stamp="now")
    assert trade.time_us == NOW_US + 5


def test_a_source_without_numbers_is_numbered_as_it_comes() -> None:
    header = b"isin,time,price,size"
    row = b"KR7005930003,1773964804123456,71900,3"
    numbers = count(NOW_US)

    for trade in read(header, row, row, row):
        assert trade.seq == next(numbers)
    line = fields(seq=None)
    assert [trade.seq for trade in read(line, line)] == [NOW_US, NOW_US + 1]


@pytest.mark.parametrize(
    "first",
    [
        fields(seq=None, price=None, size=None, cancels=6),
        b'{"type":"status","time":1773964804123456}',
        b'{"isin":"KR7005930003",}',
        b"[]",
    ],
    ids=["a cancel", "a status", "no JSON", "an empty list"],
)
def test_what_is_no_trade_does_not_say_whether_trades_have_numbers(
    first: bytes,
) -> None:
    """The first trade does: of a numbered source it leaves as it came."""
    reader = make_reader()
    assert not reader.begin(first)
    with suppress(InvalidTrade):
        reader.read(first)
    assert [trade_of(reader, WIRE).seq for _ in range(2)] == [7, 7]
    assert not reader.numbers_by_arrival
    spaced = WIRE.replace(b",", b", ")
    assert reader.read(spaced) == (SAMSUNG, spaced)

    reader = make_reader()
    reader.begin(first)
    line = fields(seq=None)
    one, other = trade_of(reader, line).seq, trade_of(reader, line).seq
    assert NOW_US <= one == other - 1
    assert reader.numbers_by_arrival


def trade_of(reader: LineReader, line: bytes) -> Trade:
    return Trade.from_wire(reader.read(line)[1])


def test_a_number_that_is_missing_later_is_refused() -> None:
    assert refused(fields(seq=None)).reason == "missing_field"


def test_symbols_come_from_the_instrument_list() -> None:
    instruments = Instruments(
        parse_list(INSTRUMENT_LIST.splitlines(keepends=True)).instruments
    )
    line = fields(isin="005930")

    [trade] = read(line, instruments=instruments)
    assert trade.isin == SAMSUNG
    assert "--instruments" in str(refused(line))
    reader = make_reader(instruments)
    reader.begin(WIRE)
    with pytest.raises(InvalidTrade) as caught:
        reader.read(fields(isin="999999"))
    assert caught.value.reason == UNKNOWN_SYMBOL


def test_further_fields_pass_through_and_parts_do_not() -> None:
    line = fields(venue="X", book={"bid": 1}, big="2^70", exact="1.10")
    line = line.replace(b'"1.10"', b"1.10").replace(b'"2^70"', b"%d" % 2**70)
    [trade] = read(line, map="size=size")

    assert trade.to_wire().endswith(
        b',"venue":"X","big":1180591620717411303424,"exact":1.10}'
    )


@pytest.mark.parametrize(
    ("first", "rule"),
    [
        (b"[", r"is JSON over several lines; .*: jq -c '.\[\]' FILE"),
        (b'{"isin":', r"is JSON over several lines; .*: jq -c \. FILE"),
        pytest.param(
            b"\x01\xff", "is neither CSV with a header nor JSON lines", id="bytes"
        ),
        (b"isin,time,size", "its header has no column 'price'"),
        (b"isin,time,price,price,size", "needs a name of its own"),
        (b"isin,time,price", "no column 'size'; trades need isin, time, price, size"),
    ],
)
def test_a_first_line_that_tells_no_format_is_refused(first: bytes, rule: str) -> None:
    with pytest.raises(BadHeader, match=rule):
        make_reader().begin(first)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"time_zone": "Asia/Atlantis"}, "must be a time zone"),
        ({"time_zone": "../etc/passwd"}, "must be a time zone"),
    ],
)
def test_bad_options_are_refused(options: Mapping[str, str], rule: str) -> None:
    with pytest.raises(ValidationError, match=rule):
        make_reader(**options)


@given(st.binary(max_size=200), st.sampled_from([None, "price=a.b", "isin=s"]))
def test_any_line_is_a_trade_or_refused(line: bytes, names: str | None) -> None:
    options = {} if names is None else {"map": names}
    for first in (WIRE, b"isin,time,seq,price,size,s,a.b"):
        reader = make_reader(**options)
        reader.begin(first)
        try:
            isin, payload = reader.read(line)
        except InvalidTrade:
            continue
        assert Trade.from_wire(payload).isin == isin
