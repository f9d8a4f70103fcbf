"""Checks log entries column by column; the odd one goes through ``Trade``. Pure.

Nearly every trade in a log was written by ``Trade.to_wire``, which has one form. A
payload of exactly that form is valid if a few numbers are in their bounds, and those
are compared for thousands at a time. Whatever is not of that form, or out of bounds,
is judged by ``ingest.trade`` one by one: this file decides nothing on its own, it only
recognises what cannot be wrong.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ingest.trade import (
    FRACTION_PATTERN,
    ISIN_PATTERN,
    LATEST_TIME_US,
    MAX_ENTRY_BYTES,
    MAX_PAYLOAD_BYTES,
    REQUIRED,
    RESERVED,
    WHOLE_PATTERN,
    InvalidTrade,
    Trade,
    check_isin,
    check_not_ahead,
)
from ingest.tradelog.contract import Chunk
from throttle.window.decoder import Decoder, Judged, decode
from tickthrottle_client.taking_back_v1 import CANCELS, CORRECTS
from tickthrottle_client.updates_v1 import ALL, FIELD, PATTERN, Updates

_NAME_CHARACTER = "a-z0-9_"
_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789_"


def _rest_of_other_name(start: str, names: frozenset[str]) -> str:
    """Return a pattern of what may follow ``start`` so that the name is none of these.

    RE2 knows no "anything but"; a second search would cost as much as the first.
    """
    turns = sorted({n[len(start)] for n in names if n.startswith(start) and n != start})
    other = f"[{_NAME_CHARACTER}]"
    if turns:
        excluded = "".join(c for c in _CHARACTERS if c not in turns)
        other = f"[{excluded}]"
    ways = [turn + _rest_of_other_name(start + turn, names) for turn in turns]
    ways.append(f"{other}[{_NAME_CHARACTER}]*")
    may_end = start and start not in names
    return f"(?:{'|'.join(ways)}){'?' if may_end else ''}"


KNOWN_NAMES = frozenset({*REQUIRED, *RESERVED, FIELD, CANCELS, CORRECTS})
"""Fields with a rule of their own: a further field of the form has none of them."""

# Decimals above zero. A few that are valid are not recognised, none the other way.
_SMALL = r"0\.0{0,8}[1-9][0-9]{0,8}"
_DECIMAL = f"(?:{WHOLE_PATTERN}(?:{FRACTION_PATTERN})?|{_SMALL})"
_INTEGER = f"(?:0|{WHOLE_PATTERN})"
_TEXT = r'"[ !#-\[\]-~]*"'
_HEAD = (
    rf'^\{{"isin":"{ISIN_PATTERN}","time":[1-9][0-9]{{15}},'
    rf'"seq":{_INTEGER},"price":'
)
_OTHER_NAME = _rest_of_other_name("", KNOWN_NAMES)
_NUMBER = f"-?{_INTEGER}(?:{FRACTION_PATTERN})?"
_OTHERS = rf'(?:,"{_OTHER_NAME}":(?:{_TEXT}|{_NUMBER}))*'
_MORE = f"{_OTHERS}(?:,{PATTERN}{_OTHERS})?"
_FORM = rf'{_HEAD}"{_DECIMAL}","size":"{_DECIMAL}"{_MORE}\}}$'
_FORM_OF_ONE = re.compile(_FORM.removesuffix("$").encode())
FEW = 1_500
"""So many payloads are faster one by one: Arrow compiles the form anew, for 1 ms."""

_ROW = rf'({_HEAD})"([0-9.]+)","size":"([0-9.]+)"'
_NAMES = re.compile(rb'[{,]"([a-z0-9_]*)":')
_DIGITS = b"0123456789"
_SHAPES_REMEMBERED = 1_024
_ISINS_REMEMBERED = 8_192
# Constants with a type: guessing the type of a Python number takes 0.1 ms each time.
_LATEST_TIME_US = pa.scalar(LATEST_TIME_US, pa.int64())
_US_PER_MS = pa.scalar(1_000, pa.int64())
# Where the form has its first fields, in bytes. Behind the time come seq, price and
# size, which have 19, 38 and 38 characters at most.
_ISIN, _TIME, _NUMBERS = (9, 21), (30, 46), (53, 175)
_FIRST_FIELDS = len(
    '{"isin":"KR7005930003","time":1773964803811204,"seq":1,"price":1,"size":1'
)
_SIZE = (len('size":"'), 64)
_PRICE_OF_ROW = (len('"price":'), 64)
_SIZE_OF_ROW = (len('"size":'), 64)


def has_wire_form(
    payloads: pa.Array, max_bytes: int = MAX_PAYLOAD_BYTES, few: int = FEW
) -> pa.Array:
    """Tell for each payload whether it is of the form ``Trade.to_wire`` writes.

    True is certain: such a payload is a JSON object with every field valid, but for
    the check digit of its ISIN and the bounds of its time. False says nothing. Fewer
    than ``few`` are looked at one by one.
    """
    if len(payloads) < few:
        match = _FORM_OF_ONE.fullmatch
        one_by_one = (
            None if p is None else bool(match(p)) for p in payloads.to_pylist()
        )
        has_form = pa.array(one_by_one, pa.bool_())
    else:
        has_form = pc.match_substring_regex(payloads, _FORM)
    return pc.and_(
        has_form,
        pc.less_equal(pc.binary_length(payloads), min(max_bytes, MAX_PAYLOAD_BYTES)),
    )


def isins(payloads: pa.Array) -> pa.Array:
    """Return the ISINs of payloads that have the wire form."""
    return _slice(payloads, _ISIN)


def times_us(payloads: pa.Array) -> pa.Array:
    """Return the times of payloads that have the wire form."""
    return _slice(payloads, _TIME).cast(pa.int64())


def numbers(payloads: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return seq, and price and size as text, of payloads that have the wire form."""
    pieces = pc.split_pattern(pc.binary_slice(payloads, *_NUMBERS), '","', max_splits=2)
    # 17,"price":"199500   size":"10   and more, if there is any; or else size":"10"}
    head = pc.split_pattern(pc.list_element(pieces, 0), ',"price":"', max_splits=1)
    sizes = _slice(pc.list_element(pieces, 1), _SIZE)
    return (
        pc.list_element(head, 0).cast(pa.string()).cast(pa.int64()),
        pc.list_element(head, 1).cast(pa.string()),
        pc.ascii_rtrim(sizes, '"}'),
    )


class CountsFor(NamedTuple):
    """Which of some trades count for what (``Updates``), column by column."""

    last: pa.Array
    range: pa.Array
    volume: pa.Array


def counts_for(payloads: pa.Array) -> CountsFor | None:
    """Return what valid trades count for, None if all of them count for everything.

    They are as ``Trade.to_wire`` or ``Trade.to_row`` writes them.
    """
    if not _may_hold(payloads, FIELD):
        return None
    further = pc.binary_slice(payloads, _FIRST_FIELDS, MAX_PAYLOAD_BYTES)
    may_say = pc.match_substring(further, f'"{FIELD}"')
    if not pc.any(may_say).as_py():
        return None
    matches = pc.extract_regex(payloads, PATTERN)
    texts = pc.struct_field(matches, FIELD).cast(pa.string())
    is_odd = pc.and_(may_say, pc.invert(has_wire_form(payloads)))
    odd = map(Trade.from_wire, payloads.filter(is_odd).to_pylist())
    exact = pa.array([trade.updates.encode() for trade in odd], pa.string())
    said = pc.replace_with_mask(texts, is_odd, exact).dictionary_encode()
    every = [*map(Updates.parse, said.dictionary.to_pylist()), ALL]
    places = said.indices.fill_null(len(every) - 1)
    columns = (pa.array(column, pa.bool_()) for column in zip(*every, strict=True))
    return CountsFor(*(column.take(places) for column in columns))


def _may_hold(payloads: pa.Array, word: str) -> bool:
    """Tell whether a word may stand in one of them; it does not say in which.

    As one long text they are searched ten times as fast as one after the other.
    """
    size = len(payloads)
    _, ends, data = payloads.buffers()
    if not size or data is None:
        return False
    at = pa.Array.from_buffers(pa.int32(), size + 1, [None, ends], 0, payloads.offset)
    span = pa.array([at[0].as_py(), at[size].as_py()], pa.int64()).buffers()[1]
    whole = pa.Array.from_buffers(pa.large_binary(), 1, [None, span, data])
    return bool(pc.match_substring_regex(whole, word)[0].as_py())


def numbers_of_rows(bodies: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return price and size, as text, of each of these rows (``Trade.to_row``)."""
    pieces = pc.split_pattern(pc.binary_slice(bodies, *_NUMBERS), ",", max_splits=3)
    sizes = _slice(pc.list_element(pieces, 2), _SIZE_OF_ROW)
    return (
        _slice(pc.list_element(pieces, 1), _PRICE_OF_ROW),
        pc.ascii_rtrim(sizes, "}"),
    )


def with_valid_isin(column: pa.Array) -> pa.Array:
    """Tell for each ISIN whether its check digit is right; each is looked at once."""
    encoded = column.dictionary_encode()
    valid = [_is_isin(text) for text in encoded.dictionary.to_pylist()]
    return pc.take(pa.array(valid, pa.bool_()), encoded.indices)


def are_timely(times: pa.Array, append_ms: pa.Array, max_ahead_ms: int) -> pa.Array:
    """Tell for each trade whether its time is possible (``check_not_ahead``)."""
    ahead_ms = pa.scalar(max_ahead_ms, pa.int64())
    latest_us = pc.multiply(pc.add(append_ms, ahead_ms), _US_PER_MS)
    return pc.and_(pc.less_equal(times, latest_us), pc.less(times, _LATEST_TIME_US))


def check(
    chunk: Chunk,
    cuts_ms: tuple[int, int],
    max_ahead_ms: int,
    decoder: Decoder | None = None,
    max_bytes: int = MAX_ENTRY_BYTES,
) -> list[list[Judged]]:
    """Judge one by one whatever each entry of a chunk between two cuts holds."""
    return [
        [
            _timely(one, append_ms, cuts_ms, max_ahead_ms)
            if isinstance(one, Trade)
            else one
            for one in decode(payload, decoder, max_bytes)
        ]
        for append_ms, payload in zip(
            chunk.append_ms.to_pylist(), chunk.payloads.to_pylist(), strict=True
        )
    ]


def _timely(
    trade: Trade, append_ms: int, cuts_ms: tuple[int, int], max_ahead_ms: int
) -> Trade | InvalidTrade:
    after_ms, before_ms = cuts_ms
    cuts_us = after_ms * 1000, before_ms * 1000
    try:
        check_not_ahead(trade, append_ms * 1000, max_ahead_ms * 1000, cuts_us)
    except InvalidTrade as error:
        return error.with_traceback(None)
    return trade


def row_bodies(
    payloads: pa.Array, known: Mapping[bytes, bytes] | None = None
) -> list[bytes]:
    """Return what ``Trade.to_row`` writes for each of these valid trades.

    Those ``known`` are not worked out again.
    """
    if known:
        every = payloads.to_pylist()
        unknown = [payload for payload in every if payload not in known]
        bodies = row_bodies(pa.array(unknown, pa.binary()))
        both = {**known, **dict(zip(unknown, bodies, strict=True))}
        return [both[payload] for payload in every]
    # In the wire form, only the quotes around price and size differ.
    bare = pc.replace_substring_regex(payloads, _ROW, r'\1\2,"size":\3')
    return [
        quick
        if is_quick and _are_names_distinct(quick)
        else Trade.from_wire(payload).to_row()
        for payload, quick, is_quick in zip(
            payloads.to_pylist(),
            bare.to_pylist(),
            has_wire_form(payloads).to_pylist(),
            strict=True,
        )
    ]


def prices_and_sizes(payloads: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return price and size of each of these valid trades, as the text they came as."""
    if pc.all(has_wire_form(payloads)).as_py() is not False:
        _, prices, sizes = numbers(payloads)
        return prices, sizes
    trades = [Trade.from_wire(payload) for payload in payloads.to_pylist()]
    columns = [t.price for t in trades], [t.size for t in trades]
    return pa.array(columns[0], pa.string()), pa.array(columns[1], pa.string())


def _slice(payloads: pa.Array, part: tuple[int, int]) -> pa.Array:
    return pc.binary_slice(payloads, *part).cast(pa.string())


def _are_names_distinct(body: bytes) -> bool:
    # Without digits the bodies of a feed look alike: the names of each shape are looked
    # at once. Names that are distinct without digits are distinct with them.
    return _has_distinct_names(body.translate(None, _DIGITS)) or _are_distinct(body)


def _are_distinct(body: bytes) -> bool:
    names = _NAMES.findall(body)
    return len(names) == len(set(names))


_has_distinct_names = lru_cache(_SHAPES_REMEMBERED)(_are_distinct)


# The same instruments come in every chunk.
@lru_cache(_ISINS_REMEMBERED)
def _is_isin(text: str) -> bool:
    try:
        check_isin(text)
    except InvalidTrade:
        return False
    return True
