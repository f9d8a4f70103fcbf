"""An instrument is handed out at most once per window, whoever publishes it."""

import json
from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.admission.bounds import Bounds
from gateway.stream.board import Board, Position
from gateway.stream.frames import Update
from gateway.stream.once_per_window import OncePerWindow
from tests.examples import many
from tests.gateway.samples import (
    EPOCH,
    FIRST_WINDOW,
    HYNIX,
    NAVER,
    SAMSUNG,
    WINDOW_MS,
    make_commands,
    make_row,
    make_snapshot,
    make_update,
    offer,
    restate,
)
from throttle.contract.snapshot import LastValue, WindowSnapshot

W = FIRST_WINDOW


def test_windows_in_one_update_each_go_out_as_they_come() -> None:
    """The usual case: the very list, and nothing is held."""
    gate = OncePerWindow()
    for seq, window in enumerate((W, W + 2_000, W + 4_000), 1):
        rows = [make_row(SAMSUNG, seq=seq), make_row(HYNIX, seq=seq)]
        assert gate.hand_out(window, rows) is rows
        assert gate.window == window
        assert not gate.is_in_parts
        assert not gate.is_holding


def test_another_part_of_a_window_brings_other_instruments_at_once() -> None:
    """Only what was handed out in the window already has to wait."""
    gate, other = OncePerWindow(), make_row(HYNIX)
    gate.hand_out(W, [make_row(SAMSUNG)])
    assert gate.hand_out(W, [make_row(SAMSUNG, seq=2), other]) == [other]
    assert gate.is_in_parts
    assert gate.is_holding
    assert gate.hand_out(W, [make_row(HYNIX, seq=3)]) == []


def test_what_was_held_back_goes_out_with_the_next_window() -> None:
    """The newest row, with the trades of all that it stands for."""
    gate = OncePerWindow()
    gate.hand_out(W, [make_row(SAMSUNG, trades=1), make_row(HYNIX, trades=1)])
    gate.hand_out(W, [make_row(SAMSUNG, seq=2, trades=2), make_row(HYNIX, seq=2)])
    gate.hand_out(W, [make_row(SAMSUNG, seq=3, trades=4)])
    newest, quiet = make_row(HYNIX, seq=4, trades=8), make_row(SAMSUNG, seq=3, trades=6)
    rows = gate.hand_out(W + 2_000, [newest, make_row(NAVER)])
    merged = newest._replace(sums=b"9,360,71820000,199500,199500")
    assert rows == [merged, make_row(NAVER), quiet]
    assert (gate.is_in_parts, gate.is_holding) == (False, False)
    assert gate.hand_out(W + 2_000, [make_row(SAMSUNG, seq=5)]) == []


def test_a_quiet_window_is_enough_to_let_go() -> None:
    """A job that dies leaves nothing behind as long as another publishes."""
    gate = OncePerWindow()
    gate.hand_out(W, [make_row()])
    gate.hand_out(W, [make_row(seq=2, trades=5)])
    assert gate.hand_out(W + 2_000, []) == [make_row(seq=2, trades=5)]


def test_a_window_behind_the_newest_is_a_part_of_it() -> None:
    """A job that is behind opens no window, and none is open twice."""
    gate = OncePerWindow(W + 2_000)
    late = [make_row(SAMSUNG, seq=1)]
    assert gate.hand_out(W - 4_000, late) == late
    assert gate.hand_out(W - 2_000, [make_row(SAMSUNG, seq=2)]) == []
    assert gate.hand_out(W + 2_000, [make_row(SAMSUNG, seq=3)]) == []
    assert gate.window == W + 2_000
    assert len(gate.hand_out(W + 4_000, [])) == 1


class Stream:
    """The published stream: takes the parts of several jobs as the script does.

    Of trades that are too late to be shown, too.
    """

    def __init__(self) -> None:
        self.offset = 0
        self.last: dict[str, LastValue] = {}
        self.windows = [W, W]
        self._seq = 10

    def publish(self, job: int, count: int, late: dict[str, int]) -> WindowSnapshot:
        """Publish a job's next windows, with an update for all of them.

        ``late`` says of each instrument how many trades are newer than the job's.
        """
        self.windows[job] += count * WINDOW_MS
        self.offset += count
        rows = []
        for isin, behind in late.items():
            self._seq += 1
            row = make_row(isin, seq=self._seq - behind, trades=1)
            shown = self.last.get(isin)
            if shown is not None and row.version <= shown.version:
                row = restate(shown, row)
            self.last[isin] = LastValue(isin, row.version, self.offset, row.body)
            rows.append(row)
        return make_snapshot(
            self.offset, *rows, windows=count, window=self.windows[job]
        )

    def load(self, board: Board, window: int) -> None:
        """Have a gateway begin with the stored state."""
        position = Position(EPOCH, self.offset, window)
        board.replace(position, self.last.values())


class Reader:
    """A client that checks every frame, served from some gateway's board."""

    def __init__(self, board: Board, interval_ms: int = 0) -> None:
        self.board = board
        self.commands = make_commands(board, bounds=Bounds(snapshot_items=1))
        self.interval_ms = interval_ms
        self.keys: set[str] = set()
        self.seen: dict[str, int] = {}
        self.position: dict[str, Any] | None = None
        self._is_snapshot_due = False
        self._shown: set[tuple[int, str]] = set()
        self._window = self._offset = 0

    def subscribe(
        self, keys: Iterable[str], since: dict[str, Any] | None = None
    ) -> None:
        """Ask for keys that it does not hold."""
        new = sorted(set(keys) - self.keys)
        if new:
            self.keys.update(new)
            message = {"op": "subscribe", "keys": new, "since": since}
            text = json.dumps({**message, "min_interval_ms": self.interval_ms})
            assert json.loads(self.commands.answer(text, 0.0, 0))["type"] == "ack"
            self._is_snapshot_due = True
            self.position = None

    def offer(self, update: Update) -> None:
        """Hear of an update."""
        offer(self.commands.delivery, update)

    def take(self) -> bool:
        """Read one frame, if there is one."""
        frame = self.commands.delivery.next_frame()
        if frame is None:
            return False
        self._check(json.loads(frame))
        return True

    def drain(self) -> None:
        """Read everything."""
        while self.take():
            pass

    def _check(self, frame: dict[str, Any]) -> None:
        assert frame["window"] >= self._window, "a window went back"
        assert frame["offset"] >= self._offset, "an offset went back"
        self._window, self._offset = frame["window"], frame["offset"]
        for item in frame["data"]:
            isin, place = item["isin"], (frame["window"], item["isin"])
            assert place not in self._shown, "an instrument twice in a window"
            assert item["seq"] >= self.seen.get(isin, 0), "an instrument went back"
            self._shown.add(place)
            self.seen[isin] = item["seq"]
        self._is_snapshot_due = not frame.get("final", not self._is_snapshot_due)
        if not self._is_snapshot_due:
            self.position = {"epoch": frame["epoch"], "offset": frame["offset"]}

    def positions(self) -> list[dict[str, Any]]:
        """Return where it may resume: by its last frame, and by a heartbeat now."""
        if self.position is None:
            return []
        heartbeat = self.commands.delivery.position()
        return [self.position, {"epoch": heartbeat.epoch, "offset": heartbeat.offset}]

    def is_up_to_date(self) -> bool:
        """Say whether it has seen the newest row of everything it asked for."""
        rows = {isin: self.board.get(isin) for isin in self.keys}
        newest = {i: json.loads(r.body)["seq"] for i, r in rows.items() if r}
        return all(self.seen.get(isin) == seq for isin, seq in newest.items())


ISINS = [SAMSUNG, HYNIX, NAVER]
PUBLISH = st.tuples(
    st.integers(0, 1),
    st.sampled_from([1, 1, 1, 3]),
    st.dictionaries(st.sampled_from(ISINS), st.sampled_from([0, 0, 0, 2])),
)
STEPS = st.lists(
    st.one_of(
        PUBLISH,
        PUBLISH,
        st.sampled_from(["take", "subscribe", "move", "restart"]),
    ),
    max_size=40,
)


@settings(max_examples=many(200))
@given(STEPS)
def test_however_two_jobs_interleave_every_client_is_calm_and_ends_with_the_newest(
    steps: list[Any],
) -> None:
    """Also the slow, the late, those with a longer interval and those who return."""
    stream, board = Stream(), Board()
    stream.load(board, W)
    fast, slow, seldom = Reader(board), Reader(board), Reader(board, 4_000)
    for reader in (fast, seldom):
        reader.subscribe(ISINS)
        reader.drain()
    for step in [*steps, (0, 99, {}), (0, 2, {})]:
        match step:
            case "take":
                slow.take()
            case "subscribe":
                slow.subscribe(ISINS[: len(slow.keys) + 1])
            case "move":
                check_resume(stream, slow)
            case "restart":
                board = Board()
                stream.load(board, max(stream.windows))
                fast, slow = Reader(board), Reader(board)
                seldom = Reader(board, 4_000)
                fast.subscribe(ISINS)
                fast.drain()
            case _:
                window = board.position.window or 0
                news = board.apply(stream.publish(*step))
                update = make_update(board, news)
                for reader in (fast, slow, seldom):
                    reader.offer(update)
                fast.drain()
                seldom.drain()
                check_resume(stream, fast)
                if (board.position.window or 0) > window:
                    assert board.complete == board.position
                    assert fast.is_up_to_date()
    slow.drain()
    assert all(reader.is_up_to_date() for reader in (fast, slow, seldom))


def check_resume(stream: Stream, reader: Reader) -> None:
    """Have a client resume where it was, on a gateway that has just been started."""
    for since in reader.positions():
        board = Board()
        stream.load(board, min(stream.windows))
        returned = Reader(board)
        returned.seen = dict(reader.seen)
        returned.subscribe(reader.keys, since)
        returned.drain()
        assert returned.is_up_to_date()
