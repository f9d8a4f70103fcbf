"""A window's message with what it says twice said once; unpacked byte for byte. Pure.

The first line is the header, as it is. Of a row whose version can be told from its
body, a line has the position in two parts, the trades and the body; any other row's
line is kept as it is, behind an equals sign.
"""

import re

from throttle.contract.trade_order import encode_version

_BODY = re.compile(rb'\{"isin":"([0-9A-Z]{12})","time":([0-9]+),"seq":([0-9]+),')

_BITS = 21
"""Positions of a log in Redis: a time, and a number in its last bits."""

_KEPT = b"="


def pack_window(message: bytes) -> bytes:
    """Return a shorter form of a published message."""
    head, *lines = message.split(b"\n")
    return b"\n".join([head, *map(_pack, lines)])


def unpack_window(packed: bytes) -> bytes:
    """Return the message that was packed. Raises ValueError for anything else."""
    head, *lines = packed.split(b"\n")
    return b"\n".join([head, *map(_unpack, lines)])


def _pack(line: bytes) -> bytes:
    parts = line.split(b" ", 3)
    if len(parts) == 4 and parts[1][35:].isdigit():
        position = int(parts[1][35:])
        high, low = position >> _BITS, position & (1 << _BITS) - 1
        packed = b"%d %d %b %b" % (high, low, parts[2], parts[3])
        if _BODY.match(parts[3]) and _unpack(packed) == line:
            return packed
    return _KEPT + line


def _unpack(line: bytes) -> bytes:
    if line.startswith(_KEPT):
        return line.removeprefix(_KEPT)
    high, low, trades, body = line.split(b" ", 3)
    match = _BODY.match(body)
    if match is None:
        raise ValueError(f"{line[:120]!r}: is no row of an archive")
    isin, time_us, seq = match.groups()
    position = int(high) << _BITS | int(low)
    version = encode_version(int(time_us), int(seq), position)
    return b"%b %b %b %b" % (isin, version, trades, body)
