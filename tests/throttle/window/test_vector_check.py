"""Trades checked column by column: the same answers as one by one."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingest.trade import (
    EARLIEST_TIME_US,
    LATEST_TIME_US,
    MAX_PAYLOAD_BYTES,
    REQUIRED,
    RESERVED,
    InvalidTrade,
    Trade,
    check_not_ahead,
)
from ingest.tradelog.contract import Chunk
from tests.examples import many
from tests.ingest.strategies import number_texts
from tests.speedups import WAYS
from tests.throttle.payloads import (
    ISINS,
    MAX_AHEAD_MS,
    NOW_MS,
    chunks,
    make_chunk,
    payloads,
    plain_trades,
)
from throttle.contract.row_sums import Amounts
from throttle.window import vector_check
from throttle.window.checked_rows import trade_rows
from throttle.window.row_schema import ARROW_SCHEMA, NOT_LAST_PREFIX, SUM_PREFIX
from throttle.window.trade_sums import FOLDS, SUMS, to_amounts, unpack

LATER_MS = 6 * 10**12
"""The end of a batch that holds whatever is tested here."""

GOOD = Trade(ISINS[0], NOW_MS * 1000, 7, "199500", "3", {"side": "B"})
HEAD = GOOD.to_wire().removesuffix(b',"side":"B"}')


def binary(*some: bytes) -> pa.Array:
    """Make a column of payloads."""
    return pa.array(some, pa.binary())


def has_form(payload: bytes) -> bool:
    """Tell whether one payload is recognised, alone and among many alike."""
    [alone] = vector_check.has_wire_form(binary(payload)).to_pylist()
    [among_many] = vector_check.has_wire_form(binary(payload), few=0).to_pylist()
    assert alone == among_many
    return bool(alone)


def reason_of(payload: bytes) -> str | None:
    """Return why a payload is no trade, None if it is one."""
    try:
        Trade.from_wire(payload)
    except InvalidTrade as error:
        return error.reason
    return None


def is_valid(payload: bytes) -> bool:
    """Tell whether a payload is a trade, by the rules themselves."""
    return reason_of(payload) is None


def expected_row(chunk: Chunk, at: int, end_ms: int) -> tuple[object, ...]:
    """Return what the rules say of one entry, in the order of the row's columns."""
    position = chunk.positions[at].as_py()
    append_ms = min(chunk.append_ms[at].as_py(), end_ms - 1)
    payload = chunk.payloads[at].as_py()
    try:
        trade = Trade.from_wire(payload)
        cuts_us = NOW_MS * 1000, end_ms * 1000
        check_not_ahead(trade, append_ms * 1000, MAX_AHEAD_MS * 1000, cuts_us)
    except InvalidTrade as error:
        key, version = f"!{position}", (append_ms * 1000, 0)
        first: tuple[object, ...] = (None,) * 4
        refusal = (error.reason, str(error))
    else:
        is_last, version, refusal = trade.updates.last, trade.version, (None, None)
        key = trade.isin if is_last else NOT_LAST_PREFIX + trade.isin
        first = (*version, position, trade.price) if is_last else (None,) * 4
        payload = payload if has_form(payload) else trade.to_wire()
    window_us = max(append_ms, NOW_MS) * 1000
    return (window_us, key, 3, *version, position, 1, *first, payload, *refusal)


def agree(chunk: Chunk, end_ms: int = LATER_MS) -> None:
    """Check that a chunk becomes exactly the rows that the rules imply."""
    for speedups in WAYS:
        table = trade_rows(chunk, 3, NOW_MS, end_ms, MAX_AHEAD_MS, speedups=speedups)
        _agree(chunk, end_ms, table)


def _agree(chunk: Chunk, end_ms: int, table: pa.Table) -> None:
    assert table.schema == ARROW_SCHEMA
    plain = table.set_column(
        0, "append_time", table["append_time"].cast(pa.int64())
    ).to_pylist()
    entries = [row for row in plain if not row["key"].startswith(SUM_PREFIX)]
    columns = [name for name in table.column_names if name not in FOLDS]
    found = [tuple(row[name] for name in columns) for row in entries]
    found.sort(key=lambda row: row[5])
    assert found == [expected_row(chunk, at, end_ms) for at in range(len(chunk))]
    assert sums_of(plain) == {
        position: Amounts.of_trade(trade.price, trade.size, trade.updates)
        for position, trade in valid_trades(chunk, end_ms)
    }


def sums_of(rows: list[dict[str, Any]]) -> dict[int, Amounts]:
    """Return amounts by position, in columns or beside them."""
    sums = {}
    for row in rows:
        parts = [row[name] for name in FOLDS]
        of_sums, extremes = parts[: len(SUMS)], parts[len(SUMS) :]
        assert len({part is None for part in of_sums}) == 1
        assert len({part is None for part in extremes}) == 1
        if row["key"].startswith(SUM_PREFIX):
            assert (parts[0], row["trades"]) == (None, 0)
            sums[row["position"]] = unpack(row["payload"])
        elif parts[0] is not None:
            sums[row["position"]] = to_amounts(parts)
    return sums


def valid_trades(chunk: Chunk, end_ms: int) -> Iterator[tuple[int, Trade]]:
    """Yield the trades of a chunk that are not refused, and their positions."""
    for at in range(len(chunk)):
        *_, reason, _ = expected_row(chunk, at, end_ms)
        if reason is None:
            yield (
                chunk.positions[at].as_py(),
                Trade.from_wire(chunk.payloads[at].as_py()),
            )


@settings(max_examples=many(200))
@given(chunks, st.integers(NOW_MS + 1, NOW_MS + 4_000))
def test_a_chunk_becomes_what_the_rules_say_of_each_entry(
    chunk: Chunk, end_ms: int
) -> None:
    """Going by columns is faster and never another answer, whatever the bytes are."""
    agree(chunk, end_ms)


@settings(max_examples=many(200))
@given(st.lists(payloads, max_size=12))
@example([HEAD + b',"side":"B","n":1,"side":"S"}'])
@example([HEAD + b',"ask1":"1","ask2":"2"}', HEAD + b',"ask1":"1","ask1":"2"}'])
@example([HEAD + b',"1":"1","2":"2"}', HEAD + b',"1":"1","1":"2"}'])
def test_the_body_of_a_row_is_what_the_trade_writes(some: list[bytes]) -> None:
    """Clients get one form of a trade, however it was written in the log."""
    valid = [payload for payload in some if is_valid(payload)]
    written = [Trade.from_wire(payload).to_row() for payload in valid]
    assert vector_check.row_bodies(binary(*valid)) == written


@given(st.dictionaries(st.sampled_from("abc"), number_texts, min_size=1))
@example({"a": "1.10", "b": "1234567890123456789012345678901234567890", "c": "-0"})
def test_numbers_of_further_fields_reach_clients_as_they_came(
    numbers: dict[str, str],
) -> None:
    """From the log to the body of a row, on the quick way and on the other."""
    more = "".join(f',"{name}":{text}' for name, text in numbers.items()).encode()
    [body] = vector_check.row_bodies(binary(HEAD + more + b"}"))
    assert body.endswith(more + b"}")
    agree(make_chunk([(NOW_MS, HEAD + more + b"}")]))


@given(payloads)
def test_what_is_recognised_is_valid_but_for_check_digit_and_time(
    payload: bytes,
) -> None:
    """A payload of the wire form has been checked, but for two things."""
    if not has_form(payload):
        return
    column = binary(payload)
    [isin] = vector_check.isins(column).to_pylist()
    [time_us] = vector_check.times_us(column).to_pylist()
    [[seq], [price], [size]] = (c.to_pylist() for c in vector_check.numbers(column))
    broken = reason_of(payload)
    if broken is None:
        trade = Trade.from_wire(payload)
        assert (trade.isin, trade.time_us, trade.seq) == (isin, time_us, seq)
        assert (trade.price, trade.size) == (price, size)
    else:
        assert broken in ("bad_isin", "bad_time")


@given(plain_trades.filter(lambda trade: trade.seq < 10**18))
def test_what_a_feed_writes_is_recognised(trade: Trade) -> None:
    """The quick way is the usual one: else it would be none."""
    long = any(type(v) is int and abs(v) >= 10**18 for v in trade.extra.values())
    small = any(text.startswith("0.") for text in (trade.price, trade.size))
    if not long and not small:
        assert has_form(trade.to_wire())


USUAL = (
    HEAD + b"}",
    HEAD + b',"side":"B","venue":-7,"n":0,"_x9":" !#[]~"}',
    HEAD + b',"n":-0,"change":-1.50,"ratio":0.000000000000000010}',
    HEAD + b',"isins":1,"isi":1,"i":1,"timer":1,"trade":1,"tradess":1,"t":1}',
    HEAD.replace(b'"199500"', b'"0.30"') + b"}",
    HEAD.replace(b'"199500"', b'"1.000000000000000000"') + b"}",
    HEAD.replace(b'"199500"', b'"999999999999999999"') + b"}",
    HEAD.replace(b":7,", b":999999999999999999,") + b"}",
    HEAD.replace(b":7,", b":0,") + b"}",
)


def test_the_usual_forms_are_recognised() -> None:
    """Plain names, plain text, whole numbers: as the feeds of this project write."""
    for payload in USUAL:
        assert has_form(payload), payload
        assert is_valid(payload), payload


def test_a_known_name_is_never_taken_for_another_field() -> None:
    """A second price would be the one that counts; a reserved name is refused."""
    for name in {*REQUIRED, *RESERVED, "updates", "cancels", "corrects"}:
        assert not has_form(HEAD + f',"{name}":1}}'.encode()), name
        assert not has_form(HEAD + f',"a":1,"{name}":"1"}}'.encode()), name
        for other in (name[:-1], name + "s", name + "_", "_" + name, name[0] + name):
            assert has_form(HEAD + f',"{other}":1}}'.encode()), other


ODD = (
    b"",
    b"\xff\x00",
    HEAD + b"}\n",
    HEAD + b"}\x00",
    HEAD + b"} ",
    b" " + HEAD + b"}",
    b"\xef\xbb\xbf" + HEAD + b"}",
    b"x\n" + HEAD + b"}",
    HEAD + b"}\n" + HEAD + b"}",
    HEAD + b',"side":"a\\u0041"}',
    HEAD + b',"side":"\xc3\xa9"}',
    HEAD + b',"side":"\x00"}',
    HEAD + b',"side":"\xff"}',
    HEAD + b',"n":1.}',
    HEAD + b',"n":1e5}',
    HEAD + b',"n":01}',
    HEAD + b',"n":null}',
    HEAD + b',"n":true}',
    HEAD + b',"n":[]}',
    HEAD + b',"n":9223372036854775808}',
    HEAD + b',"":1}',
    HEAD + b',"Side":1}',
    HEAD + b",}",
    HEAD.replace(b'","', b'", "') + b"}",
    HEAD.replace(b":7,", b":-0,") + b"}",
    HEAD.replace(b":7,", b":9223372036854775808,") + b"}",
    HEAD.replace(b":7,", b":07,") + b"}",
    HEAD.replace(b'"199500"', b'"0.00"') + b"}",
    HEAD.replace(b'"199500"', b'"0"') + b"}",
    HEAD.replace(b'"199500"', b"199500") + b"}",
    HEAD.replace(b'"199500"', b'"01"') + b"}",
    HEAD.replace(b'"199500"', b'"1e5"') + b"}",
    HEAD.replace(b'"199500"', b'"1."') + b"}",
    HEAD.replace(b'"199500"', b'"1000000000000000000"') + b"}",
)


def test_whatever_differs_from_the_form_is_left_to_the_rules() -> None:
    """Close is not enough: the rules decide, and the row is what they say."""
    for payload in ODD:
        assert not has_form(payload), payload
        agree(make_chunk([(NOW_MS, payload), (NOW_MS, HEAD + b"}")]))


def test_a_payload_up_to_the_limit_is_recognised_and_none_above() -> None:
    """The bound on size holds on the quick way too."""
    frame = len(HEAD + b',"pad":""}')
    for size, fits in ((MAX_PAYLOAD_BYTES, True), (MAX_PAYLOAD_BYTES + 1, False)):
        payload = HEAD + b',"pad":"' + b"x" * (size - frame) + b'"}'
        assert len(payload) == size
        assert has_form(payload) == is_valid(payload) == fits
        agree(make_chunk([(NOW_MS, payload)]))


def test_a_time_ahead_of_the_log_is_refused_to_the_millisecond() -> None:
    """The bound is the same on the quick way."""
    for ahead_ms in (0, 4_999, 5_000, 5_001):
        agree(make_chunk([(NOW_MS - ahead_ms, GOOD.to_wire())]))


def test_a_time_out_of_the_century_is_refused() -> None:
    """Seconds, milliseconds and nanoseconds are not taken for microseconds."""
    for time_us in (EARLIEST_TIME_US, 10**15 - 1, LATEST_TIME_US - 1, LATEST_TIME_US):
        payload = GOOD.to_wire().replace(b"%d" % GOOD.time_us, b"%d" % time_us)
        agree(make_chunk([(5 * 10**12, payload), (NOW_MS, payload)]))


def test_what_trades_count_for_is_found_in_any_part_of_a_column() -> None:
    """A part shares its bytes with all others: theirs say nothing of it."""
    odd = HEAD + b',"updates":"volume"}'
    column = binary(*[GOOD.to_wire()] * 2, odd, GOOD.to_wire())
    for begin, end in ((0, 2), (3, 4), (2, 2)):
        assert vector_check.counts_for(column[begin:end]) is None
    counts = vector_check.counts_for(column[1:])
    assert counts is not None
    assert counts.last.to_pylist() == [True, False, True]


def test_known_bodies_are_taken_as_they_are() -> None:
    """Others are worked out, in the order of the payloads."""
    first, second = GOOD.to_wire(), replace(GOOD, price="2").to_wire()
    known = {first: b"known"}
    assert vector_check.row_bodies(binary(first, second, first), known) == [
        b"known",
        *vector_check.row_bodies(binary(second)),
        b"known",
    ]
