"""Frames of tick.v1 as bytes: a row encoded once, a frame per key set. Pure.

Rows arrive as finished JSON and are only ever joined, so the text of a price is never
touched. Rows by position are joined of the same bytes, once for each set of fields.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import orjson

from gateway.positions.client_positions import name_pair, names_field
from gateway.positions.field_sets import FieldSet
from gateway.positions.row_values import RowValues
from gateway.protocol.key_sets import InstrumentNumbers, KeySet
from gateway.stream.board import Position
from gateway.stream.pending_rows import SharedRows
from ingest.series import is_series
from throttle.contract.day_so_far import day_object
from throttle.contract.group import encode_groups
from throttle.contract.row_sums import UNCOUNTED
from throttle.contract.snapshot import LastValue, Row, WindowSnapshot


def encode_row(body: bytes, sums: bytes, day: bytes = b"") -> bytes:
    """Add a row's sums of its trades (``row_sums.py``), and its day so far, if any."""
    end = b',"day":%b}' % day_object(day) if day else b"}"
    if b"," not in sums:
        return b'%b,"trades":%b%b' % (body[:-1], sums, end)
    trades, volume, value, high, low = sums.split(b",")
    row = b'%b,"trades":%b,"volume":%b,"value":%b' % (body[:-1], trades, volume, value)
    return b'%b,"high":%b,"low":%b%b' % (row, high, low, end) if high else row + end


def encode_value(value: LastValue) -> bytes:
    """Return an instrument's last value as an item of a snapshot."""
    return encode_row(value.body, UNCOUNTED, value.day)


class _SharedFrames:
    """Frames by key set: clients with equal ones get the same bytes object."""

    def __init__(self) -> None:
        self._frames: dict[KeySet, bytes | None] = {}

    def frame(self, key_set: KeySet) -> bytes | None:
        """Return the frame for ``key_set``, None if there is nothing in it for it."""
        if not key_set.is_shared:
            return self._build(key_set)
        if key_set not in self._frames:
            self._frames[key_set] = self._build(key_set)
        return self._frames[key_set]

    def _build(self, key_set: KeySet) -> bytes | None:
        raise NotImplementedError


class Update(_SharedFrames):
    """One published step, ready for any number of clients.

    ``groups`` are the figures it brings, by the groups' keys. It stands for the
    offsets ``(offset - windows, offset]``: for none while a row of them is held back
    (``once_per_window.py``). Instruments with a number below ``first_new`` had one
    before.
    """

    def __init__(
        self,
        position: Position,
        windows: int,
        rows: Collection[Row],
        numbers: InstrumentNumbers,
        groups: Mapping[str, bytes] | None = None,
        first_new: int = 0,
    ) -> None:
        super().__init__()
        self.position = position
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
        self.numbers = numbers
        self.first_new = first_new
        # By number: None where an instrument did not change.
        self._rows = list(map(encoded.get, range(len(numbers))))
        self.head = _update_head(position, windows)
        self._by_position: dict[FieldSet, UpdateByPosition] = {}
        self._values: dict[int, RowValues] | None = None

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
        return instruments + len(self._of_keys(key_set, self._rows)) + len(groups)

    def by_position(self, fields: FieldSet) -> "UpdateByPosition":
        """Return the same with rows of these fields by position."""
        form = self._by_position.get(fields)
        if form is None:
            form = self._by_position[fields] = UpdateByPosition(self, fields)
        return form

    def values(self) -> Mapping[int, RowValues]:
        """Return what rows say, by the instruments' numbers; it is read once."""
        if self._values is None:
            window = self.position.window
            self._values = {
                self.numbers[row.isin]: RowValues.of(
                    row.body, row.sums, row.day if row.starts_day else b"", window
                )
                for row in self.rows.values()
            }
        return self._values

    def pick(self, key_set: KeySet, by_number: list[bytes | None]) -> list[bytes]:
        """Return what a list by number has of the changed instruments of ``key_set``.

        The list may become longer.
        """
        picked = self._of_keys(key_set, by_number)
        if not key_set.is_everything:
            return picked
        numbers = map(self.numbers.__getitem__, sorted(self._instruments))
        return [*filter(None, map(by_number.__getitem__, numbers)), *picked]

    def _build(self, key_set: KeySet) -> bytes | None:
        rows = self.pick(key_set, self._rows)
        groups = [self.groups[key] for key in key_set.pick_groups(self.groups)]
        return _with_data(self.head, groups, rows) if rows or groups else None

    def _of_keys(self, key_set: KeySet, by_number: list[bytes | None]) -> list[bytes]:
        # Instruments may have been numbered since.
        by_number += [None] * (len(self.numbers) - len(by_number))
        return key_set.pick(by_number)


class UpdateByPosition(_SharedFrames):
    """An update for clients that are sent the same fields by position.

    A frame names the instruments that are new with it.
    """

    def __init__(self, update: Update, fields: FieldSet) -> None:
        super().__init__()
        self._update = update
        keys, values = fields.keys, update.values()
        rows = {number: row.encode(number, keys) for number, row in values.items()}
        count = len(update.numbers)
        self._rows = list(map(rows.get, range(count)))
        isins = {update.numbers[isin]: isin for isin in update.rows}
        new = {n: name_pair(n, i) for n, i in isins.items() if n >= update.first_new}
        self._names = list(map(new.get, range(count))) if new else []

    def _build(self, key_set: KeySet) -> bytes | None:
        update = self._update
        rows = update.pick(key_set, self._rows)
        groups = [update.groups[key] for key in key_set.pick_groups(update.groups)]
        if not rows and not groups:
            return None
        names = update.pick(key_set, self._names) if self._names else []
        return _with_data(update.head + names_field(names), groups, rows)


def update_frame(
    position: Position,
    windows: int,
    rows: Iterable[bytes],
    groups: Collection[bytes] = (),
    names: bytes = b"",
) -> bytes:
    """Build an update that stands for ``windows`` windows from encoded rows."""
    return _with_data(_update_head(position, windows) + names, groups, rows)


def snapshot_frame(
    position: Position,
    rows: Iterable[LastValue],
    groups: Collection[bytes] = (),
    encode: Callable[[LastValue], bytes] = encode_value,
    names: bytes = b"",
    *,
    final: bool,
) -> bytes:
    """Build one piece of a snapshot; its items stand for no trades of their own."""
    head = b'{"type":"snapshot",%b,"final":%b%b' % (
        _encode_position(position),
        b"true" if final else b"false",
        names,
    )
    return _with_data(head, groups, map(encode, rows))


def window_object(snapshot: WindowSnapshot, *, with_rows: bool) -> bytes:
    """Encode what one job has published of a window for REST."""
    position = Position(snapshot.epoch, snapshot.offset, snapshot.window)
    data = b""
    if with_rows:
        rows = b",".join(encode_row(row.body, row.sums) for row in snapshot.rows)
        data = b',"data":[%b]' % rows
        if snapshot.groups:
            data = b',"groups":%b%b' % (encode_groups(snapshot.groups), data)
    if snapshot.chain:
        links = orjson.dumps([link.text for link in snapshot.chain])
        data = b',"chain":%b%b' % (links, data)
    return b'{%b,"windows":%d,"published":%d,"count":%d,"trades":%d%b}' % (
        _encode_position(position),
        snapshot.windows,
        snapshot.published_us,
        len(snapshot.rows),
        snapshot.trades,
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


def message_frame(
    kind: str, message_id: int | str | None = None, **fields: Any
) -> bytes:
    """Build a frame that is no data; one that answers a message has its id."""
    echo = {} if message_id is None else {"id": message_id}
    return orjson.dumps({"type": kind, **echo, **fields})


def is_members(frame: bytes | None) -> bool:
    """Say whether a frame tells that keys stand for other instruments from now on."""
    return frame is not None and frame.startswith(b'{"type":"members"')


def heartbeat_frame(position: Position, server_time_us: int) -> bytes:
    """Build a sign of life: everything up to ``position`` has been sent."""
    return b'{"type":"heartbeat",%b,"server_time":%d}' % (
        _encode_position(position),
        server_time_us,
    )


def status_frame(feed: str, since_window: int | None, message: str) -> bytes:
    """Say whether windows are arriving (``live``), or not (``stale``, ``starting``)."""
    status = {"feed": feed, "since_window": since_window, "message": message}
    return message_frame("status", **status)


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
