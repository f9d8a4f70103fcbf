"""What a gateway tells one that follows it: ``relay.v1``. Pure.

A message is a line of JSON, its head, then a line feed and a body of bytes. A window's
body is the throttle's own message (``throttle/contract/snapshot.py``), so rows, sums,
days, figures of groups and links of the chain pass as they are.
"""

from collections.abc import Iterable
from typing import Any

import orjson

from gateway.stream.board import Board, Position
from gateway.stream.statuses.status_board import StatusBoard
from gateway.upstream.decode import StoredState
from ingest.instrument_table.instrument_store import decode_change, encode_instrument
from ingest.instrument_table.known_instruments import Instruments
from ingest.statuses.status_entry import StatusEntry, decode_shown
from throttle.contract.group import StoredGroup
from throttle.contract.snapshot import LastValue
from tickthrottle_client.chain_v1 import ChainPlace

PATH, PROTOCOL = "/v1/relay", "relay.v1"

BEAT_S = 1.0
"""A message comes at least so often."""

MOST_LEVELS = 8
"""So many gateways a stream passes at most."""

MOST_AT_ONCE = 16
"""So many windows are asked for at a time."""

MOST_FRAME_BYTES = 67_108_864
"""A larger message is not read: some 100,000 instruments in one state."""

_BETWEEN = b"\n\n"

Head = dict[str, Any]


def frame(kind: str, body: bytes = b"", **fields: Any) -> bytes:
    """Build a message."""
    return b"%b\n%b" % (orjson.dumps({"type": kind, **fields}), body)


def split(message: bytes) -> tuple[Head, bytes]:
    """Return head and body. Raises ValueError for what is no message."""
    first, _, body = message.partition(b"\n")
    head = orjson.loads(first)
    if not isinstance(head, dict) or not isinstance(head.get("type"), str):
        raise ValueError(f"{first[:80]!r}: is no head of a message")
    return head, body


def encode_state(board: Board) -> tuple[Head, bytes]:
    """Return head and body of the board's whole state."""
    here, chain, values = board.position, board.chain.newest, board.values()
    is_linked = chain is not None and chain[:2] == (here.epoch, here.offset)
    head = {
        "epoch": here.epoch,
        "offset": here.offset,
        "window": here.window,
        "window_ms": board.window_ms,
        "parts": board.groups.parts,
        "chain": chain.text if chain is not None and is_linked else "",
    }
    lines = (
        b"%b %b %d %b" % (v.isin.encode(), v.version, v.offset, v.body) for v in values
    )
    days = (b"%b %b" % (v.isin.encode(), v.day) for v in values if v.day)
    figures = (b"%d %b" % (g.offset, g.group.body) for g in board.groups.stored())
    return head, _BETWEEN.join(map(b"\n".join, (lines, days, figures)))


def decode_state(head: Head, body: bytes) -> StoredState | None:
    """Decode a state, None if nothing was published. Raises ValueError for a bad one.

    A value or a group that cannot be read is left out, and named.
    """
    if head.get("epoch") is None:
        return None
    values: list[LastValue] = []
    groups: list[StoredGroup] = []
    unreadable: list[bytes] = []
    sections = [part.split(b"\n") if part else [] for part in body.split(_BETWEEN)]
    lines, day_lines, figures = sections
    days: dict[bytes, bytes] = {}
    for line in day_lines:
        isin, _, days[isin] = line.partition(b" ")
    for line in lines:
        isin, _, value = line.partition(b" ")
        try:
            day = days.get(isin, b"")
            values.append(LastValue.decode(isin, value)._replace(day=day))
        except ValueError:
            unreadable.append(isin)
    for line in figures:
        try:
            groups.append(StoredGroup.decode(line))
        except ValueError:
            unreadable.append(line[:40])
    return StoredState(
        position_of(head),
        _number(head, "window_ms"),
        values,
        groups,
        unreadable,
        _number(head, "parts"),
        ChainPlace.parse(str(head.get("chain", ""))),
    )


def position_of(head: Head) -> Position:
    """Return the position that a head names. Raises ValueError."""
    epoch, window = head.get("epoch"), head.get("window")
    if epoch is None:
        return Position()
    if not isinstance(epoch, str) or not (window is None or type(window) is int):
        raise ValueError(f"epoch {epoch!r:.40}, window {window!r:.40}: are no position")
    return Position(epoch, _number(head, "offset"), window)


def _number(head: Head, name: str) -> int:
    number = head.get(name)
    if type(number) is not int or number < 0:
        raise ValueError(f"{name} {number!r:.40}: must be a whole number from 0")
    return number


def encode_table(instruments: Instruments) -> bytes:
    """Encode the instrument table as a message."""
    lines = [b"%b %b" % (e.isin.encode(), encode_instrument(e)) for e in instruments]
    fields = {"version": instruments.version, "digest": instruments.digest}
    return frame("table", b"\n".join(lines), **fields)


def decode_table(head: Head, body: bytes) -> Instruments:
    """Decode an instrument table. Raises BadInstruments, a ValueError."""
    version = _number(head, "version")
    lines = (line.partition(b" ") for line in body.split(b"\n") if line)
    changes = (decode_change(version, isin, entry) for isin, _, entry in lines)
    instruments = Instruments().after(changes).at(version)
    # Built here, where it is in nobody's way.
    _ = instruments.digest, instruments.groups, instruments.isin_of("")
    return instruments


def encode_statuses(board: StatusBoard) -> bytes:
    """Encode all that is current, and the newest ones, as a message."""
    current, newest = board.pick(board.isins), board.newest.after(0)[1]
    place = {"epoch": board.epoch, "number": board.number}
    counts = {"first": board.newest.first, "current": len(current)}
    return frame("statuses", _lines([*current, *newest]), **place, **counts)


def encode_news(epoch: str | None, entries: Iterable[StatusEntry]) -> bytes:
    """Encode statuses that have just come as a message."""
    return frame("status", _lines(entries), epoch=epoch)


def decode_entries(body: bytes) -> list[StatusEntry]:
    """Decode the statuses of a message. Raises ValueError, LookupError."""
    return [decode_shown(line) for line in body.split(b"\n") if line]


def _lines(entries: Iterable[StatusEntry]) -> bytes:
    return b"\n".join(entry.text for entry in entries)
