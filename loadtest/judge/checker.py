"""One client's view of the stream, and what it finds wrong with it. Pure.

Every frame is checked as it comes; what only the whole run can tell is left to
``judging.py``. Only what docs/protocol.md promises is a fault. Thousands of these share
a core with what is tested, so an item costs a few hundred nanoseconds.
"""

from array import array
from collections.abc import Sequence

from loadtest.judge.rows import Frame, Item
from tickthrottle_client.tick_v1 import ALL

AHEAD_MOST = 30
"""A gateway that is behind a client by more windows need not resume it."""

FAULTS_KEPT = 3
"""Of so many faults a client keeps the words."""

NOTHING = -1
"""In place of an offset, a time or a number before there is one."""

UNKNOWN = -2
"""In place of a base: trades were counted that cannot be told apart."""

NO_ITEM: Item = ("", NOTHING, NOTHING, "", NOTHING)


class HeldInstrument:
    """What the client knows of an instrument: its newest trade, and what it stands for.

    ``trades`` adds up since ``base_item``, which was sent by a snapshot at the offset
    ``base`` or later; it is ``NO_ITEM`` if there was no value up to there. ``window``
    is the newest one that had an update of the instrument.
    """

    __slots__ = ("base", "base_item", "item", "trades", "window")

    def __init__(self, base: int) -> None:
        self.item = self.base_item = NO_ITEM
        self.trades = 0
        self.base = base
        self.window = NOTHING

    def rebase(self, offset: int) -> None:
        """Count from the value that is held now."""
        self.base = offset
        self.base_item = self.item
        self.trades = 0


class Checker:
    """Takes every frame of one client, over all of its connections.

    ``held`` is what a page would show; ``offset`` up to where everything was sent;
    ``times_ms`` and ``offsets`` when it was first so; ``holes`` the offsets that an
    update repaired without knowing the trades. Frames that are not as the protocol
    says raise nothing: they are faults.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = None if ALL in keys else frozenset(keys)
        """The ISINs it watches, None for all."""
        self.epoch: str | None = None
        self.offset = NOTHING
        self.held: dict[str, HeldInstrument] = {}
        self.times_ms = array("d")
        self.offsets = array("q")
        self.holes: list[tuple[int, int]] = []
        self.fault_count = 0
        self.faults: list[str] = []
        self.resumed = 0
        self.is_whole = False
        """Whether a full snapshot came, to its end, and nothing was lost since."""
        self._base = NOTHING
        self._past_epochs: tuple[str, ...] = ()
        self._since: tuple[str, int] | None = None
        self._is_anew = True
        self.is_joined = False
        """Whether this connection has brought a whole snapshot."""
        self._frame_offset = self._frame_window = NOTHING

    @property
    def position(self) -> tuple[str, int] | None:
        """Where to resume from, None if there is no such place."""
        if self.epoch is None or self.offset < 0 or not self.is_whole:
            return None
        return self.epoch, self.offset

    def connected(self) -> tuple[str, int] | None:
        """Begin a new connection; return the position it has to be resumed from."""
        self._since = self.position
        self.is_joined = False
        self._frame_offset = self._frame_window = NOTHING
        return self._since

    def fault(self, text: str) -> None:
        self.fault_count += 1
        if len(self.faults) < FAULTS_KEPT:
            self.faults.append(text)

    def take(self, frame: Frame, items: Sequence[Item], at_ms: float) -> int:
        """Take the next frame and its items, received at ``at_ms``.

        Return for how many trades its items stand, if it is an update.
        """
        try:
            kind = frame["type"]
            if kind == "update":
                return self._take_update(frame, items, at_ms)
            if kind == "snapshot":
                self._take_snapshot(frame, items, at_ms)
            elif kind == "heartbeat":
                if self._enter(frame) and self.is_joined:
                    self._reach(frame["offset"], at_ms)
            elif kind == "ack":
                self._take_ack(frame)
            elif kind == "error":
                self.fault(f"an error: {frame['code']}, {frame.get('message')}")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self.fault(f"a frame not as the protocol says, {error!r}: {frame}")
        return 0

    def take_quotes(self, answer: Frame, items: Sequence[Item], at_ms: float) -> None:
        """Take an answer of ``/v1/quotes`` and its items."""
        try:
            self._take_quotes(answer, items, at_ms)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self.fault(f"an answer not as the protocol says, {error!r}: {answer}")

    def _take_update(self, frame: Frame, items: Sequence[Item], at_ms: float) -> int:
        if not self._enter(frame):
            self.fault("an update without an epoch")
            return 0
        offset, window = frame["offset"], frame["window"]
        if not self.is_joined:
            self.fault(f"an update before the snapshot, at offset {offset}")
        held = self.held
        total = 0
        has_unknown = False
        for item in items:
            isin, time_us, seq, _, trades = item
            try:
                known = held[isin]
            except KeyError:
                known = held[isin] = self._begin(isin, offset)
            before = known.item
            if time_us <= before[1] and (time_us < before[1] or seq < before[2]):
                self.fault(f"{isin} went back at offset {offset}")
            if known.window == window:
                self.fault(f"{isin} twice in window {window}, at offset {offset}")
            known.window = window
            known.item = item
            if trades > 0:
                known.trades += trades
                total += trades
            else:
                has_unknown = True
                known.rebase(offset)
                if trades < 0:
                    self.fault(f"{isin} without trades at offset {offset}")
        if has_unknown:
            self.holes.append((offset - max(1, frame.get("merged", 1)), offset))
        self._reach(offset, at_ms)
        return total

    def _take_snapshot(self, frame: Frame, items: Sequence[Item], at_ms: float) -> None:
        if not self._enter(frame):
            # The gateway has read nothing yet: it sends everything when it has.
            self._since = None
            return
        offset = frame["offset"]
        if self._is_anew:
            self._check_resumable(frame)
            self._forget()
            self._is_anew = False
            self._base = offset
        elif self._since is not None and offset < self._since[1]:
            # Another gateway, where rows wait that this client has had already.
            for each in self.held.values():
                each.base = UNKNOWN
        for item in items:
            if item[4] != 0:
                self.fault(f"{item[0]} stands for trades in a snapshot")
        self._take_values(items, offset)
        if frame["final"]:
            self.is_joined = self.is_whole = True
            self._since = None
            self._reach(offset, at_ms)

    def _take_quotes(self, answer: Frame, items: Sequence[Item], at_ms: float) -> None:
        if not self._enter(answer):
            return
        offset = answer["offset"]
        self.is_joined = self.is_whole = True
        if offset < self.offset:
            # By another connection, so maybe of another gateway, which is behind.
            return
        for isin in sorted(self.held.keys() - {item[0] for item in items}):
            self.fault(f"{isin} is no longer there at offset {offset}")
        self._take_values(items, offset)
        self._reach(offset, at_ms)

    def _take_values(self, items: Sequence[Item], offset: int) -> None:
        """Take values that stand for no trades of their own."""
        if len({item[0] for item in items}) != len(items):
            self.fault(f"a key twice in one frame at offset {offset}")
        for item in items:
            isin = item[0]
            known = self.held.get(isin)
            if known is None:
                known = self.held[isin] = self._begin(isin, offset)
            elif item[1:3] < known.item[1:3]:
                self.fault(f"{isin} went back at offset {offset}, in an image")
            known.item = item
            known.rebase(offset)

    def _take_ack(self, ack: Frame) -> None:
        if ack["op"] != "subscribe":
            return
        for rejection in ack["rejected"]:
            self.fault(f"{rejection['key']} was refused: {rejection['message']}")
        self._is_anew = not ack["resumed"]
        if self._is_anew:
            self.is_whole = False
        else:
            self.resumed += 1
            if self._since is None:
                self.fault("resumed, though it was not asked for")
        for known in self.held.values():
            # What is asked for again may come again within a window.
            known.window = NOTHING

    def _enter(self, frame: Frame) -> bool:
        """Check a frame's position; say whether it is one of any epoch."""
        epoch = frame["epoch"]
        if epoch is None:
            return False
        offset, window = frame["offset"], frame["window"]
        if epoch != self.epoch:
            self._change_epoch(epoch)
        if offset < self._frame_offset:
            self.fault(f"offset {self._frame_offset}, then {offset}")
        if window is not None:
            if window < self._frame_window:
                self.fault(f"window {self._frame_window}, then {window}")
            self._frame_window = window
        self._frame_offset = offset
        return True

    def _change_epoch(self, epoch: str) -> None:
        """Another epoch is another truth; one that is over does not come back."""
        if self.epoch is not None:
            if epoch in self._past_epochs:
                self.fault(f"epoch {epoch} again, after {self.epoch}")
            self._past_epochs += (self.epoch,)
        self.epoch = epoch
        self._forget()
        self._is_anew = True
        self.is_joined = self.is_whole = False
        self.holes.clear()
        self.times_ms, self.offsets = array("d"), array("q")
        self._frame_offset = self._frame_window = NOTHING

    def _check_resumable(self, snapshot: Frame) -> None:
        since, self._since = self._since, None
        if since is None or snapshot["epoch"] != since[0]:
            return
        if snapshot["offset"] + AHEAD_MOST >= since[1]:
            self.fault(f"not resumed from offset {since[1]} of the same epoch")

    def _forget(self) -> None:
        self.held.clear()
        self.offset = NOTHING

    def _begin(self, isin: str, offset: int) -> HeldInstrument:
        if self.keys is not None and isin not in self.keys:
            self.fault(f"{isin} came at offset {offset}, but was not asked for")
        return HeldInstrument(self._base)

    def _reach(self, offset: int, at_ms: float) -> None:
        if offset > self.offset:
            self.offset = offset
            if not self.offsets or offset > self.offsets[-1]:
                self.offsets.append(offset)
                self.times_ms.append(at_ms)
