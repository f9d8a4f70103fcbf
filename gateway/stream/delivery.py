"""What one client is due and when: its keys, its mailbox, its frames. Pure.

A slow client is treated here and in ``mailbox``: windows that it did not take in time
are merged into one update of the newest values.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from gateway.admission.bounds import Bounds
from gateway.positions.client_positions import ClientPositions
from gateway.positions.field_sets import FieldSet
from gateway.protocol.key_sets import KeySets
from gateway.protocol.market_instruments import MarketInstruments
from gateway.protocol.messages import Since
from gateway.stream import frames
from gateway.stream.board import Board, Position
from gateway.stream.counters import Counters
from gateway.stream.mailbox import Mailbox, Merged, SnapshotPiece
from ingest.instrument_table.known_instruments import Instruments, has_members
from ingest.series import instrument_of, is_series
from throttle.contract.row_sums import UNCOUNTED
from throttle.contract.snapshot import LastValue
from tickthrottle_client.tick_v1 import ALL, ALL_GROUPS, is_group

LONGEST_INTERVAL_MS = 60_000
"""A client that asks for fewer updates than one in this time is granted this."""

MOST_PIECES = 32
"""This many pieces of snapshots are kept until the next window: a few megabytes."""

LOOKED_AT = 64
"""So many last values are looked at for the fields that trades have."""

_DATA = b',"data":['

AHEAD_MOST = 30
"""A client may have seen this many windows more than this gateway, from another one."""


class NewestUpdate:
    """The newest update, for all clients: each takes it in when its turn comes.

    ``number`` grows with every update. An update that not all have taken in is taken
    in by the rest (``Delivery.take_in``) before the next one is put here. ``eager``
    take in each at once.
    """

    __slots__ = ("eager", "number", "pieces", "pieces_of", "update")

    def __init__(self) -> None:
        # Of snapshots that several clients are sent, as of a position of the board, by
        # the fields of their rows and the instruments that they name, too.
        self.pieces: dict[tuple[SnapshotPiece, FieldSet | None, bytes], bytes] = {}
        self.pieces_of = Position()
        self.number = 0
        self.update: frames.Update | None = None
        self.eager: set[Delivery] = set()

    def put(self, update: frames.Update) -> None:
        """Have an update, which the board has just been given, be the newest."""
        self.update = update
        self.number += 1
        for delivery in tuple(self.eager):
            delivery.take_in()

    def skip(self) -> None:
        """Have everything sent anew: what was before leads nowhere."""
        self.update = None
        self.number += 2


@dataclass(slots=True)
class _Regrouped:
    """What a client has not been told yet of its keys: which changed, and renames."""

    changed: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)

    def take_in(self, changed: Iterable[str], renames: dict[str, str]) -> None:
        self.changed = {renames.get(key, key) for key in {*self.changed, *changed}}
        before = {old: renames.get(new, new) for old, new in self.renamed.items()}
        self.renamed = before | renames


@dataclass(slots=True, eq=False)
class Delivery:
    """Knows what a client has to be sent, bounded by the keys it holds.

    For a client that watches everything the bound is the number of instruments.
    ``keys`` are held, in order. Whatever is asked of it or done to it, it takes in what
    was published before.
    """

    _board: Board
    _bounds: Bounds
    _counters: Counters
    _key_sets: KeySets
    newest: NewestUpdate
    interval_ms: int = field(init=False)
    # The number of the newest update that is in the mailbox, or was sent.
    _taken_in: int = field(init=False)
    # The instrument table by which its keys stand for instruments.
    _followed: Instruments = field(init=False)
    _regrouped: _Regrouped | None = None
    # None: rows are objects.
    positions: ClientPositions | None = None
    # Up to which offset it knows the chain, below 0 if it does not yet. None: it has
    # not asked.
    chained: int | None = None
    # In order, as a tuple: a set of thirty is two thirds of what a client costs.
    keys: tuple[str, ...] = ()
    _mailbox: Mailbox = field(default_factory=Mailbox)
    # Keys of a client that has seen more than this gateway, and how much.
    _waiting: dict[str, Since] = field(default_factory=dict)
    # Updates come no faster than this; 0: with every window.
    _pace_ms: int = 0
    _sent_interval: int = 0
    # The newest window when it was last sent what the board held at that moment.
    _gathered_window: int | None = None

    def __post_init__(self) -> None:
        """Begin with what is published next."""
        self.interval_ms = self._board.window_ms
        self._taken_in = self.newest.number
        self._followed = self._key_sets.instruments

    @property
    def instruments(self) -> Instruments:
        """The instrument table of now."""
        return self._key_sets.instruments

    def members_of(self, keys: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return the instruments of those keys that are markets or sectors."""
        return {key: self._key_sets.members(key) for key in keys if has_members(key)}

    def holds(self, isin: str) -> bool:
        """Say whether an instrument that is served, or a series of it, is held."""
        instruments = self.instruments
        if isinstance(instruments, MarketInstruments) and not instruments.has(isin):
            return False
        is_waiting = any(instrument_of(key) == isin for key in self._waiting)
        return is_waiting or self._mailbox.key_set.holds(isin)

    def among(self, isins: Collection[str]) -> list[str]:
        """Return which of some instruments are held."""
        some = isins if self._waiting else self._mailbox.key_set.among(isins)
        return list(filter(self.holds, some))

    def place(self, fields: FieldSet | None) -> FieldSet | None:
        """Have rows come by position from now on, as objects without ``fields``.

        Return what was sent by position before.
        """
        self.take_in()
        before = self.positions
        if fields is None:
            self.positions = None
        else:
            told = 0 if before is None else before.told
            self.positions = ClientPositions(fields, told)
        return None if before is None else before.fields

    def chain(self, known: int | None, since: Since | None) -> None:
        """Have the chain told from now on: anew (below 0), or on from an offset.

        Who is told it already goes on from there, unless it is to begin anew.
        """
        self.take_in()
        if known is not None and (known < 0 or self.chained is None):
            self.chained = -1 if since is None else known

    def with_chain(self, frame: bytes, offset: int) -> bytes:
        """Return a message up to an offset, with the links that lead to it."""
        if self.chained is None:
            return frame
        told = self._board.chain.told(self.chained, offset)
        if not told:
            return frame
        self.chained = offset
        # Before the rows: a client finds it there without reading them.
        at = frame.find(_DATA)
        at = len(frame) - 1 if at < 0 else at
        return b'%b,"chain":%b%b' % (frame[:at], orjson.dumps(told), frame[at:])

    def some_bodies(self) -> Iterable[bytes]:
        """Return rows of some instruments, for the fields that trades have."""
        return (value.body for value in self._board.some(LOOKED_AT))

    def names_of(self, keys: Collection[str]) -> dict[str, str]:
        """Return the names of the numbers that instruments of some keys have."""
        numbers, named = self._board.numbers, self._board.named
        isins = [*self._key_sets.expand(keys)]
        if ALL in keys:
            isins += (isin for isin in numbers if not is_series(isin))
        every = ((numbers.get(isin, named), isin) for isin in isins)
        return {str(number): isin for number, isin in every if number < named}

    def tell(self, keys: Collection[str]) -> dict[str, str]:
        """Return the names that a client has to be told that has asked for keys.

        Of a client that is sent rows by position for the first time, of all it holds.
        """
        positions = self.positions
        if positions is None:
            return {}
        names = self.names_of(keys if positions.told else self.keys)
        positions.told = positions.told or self._board.named
        return names

    def _tell_later(self, keys: Collection[str]) -> None:
        """Have instruments named that are new, whether or not the snapshot has them."""
        positions = self.positions
        if positions is not None and positions.told < self._board.named:
            positions.untold = (*positions.untold, *self.names_of(keys).values())

    def follow(self, board: Board, newest: NewestUpdate, pace_ms: int) -> None:
        """Be sent what another board shows and its updates, one in ``pace_ms``.

        What is held is sent anew as it is there.
        """
        if newest is self.newest:
            return
        self.newest.eager.discard(self)
        self._board, self.newest, self._pace_ms = board, newest, pace_ms
        self.restart()

    @property
    def pending(self) -> int:
        """How many instruments and groups the client has not been sent yet."""
        self.take_in()
        return self._mailbox.pending

    @property
    def is_owed(self) -> bool:
        """Whether something is to be sent now: what may wait is not owed yet."""
        self.take_in()
        self._mailbox.rows.fold_some()
        is_filled = not self._mailbox.is_empty and self._is_due()
        return is_filled or self._regrouped is not None

    @property
    def is_folded(self) -> bool:
        """Whether the sums of what it has to be sent are worked out.

        Until then no update is owed. ``is_owed`` and ``next_frame`` do a part of it.
        """
        return self._mailbox.rows.is_folded

    def add(
        self, keys: Collection[str], since: Since | None, *, wants_snapshot: bool
    ) -> int:
        """Watch further keys and have what is newer than ``since`` sent.

        Return how many instruments and groups that is now.
        """
        self.take_in()
        for key in keys:
            self._waiting.pop(key, None)
        is_ahead = since is not None and since.offset > self._board.position.offset
        if since is not None and is_ahead:
            self._waiting.update(dict.fromkeys(keys, since))
            self.newest.eager.add(self)
        self._watch({*self.keys, *keys})
        if not wants_snapshot or not keys or is_ahead:
            return 0
        return self._request(keys, since)

    def drop(self, keys: Collection[str]) -> None:
        """Watch some keys no longer."""
        self.take_in()
        for key in keys:
            self._waiting.pop(key, None)
        self._watch(set(self.keys).difference(keys))

    def take_in(self) -> None:
        """Put what was published last into the mailbox, if it is not there yet.

        A client that the one before had passed by is sent everything anew. Then its
        keys stand for what the newest instrument table says.
        """
        newest = self.newest
        if self._taken_in == newest.number - 1 and newest.update is not None:
            self._taken_in = newest.number
            self._mailbox.offer(newest.update)
            self._end_waiting()
        elif self._taken_in != newest.number:
            self.restart()
        if self._followed is not self._key_sets.instruments:
            self._follow()

    def steady_frame(self) -> bytes | None:
        """Return the frame of what was published last, empty if nothing of it is due.

        That is for a client that keeps up: everything before was sent, and nothing
        else is to be sent with it. None if it is not one, or has had the update: what
        it is due then is ``next_frame``.
        """
        newest = self.newest
        if (
            self._taken_in != newest.number - 1
            or newest.update is None
            or not self._is_every_one_due
            or not self._mailbox.is_empty
            or self._followed is not self._key_sets.instruments
            or self._regrouped is not None
            or self._is_gathered()
        ):
            return None
        self._taken_in = newest.number
        return self._update_frame(newest.update) or b""

    def close(self) -> None:
        """Watch nothing any more."""
        self._taken_in = self.newest.number
        self._forget_waiting()
        self._watch(())

    def restart(self) -> None:
        """Send everything held anew: another epoch has begun."""
        self._taken_in = self.newest.number
        self._forget_waiting()
        self._watch(self.keys)
        self._tell_later(self.keys)
        if self.keys:
            self._mailbox.restart(
                self._stored(self.keys, None), self._board.complete.offset
            )

    def next_frame(self) -> bytes | None:
        """Return what to send next, None if there is nothing.

        What keys stand for comes before snapshots, snapshots before updates. Values are
        those of the board at this moment. Updates are sent once in the interval that
        was granted, all else at once.
        """
        self.take_in()
        regrouped, self._regrouped = self._regrouped, None
        if regrouped is not None:
            changed = sorted(regrouped.changed & {*self.keys})
            members: dict[str, Any] = {
                "instruments": self.instruments.digest,
                "members": self.members_of(changed),
                "renamed": regrouped.renamed,
            }
            if self.positions is not None:
                members["names"] = self.names_of(changed)
            return frames.message_frame("members", **members)
        mailbox = self._mailbox
        mailbox.rows.fold_some()
        while not mailbox.is_empty and self._is_due():
            due = mailbox.take(self._bounds.snapshot_items)
            if isinstance(due, SnapshotPiece):
                self._gathered_window = self._board.position.window
                frame = self._snapshot_frame(due)
                return self.with_chain(frame, due.offset) if due.final else frame
            self._sent_interval = self._interval_begun()
            if isinstance(due, frames.Update):
                return self._update_frame(due)
            if due is not None:
                self._gathered_window = self._board.position.window
                return self.with_chain(
                    self._merged_frame(due), self._board.complete.offset
                )
        return None

    def _update_frame(self, update: frames.Update) -> bytes | None:
        form: frames.Update | frames.UpdateByPosition = update
        if self.positions is not None:
            form = update.by_position(self.positions.fields)
        frame = form.frame(self._mailbox.key_set)
        return frame and self.with_chain(frame, update.position.offset)

    def position(self) -> Position:
        """Return the position up to which the client was sent everything."""
        self.take_in()
        here = self._board.complete
        if self._mailbox.is_empty:
            return here
        return Position(here.epoch, self._mailbox.resume_offset, here.window)

    def resume_position(self) -> Position | None:
        """Return ``position``, None while a snapshot is under way."""
        self.take_in()
        return None if self._mailbox.is_snapshot_due else self.position()

    def set_interval(self, wanted_ms: int) -> None:
        """Grant whole windows; all who have the same interval are sent at one time.

        Never less than the pace of the board.
        """
        self.take_in()
        window_ms = self._board.window_ms
        windows = -(-min(wanted_ms, LONGEST_INTERVAL_MS) // window_ms)
        self.interval_ms = max(max(1, windows) * window_ms, self._pace_ms)
        self._sent_interval = self._interval()

    def can_resume(self, since: Since | None) -> bool:
        """Say whether a client that has everything up to there can go on from it."""
        here = self._board.position
        return (
            since is not None
            and since.epoch == here.epoch
            and since.offset <= here.offset + AHEAD_MOST
        )

    def _interval(self) -> int:
        return self._board.clock_ms // self.interval_ms

    def _interval_begun(self) -> int:
        """Return the interval that an update of now counts for.

        One that comes late in an interval, after an outage, is that of the next.
        """
        late_ms = self.interval_ms - self._board.window_ms
        return (self._board.clock_ms + late_ms) // self.interval_ms

    @property
    def _is_every_one_due(self) -> bool:
        return self.interval_ms <= max(self._pace_ms, self._board.window_ms)

    def _is_due(self) -> bool:
        if self._mailbox.is_snapshot_due:
            return True
        if self._is_gathered() or not self._mailbox.rows.is_folded:
            return False
        begun, sent = self._interval(), self._sent_interval
        # A clock that was set back is no reason to wait for it.
        return self._is_every_one_due or begun > sent or begun < sent - 1

    def _is_gathered(self) -> bool:
        """A further part of a window may have instruments that an earlier one had."""
        board = self._board
        return board.is_in_parts and self._gathered_window == board.position.window

    def _forget_waiting(self) -> None:
        self._waiting.clear()
        self.newest.eager.discard(self)

    def _end_waiting(self) -> None:
        """Serve the keys of a client that had seen more than this gateway until now.

        Another gateway was a little ahead: what this one had would have been older.
        """
        here = self._board.position.offset
        ready = {k: s for k, s in self._waiting.items() if s.offset <= here}
        if len(ready) == len(self._waiting):
            self.newest.eager.discard(self)
        if not ready:
            return
        for key in ready:
            del self._waiting[key]
        self._watch(self.keys)
        self._tell_later(ready)
        for since in set(ready.values()):
            keys = [key for key in ready if ready[key] == since]
            self._request(keys, since)

    def _request(self, keys: Collection[str], since: Since | None) -> int:
        """Have what is stored for keys sent; return how much that is."""
        stored = self._stored(keys, since)
        self._mailbox.request_snapshot(stored, self._board.complete.offset)
        return len(stored)

    def _stored(self, keys: Collection[str], since: Since | None) -> list[str]:
        """Return what ``keys`` stand for, as far as it is newer than ``since``."""
        names = self._board.groups.keys() if ALL_GROUPS in keys else keys
        offset = since.offset if since else -1
        groups = self._board.groups.newer(filter(is_group, names), offset)
        if ALL in keys:
            changed = self._board.changed_since(offset)
            return [*groups, *changed, *self._newer(filter(is_series, keys), since)]
        followed = [key for key in keys if has_members(key)]
        isins = [key for key in keys if not has_members(key)] if followed else keys
        # Whoever left under another table may know other instruments by these keys.
        is_same = since is not None and since.instruments == self.instruments.digest
        members = self._key_sets.expand(followed)
        return [
            *groups,
            *self._newer(members, since if is_same else None),
            *self._newer(isins, since),
        ]

    def _newer(self, isins: Iterable[str], since: Since | None) -> list[str]:
        return [
            isin
            for isin in isins
            if (row := self._board.get(isin)) is not None
            and (since is None or row.offset > since.offset)
        ]

    def _follow(self) -> None:
        """Have the keys stand for the instruments that the newest table says."""
        key_sets = self._key_sets
        self._followed = key_sets.instruments
        changed = key_sets.changed.intersection(self.keys)
        if not changed:
            return
        renames = {k: n for k, n in key_sets.renames.items() if k in changed}
        self._waiting = {renames.get(k, k): s for k, s in self._waiting.items()}
        before = self._mailbox.key_set
        self._watch({renames.get(key, key) for key in self.keys})
        after = self._mailbox.key_set
        added = set(after.groups).difference(before.groups)
        if not after.is_everything:
            added |= set(after.isins).difference(before.isins)
        if added:
            self._request(sorted(added), None)
        if self._regrouped is None:
            self._regrouped = _Regrouped()
        self._regrouped.take_in(changed, renames)

    def _watch(self, keys: Collection[str]) -> None:
        self.keys = tuple(sorted(keys))
        ready = set(keys).difference(self._waiting) if self._waiting else keys
        key_set = self._key_sets.move(self._mailbox.key_set, ready)
        if key_set.keys == self.keys:
            # Two lists of thirty keys would be a tenth of what a client costs.
            self.keys = key_set.keys
        self._mailbox.watch(key_set)

    def _snapshot_frame(self, piece: SnapshotPiece) -> bytes:
        """Build a piece, or take the one that was built for somebody else just now."""
        names = self._new_names(piece.names)
        if not self._mailbox.key_set.is_shared:
            return self._build_piece(piece, names)
        pieces, here = self.newest.pieces, self._board.position
        if self.newest.pieces_of != here:
            self.newest.pieces_of = here
            pieces.clear()
        fields = None if self.positions is None else self.positions.fields
        key = piece, fields, names
        frame = pieces.get(key)
        if frame is None:
            frame = self._build_piece(piece, names)
            if len(pieces) < MOST_PIECES:
                pieces[key] = frame
        return frame

    def _build_piece(self, piece: SnapshotPiece, names: bytes) -> bytes:
        here = self._board.position
        rows = (self._board.get(name) for name in piece.names)
        return frames.snapshot_frame(
            Position(here.epoch, piece.offset, here.window),
            [row for row in rows if row is not None],
            self._figures(piece.names),
            self._encode_known,
            names,
            final=piece.final,
        )

    def _merged_frame(self, merged: Merged) -> bytes:
        self._counters.windows_merged += max(0, merged.windows - 1)
        names = self._new_names(merged.rows)
        if self.positions is not None and not self._waiting:
            # Nothing waits that has a number by now.
            self.positions.told = self._board.named
        return frames.update_frame(
            self._board.complete,
            merged.windows,
            [
                self._encode(value, row.text(value.body), row.day)
                for isin, row in merged.rows.items()
                if row is not None and (value := self._board.get(isin)) is not None
            ],
            self._figures(merged.rows),
            names,
        )

    def _encode(self, value: LastValue, sums: bytes, day: bytes) -> bytes:
        if self.positions is None:
            return frames.encode_row(value.body, sums, day)
        number, window = self._board.numbers[value.isin], self._board.position.window
        return self.positions.encode(number, value.body, sums, day, window)

    def _encode_known(self, value: LastValue) -> bytes:
        return self._encode(value, UNCOUNTED, value.day)

    def _new_names(self, isins: Iterable[str]) -> bytes:
        if self.positions is None:
            return b""
        return self.positions.names(isins, self._board.numbers)

    def _figures(self, names: Iterable[str]) -> list[bytes]:
        """Return the newest figures of those names that are groups."""
        if not self._mailbox.key_set.groups:
            return []
        bodies = map(self._board.groups.get, filter(is_group, names))
        return [body for body in bodies if body is not None]
