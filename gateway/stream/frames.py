"""Frames of tick.v1 as bytes: a row encoded once, a frame per key set. Pure.

Rows arrive as finished JSON and are only ever joined, so the text of a price is never
touched.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import orjson

from gateway.protocol.instrument_numbers import InstrumentNumbers
from gateway.protocol.key_sets import KeySet
from gateway.stream.bars.bar_update import BarPosition
from gateway.stream.board import Position
from gateway.stream.pending_rows import SharedRows
from ingest.series import is_series
from throttle.contract.day_so_far import day_object
from throttle.contract.group import encode_groups
from throttle.contract.row_sums import UNCOUNTED
from throttle.contract.snapshot import LastValue, Row, WindowSnapshot
from tickthrottle_client.tick_v1 import PROTOCOL


def encode_row(body: bytes, sums: bytes, day: bytes = b"") -> bytes:
    """Add to a row what it says of the trades that it stands for (``row_sums.py``).

    And the day so far, if there is one (``day_so_far.py``).
    """
    end = b',"day":%b}' % day_object(day) if day else b"}"
    if b"," not in sums:
        return b'%b,"trades":%b%b' % (body[:-1], sums, end)
    trades, volume, value, high, low = sums.split(b",")
    said = b'%b,"trades":%b,"volume":%b,"value":%b' % (body[:-1], trades, volume, value)
    return b'%b,"high":%b,"low":%b%b' % (said, high, low, end) if high else said + end


class Update:
    """One published step, ready for any number of clients.

    ``groups`` are the figures it brings, by the groups' keys. It stands for the
    offsets ``(offset - windows, offset]``: for none while a row of them is held back
    (``once_per_window.py``). Clients with equal key sets get the same bytes object.
    """

    __slots__ = (
        "_frames",
        "_head",
        "_instruments",
        "_numbers",
        "_rows",
        "groups",
        "offset",
        "position",
        "rows",
        "shared_rows",
        "windows",
    )

    def __init__(
        self,
        position: Position,
        windows: int,
        rows: Collection[Row],
        numbers: InstrumentNumbers,
        groups: Mapping[str, bytes] | None = None,
    ) -> None:
        self.position = position
        self.offset = position.offset
        self.windows = windows
        self.rows = {row.isin: row for row in rows}
        # Who watches everything watches no series.
        self._instruments = self.rows
        if any(map(is_series, self.rows)):
            self._instruments = {i: r for i, r in self.rows.items() if not is_series(i)}
        self.shared_rows = SharedRows(self.rows)
        self.groups = groups or {}
        encoded = {
            numbers[row.isin]: encode_row(
                row.body, row.sums, row.day if row.starts_day else b""
            )
            for row in rows
        }
        self._numbers = numbers
        # By number: None where an instrument did not change.
        self._rows = list(map(encoded.get, range(len(numbers))))
        self._head = _update_head(position, windows)
        self._frames: dict[KeySet, bytes | None] = {}

    def touches(self, key_set: KeySet) -> bool:
        """Say whether the update holds anything for ``key_set``."""
        return self.count(key_set) > 0

    def names(self, key_set: KeySet) -> Iterable[str]:
        """Return the instruments and groups of ``key_set`` that changed."""
        isins = [isin for isin in key_set.isins if isin in self.rows]
        if key_set.is_everything:
            isins = [*self._instruments, *isins]
        if not key_set.groups:
            return isins
        return [*isins, *key_set.pick_groups(self.groups)]

    def count(self, key_set: KeySet) -> int:
        """Return how many instruments and groups of ``key_set`` changed."""
        instruments = len(self._instruments) if key_set.is_everything else 0
        groups = key_set.pick_groups(self.groups)
        return instruments + len(self._pick(key_set)) + len(groups)

    def frame(self, key_set: KeySet) -> bytes | None:
        """Return the frame for ``key_set``, None if there is nothing in it for it."""
        if not key_set.is_shared:
            return self._build(key_set)
        if key_set not in self._frames:
            self._frames[key_set] = self._build(key_set)
        return self._frames[key_set]

    def _build(self, key_set: KeySet) -> bytes | None:
        rows = self._pick(key_set)
        if key_set.is_everything:
            rows = self._all() + rows
        groups = [self.groups[key] for key in key_set.pick_groups(self.groups)]
        return _with_data(self._head, groups, rows) if rows or groups else None

    def _all(self) -> list[bytes]:
        numbers, rows = self._numbers, self._rows
        found = (rows[numbers[isin]] for isin in sorted(self._instruments))
        return [row for row in found if row is not None]

    def _pick(self, key_set: KeySet) -> list[bytes]:
        # Instruments may have been numbered since.
        missing = len(self._numbers) - len(self._rows)
        if missing:
            self._rows += [None] * missing
        return key_set.pick(self._rows)


def update_frame(
    position: Position,
    windows: int,
    rows: Iterable[bytes],
    groups: Collection[bytes] = (),
) -> bytes:
    """Build an update that stands for ``windows`` windows from encoded rows."""
    return _with_data(_update_head(position, windows), groups, rows)


def snapshot_frame(
    position: Position,
    rows: Iterable[LastValue],
    groups: Collection[bytes] = (),
    *,
    final: bool,
) -> bytes:
    """Build one piece of a snapshot; its items stand for no trades of their own."""
    head = b'{"type":"snapshot",%b,"final":%b' % (
        _encode_position(position),
        b"true" if final else b"false",
    )
    return _with_data(
        head, groups, [encode_row(row.body, UNCOUNTED, row.day) for row in rows]
    )


def window_object(snapshot: WindowSnapshot, *, with_rows: bool) -> bytes:
    """Encode what one job has published of a window for REST."""
    position = Position(snapshot.epoch, snapshot.offset, snapshot.window)
    data = b""
    if with_rows:
        rows = b",".join(encode_row(row.body, row.sums) for row in snapshot.rows)
        data = b',"data":[%b]' % rows
        if snapshot.groups:
            data = b',"groups":%b%b' % (encode_groups(snapshot.groups), data)
    return b'{%b,"windows":%d,"published":%d,"count":%d,"trades":%d%b}' % (
        _encode_position(position),
        snapshot.windows,
        snapshot.published_us,
        len(snapshot.rows),
        sum(row.trades for row in snapshot.rows),
        data,
    )


def windows_object(objects: Sequence[bytes], gaps: bytes) -> bytes:
    """Join encoded windows to a list of them for REST, with its gaps, encoded."""
    data = b",".join(objects)
    return b'{"count":%d,"gaps":%b,"data":[%b]}' % (len(objects), gaps, data)


def list_object(position: Position, bodies: list[bytes]) -> bytes:
    """Encode a list of latest quotes, or of groups, for REST."""
    return b'{%b,"count":%d,"data":[%b]}' % (
        _encode_position(position),
        len(bodies),
        b",".join(bodies),
    )


def welcome_frame(
    connection: str,
    epoch: str | None,
    window_ms: int,
    heartbeat_ms: int,
    server_time_us: int,
    limits: Mapping[str, float],
    market: str | None = None,
) -> bytes:
    """Build the first frame of a connection. ``market`` is the one that is served."""
    only = {} if market is None else {"market": market}
    return orjson.dumps(
        {
            "type": "welcome",
            "protocol": PROTOCOL,
            "connection": connection,
            "epoch": epoch,
            "window_ms": window_ms,
            "heartbeat_ms": heartbeat_ms,
            "server_time": server_time_us,
            "limits": limits,
            **only,
        }
    )


def ack_frame(
    message_id: int | str | None,
    op: str,
    accepted: Iterable[str],
    rejected: Iterable[Mapping[str, str]],
    count: int,
    **granted: Any,
) -> bytes:
    """Build the answer to subscribe, unsubscribe or list; ``count`` is keys held."""
    return orjson.dumps(
        {
            "type": "ack",
            **_echo(message_id),
            "op": op,
            "accepted": list(accepted),
            "rejected": list(rejected),
            "count": count,
            **granted,
        }
    )


def members_frame(
    instruments: str, members: Mapping[str, Sequence[str]], renamed: Mapping[str, str]
) -> bytes:
    """Build what tells a client that some of its keys stand for other instruments now.

    ``instruments`` names the table, ``members`` has the instruments of each such key,
    by its name of now; ``renamed`` is old to new.
    """
    return orjson.dumps(
        {
            "type": "members",
            "instruments": instruments,
            "members": members,
            "renamed": renamed,
        }
    )


def error_frame(
    code: str, message: str, message_id: int | str | None = None, **further: Any
) -> bytes:
    """Build an error; the connection stays open."""
    return orjson.dumps(
        {
            "type": "error",
            **_echo(message_id),
            "code": code,
            "message": message,
            **further,
        }
    )


def pong_frame(message_id: int | str | None, server_time_us: int) -> bytes:
    """Build the answer to a ping."""
    return orjson.dumps(
        {"type": "pong", **_echo(message_id), "server_time": server_time_us}
    )


def heartbeat_frame(position: Position, server_time_us: int) -> bytes:
    """Build a sign of life: everything up to ``position`` has been sent."""
    return b'{"type":"heartbeat",%b,"server_time":%d}' % (
        _encode_position(position),
        server_time_us,
    )


def status_frame(feed: str, since_window: int | None, message: str) -> bytes:
    """Say whether windows are arriving (``live``), or not (``stale``, ``starting``)."""
    return orjson.dumps(
        {
            "type": "status",
            "feed": feed,
            "since_window": since_window,
            "message": message,
        }
    )


def notice_frame(code: str, reconnect_after_ms: int, message: str) -> bytes:
    """Announce a planned close."""
    return orjson.dumps(
        {
            "type": "notice",
            "code": code,
            "reconnect_after_ms": reconnect_after_ms,
            "message": message,
        }
    )


EVENT_END = b"\n\n"
"""What follows a frame in an event stream."""


def event_start(
    position: Position | None,
    retry_ms: int | None,
    bars: BarPosition | None = None,
) -> bytes:
    """Return what precedes a frame in an event stream (HTML standard, 9.2.5 and 9.2.6).

    The event's id is what ``Last-Event-ID`` brings back: epoch, colon, offset; of who
    watches bars, a slash and the same of them behind it.
    """
    place = b""
    if position is not None and position.epoch is not None:
        place = b"%b:%d" % (position.epoch.encode(), position.offset)
    if bars is not None and bars.epoch is not None:
        place += b"/%b:%d" % (bars.epoch.encode(), bars.sequence)
    if place:
        place = b"id: %b\n" % place
    retry = b"" if retry_ms is None else b"retry: %d\n" % retry_ms
    return b"%b%bdata: " % (place, retry)


def _update_head(position: Position, windows: int) -> bytes:
    merged = b',"merged":%d' % windows if windows != 1 else b""
    return b'{"type":"update",%b%b' % (_encode_position(position), merged)


def _with_data(head: bytes, groups: Collection[bytes], rows: Iterable[bytes]) -> bytes:
    """Complete a frame. Groups come before the data: a client finds them there."""
    data = b",".join(rows)
    if not groups:
        return b'%b,"data":[%b]}' % (head, data)
    return b'%b,"groups":[%b],"data":[%b]}' % (head, b",".join(groups), data)


def _encode_position(position: Position) -> bytes:
    return b'"epoch":%b,"offset":%d,"window":%b' % (
        orjson.dumps(position.epoch),
        position.offset,
        orjson.dumps(position.window),
    )


def _echo(message_id: int | str | None) -> dict[str, int | str]:
    return {} if message_id is None else {"id": message_id}
