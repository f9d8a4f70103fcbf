"""Clients of every kind: what they do when; what they see goes to their checker.

A client comes back as docs/protocol.md says. ``LoadClient`` knows that much; how bytes
come and go is for the classes in ``sockets.py`` and ``requests.py``.
"""

from collections.abc import Sequence

from loadtest.client_mix import Kind, Member
from loadtest.clients.client_loop import ClientLoop
from loadtest.clients.targets import Target
from loadtest.judge.checker import Checker
from loadtest.judge.rows import Frame, Item
from loadtest.results import ClientTally
from tickthrottle_client.tick_v1 import is_final

FIRST_DELAY_S, LONGEST_DELAY_S = 0.5, 30.0

AFTER_TOO_MANY_S = 30.0
"""A client that was closed with 4429 comes back after this, unless told otherwise."""

SILENT_BEATS = 2.5
"""A client that hears nothing for so many heartbeats takes its line for dead."""

FINAL_STATUSES = frozenset(("400", "401", "403", "404"))
"""After these answers of HTTP a client does not come back."""

LOST = "lost"
"""In place of the code of a close, where there was none."""

SILENT = "silent"
"""The same, of a line that the client gave up."""


class LoadClient:
    """One member, over all of its connections.

    Subclasses connect in ``open``, cut in ``cut``, and put what they receive on the
    client_loop's queue. Everything else happens in ``heard``, in order.
    """

    def __init__(self, member: Member, target: Target, client_loop: ClientLoop) -> None:
        self.member = member
        self.target = target
        self.client_loop = client_loop
        self.checker = Checker(member.keys)
        self.has_joined = False
        self.is_connected = False
        self.is_over = False
        self.close_code: str | None = None
        self.heard_ms = 0.0
        self._is_welcome = False
        self._has_cut = False
        self._attempt = 0
        self._notice_ms: float | None = None
        self._heartbeat_ms = 0.0
        self._resumed = 0

    @property
    def kind(self) -> Kind:
        return self.member.kind

    @property
    def tally(self) -> ClientTally:
        return self.client_loop.tally(self.member.kind)

    @property
    def reads(self) -> bool:
        """Whether it is to have everything sooner or later."""
        return self.has_joined and not self.is_over and self.kind != "stalled"

    def open(self) -> None:
        """Connect; then call ``came``, or ``refused``."""
        raise NotImplementedError

    def cut(self) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        """Say goodbye, if there is somebody to say it to, and do not come back."""
        self.is_over = True
        if self.is_connected:
            self.cut()

    def begin(self) -> None:
        if not self.is_over and not self.client_loop.is_frozen:
            self.close_code = None
            self._has_cut = self._is_welcome = False
            self.open()

    def came(self, at_ms: float) -> tuple[str, int] | None:
        """Note that the connection is open; return where to resume from."""
        self.is_connected = True
        self.heard_ms = at_ms
        self.client_loop.connected[self.kind] += 1
        self.tally.connections += 1
        return self.checker.connected()

    def refused(self) -> None:
        """Note that there is no connection, and come back."""
        if self.is_over or self.client_loop.is_frozen:
            return
        self.tally.refused += 1
        self._return()

    def heard(self, payload: bytes | None, at_ms: float) -> None:
        if payload is None:
            self._end()
        elif not self.client_loop.is_frozen:
            self.hear(payload, at_ms)

    def hear(self, payload: bytes, at_ms: float) -> None:
        tally = self.tally
        tally.frames += 1
        tally.bytes += len(payload)
        checker = self.checker
        faults = checker.fault_count
        try:
            frame, items = self.read(payload)
            kind = frame["type"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            checker.fault(f"not a frame, {error}: {payload[:120]!r}")
            tally.faults += 1
            return
        trades = checker.take(frame, items, at_ms)
        tally.items += len(items)
        if kind == "update" and checker.fault_count == faults:
            merged = frame.get("merged", 1)
            tally.trades += trades
            if merged > 1:
                tally.merged_updates += 1
                tally.merged_windows += merged
            window = frame["window"]
            if window > self.client_loop.newest_window:
                self.client_loop.newest_window = window
            self.client_loop.note_update(
                self.kind, frame["offset"], merged, at_ms - window
            )
        else:
            self._hear_further(kind, frame)
        tally.faults += checker.fault_count - faults
        self.after(frame, at_ms)

    def read(self, payload: bytes) -> tuple[Frame, Sequence[Item]]:
        """Return a frame and its rows, as ``RowReader.read``."""
        return self.client_loop.rows.read(payload)

    def after(self, frame: Frame, at_ms: float) -> None:
        """Do what this kind of client does after a frame."""

    def look(self, now_ms: float) -> None:
        """Give up a line that has been silent for too long; called about every s."""
        limit_ms = SILENT_BEATS * self._heartbeat_ms
        if self.is_connected and limit_ms and now_ms - self.heard_ms > limit_ms:
            self.close_code = SILENT
            self.cut()

    def cut_by_choice(self) -> None:
        """Cut the connection as a client may, and come back."""
        if self.is_connected:
            self._has_cut = True
            self.cut()

    def joined(self) -> None:
        """Do what this kind of client does once it has its snapshot."""

    def _hear_further(self, kind: str, frame: Frame) -> None:
        if kind == "snapshot":
            if self.checker.is_joined:
                self.has_joined = True
                self._attempt = 0
                self.joined()
        elif kind == "welcome":
            self._is_welcome = True
            self._heartbeat_ms = frame.get("heartbeat_ms", 0)
        elif kind == "notice":
            self._notice_ms = frame.get("reconnect_after_ms")
        elif kind == "ack":
            self.tally.resumed += self.checker.resumed - self._resumed
            self._resumed = self.checker.resumed

    def _end(self) -> None:
        if self.is_connected:
            self.is_connected = False
            self.client_loop.connected[self.kind] -= 1
        if self.is_over or self.client_loop.is_frozen:
            return
        code = self.close_code or LOST
        if not self._has_cut:
            if code == "1013" and not self._is_welcome:
                self.tally.refused += 1
            else:
                self.tally.closes[code] += 1
        if not self._has_cut and self._is_final(code):
            self.checker.fault(f"sent away for good, with {code}")
            self.tally.faults += 1
            self.is_over = True
            return
        self._return(code)

    def _is_final(self, code: str) -> bool:
        return code in FINAL_STATUSES or (code.isdigit() and is_final(int(code)))

    def _return(self, code: str = LOST) -> None:
        chance = self.client_loop.chance
        delay_s = chance.random() * min(
            LONGEST_DELAY_S, FIRST_DELAY_S * 2 ** min(self._attempt, 10)
        )
        self._attempt += 1
        if code == "4429":
            delay_s = AFTER_TOO_MANY_S
        if self._notice_ms is not None:
            delay_s, self._notice_ms = self._notice_ms / 1e3, None
        self.client_loop.later(delay_s, self.begin)
