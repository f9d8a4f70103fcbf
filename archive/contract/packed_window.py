"""A window's message in columns, which compress well; unpacked byte for byte. Pure.

First comes the header, as it is. Then, separated by empty lines, one value a row:
which text stands around the numbers of its body, and the parts of what differs from
row to row. A version is told by them, and not kept. Trades with a comma behind them
have four sums (``row_sums.py``), which are columns of the rows that have them, a dash
where high and low are empty. A quiet window is its header; a window that would not come
back as it was is kept as it is, behind an equals sign.
"""

import re
from itertools import chain, zip_longest

from throttle.contract.trade_order import encode_version

_ROW = re.compile(
    rb"^([0-9A-Z]{12}(?:@[0-9A-Za-z_-]+)?) [0-9]{39}([0-9]{19}) "
    rb"([0-9]+(?:(?:,[0-9.]*){4})?) "
    rb'\{"isin":"[0-9A-Za-z@_-]+","time":([0-9]+),"seq":([0-9]+),(.*)$',
    re.MULTILINE,
)
_REVISION = re.compile(rb',"revision":([0-9]+)\}$')
_NUMBER = re.compile(rb"[0-9]+(?:\.[0-9]+)?")

_PLACE = b"\0"
"""Where a number was; JSON has no such character."""

_BITS = 21
"""Positions of a log in Redis: a time, and a number in its last bits."""

_SUMS = 4
_EMPTY = b"-"

_KEPT = b"="
_BETWEEN = b"\n\n"


def pack_window(message: bytes) -> bytes:
    """Return a shorter form of a published message."""
    head, _, text = message.partition(b"\n")
    rows = _ROW.findall(text)
    if not rows:
        return _KEPT + message if text else message
    packed = _BETWEEN.join([head, *map(b"\n".join, _columns_of(rows))])
    try:
        is_exact = unpack_window(packed) == message
    except ValueError:
        is_exact = False
    return packed if is_exact else _KEPT + message


def unpack_window(packed: bytes) -> bytes:
    """Return the message that was packed. Raises ValueError for anything else."""
    if packed.startswith(_KEPT):
        return packed.removeprefix(_KEPT)
    head, *columns = packed.split(_BETWEEN)
    try:
        rows = _rows_of([c.split(b"\n") for c in columns]) if columns else []
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{packed[:120]!r}: is no window of an archive") from error
    if b"\n" in head:
        raise ValueError(f"{packed[:120]!r}: is no window of this archive's version")
    return b"\n".join([head, *rows])


def _columns_of(rows: list[tuple[bytes, ...]]) -> list[list[bytes]]:
    isins, positions, sums, times, seqs, ends = map(list, zip(*rows, strict=True))
    trades = [b"".join(of_row.partition(b",")[:2]) for of_row in sums]
    in_full = (
        [of_trades or _EMPTY for of_trades in of_row.split(b",")[1:]]
        for of_row in sums
        if b"," in of_row
    )
    text = b"\n".join(ends)
    numbers = _NUMBER.findall(text)
    around = _NUMBER.sub(_PLACE, text).split(b"\n")
    kinds = list(dict.fromkeys(around))
    places = {kind: b"%d" % place for place, kind in enumerate(kinds)}
    counts = {kind.count(_PLACE) for kind in kinds}
    # The n-th numbers of all rows together, if all have as many.
    step = counts.pop() if len(counts) == 1 else 1
    delays, bits = [], []
    for position, time_us in zip(map(int, positions), times, strict=True):
        # How long after the trade it was appended, where the position says that.
        delays.append(b"%d" % ((position >> _BITS) - int(time_us) // 1_000))
        bits.append(b"%d" % (position & (1 << _BITS) - 1))
    return [
        kinds,
        [places[kind] for kind in around],
        *(isins, delays, bits, trades, times, seqs),
        *map(list, zip(*in_full, strict=True)),
        *(numbers[first::step] for first in range(step)),
    ]


def _rows_of(columns: list[list[bytes]]) -> list[bytes]:
    kinds, places, *others, trades, times, seqs = columns[:8]
    after = 8 + _SUMS * any(of_row.endswith(b",") for of_row in trades)
    of_sums, of_numbers = zip(*columns[8:after], strict=True), columns[after:]
    # Where rows do not have as many numbers each, all are in one column.
    numbers = chain.from_iterable(zip(*of_numbers, strict=True))
    around = b"\n".join([kinds[int(place)] for place in places]).split(_PLACE)
    text = b"".join(chain.from_iterable(zip_longest(around, numbers, fillvalue=b"")))
    ends = text.split(b"\n")
    rows = []
    for isin, delay, bits, count, time, seq, end in zip(
        *others, trades, times, seqs, ends, strict=True
    ):
        time_us = int(time)
        position = int(delay) + time_us // 1_000 << _BITS | int(bits)
        said = _REVISION.search(end)
        revision = 0 if said is None else int(said[1])
        version = encode_version(time_us, int(seq), position, revision)
        if count[-1:] == b",":
            count += b",".join(next(of_sums, ())).replace(_EMPTY, b"")
        rows.append(
            b'%b %b %b {"isin":"%b","time":%b,"seq":%b,%b'
            % (isin, version, count, isin, time, seq, end)
        )
    return rows
