"""What one client of bars is due, and when."""

import json
from typing import Any

import pytest

from gateway.protocol.messages import BarPosition
from gateway.protocol.prefixed_keys import BarKey
from gateway.stream.bars import bar_delivery
from gateway.stream.bars.bar_delivery import BARS_A_FRAME, BarDelivery, BarDesk
from gateway.stream.bars.bar_folder import row_of
from gateway.stream.bars.bar_update import BarRow, BarUpdate
from gateway.stream.counters import Counters
from tests.gateway.bar_publisher import make_bar
from tests.gateway.samples import HYNIX, SAMSUNG, make_isins

ONE = BarKey("1m", SAMSUNG)
ALL = BarKey("1m", "*")
WINDOW_MS = 2_000


class Desk:
    """A desk, its clock, and clients of it."""

    def __init__(self) -> None:
        self.desk = BarDesk(Counters(), lambda: WINDOW_MS, lambda: 0)
        self.desk.position = BarPosition("b", 1)
        self.now_ms = 0
        self.woken = 0

    def wake(self) -> None:
        """Count it: this is the sender of every client."""
        self.woken += 1

    def join(self, *keys: BarKey, bars: tuple[BarRow, ...] = ()) -> BarDelivery:
        """Return a client that has had its snapshot."""
        delivery = BarDelivery(self.desk, self.wake)
        delivery.add(keys, 1, None)
        self.serve(*bars)
        frames(delivery)
        return delivery

    def serve(self, *rows: BarRow, is_resumed: bool = False) -> None:
        """Answer every request with these bars."""
        for watcher in tuple(self.desk.requests):
            del self.desk.requests[watcher]
            place = self.desk.position
            watcher.take_snapshot(rows, place, is_resumed=is_resumed)

    def publish(self, *rows: BarRow, window: int = 1) -> None:
        """Publish a message so many windows later."""
        self.now_ms += window * WINDOW_MS
        place = self.desk.position
        place = BarPosition(place.epoch, place.sequence + 1)
        self.desk.publish(BarUpdate(place, rows), self.now_ms)


@pytest.fixture
def desk() -> Desk:
    """A desk without clients."""
    return Desk()


def row(isin: str = SAMSUNG, minute: int = 0, trades: int = 4) -> BarRow:
    """Return a state of a bar; the more trades, the newer."""
    return row_of("1m", make_bar(isin, minute, trades=trades))


def frames(delivery: BarDelivery) -> list[dict[str, Any]]:
    """Return everything the client is due now."""
    found = []
    while (frame := delivery.next_frame()) is not None:
        found.append(json.loads(frame))
    return found


def trades(found: list[dict[str, Any]]) -> list[int]:
    """Return how many trades each bar has, in the order of frames."""
    return [bar["trades"] for frame in found for bar in frame["bars"]]


def test_a_bar_comes_once_in_a_window(desk: Desk) -> None:
    """What comes within it is merged, and sent when the window is over."""
    delivery = desk.join(ONE)
    desk.publish(row(trades=5))
    assert trades(frames(delivery)) == [5]
    desk.publish(row(trades=6), window=0)
    desk.publish(row(trades=7), window=0)
    assert frames(delivery) == []
    desk.desk.flush(desk.now_ms + WINDOW_MS)
    assert trades(frames(delivery)) == [7]


def test_an_interval_that_was_granted_is_kept(desk: Desk) -> None:
    """A client that asked for fewer updates gets fewer bars, the newest ones."""
    delivery = desk.join(ONE)
    delivery.interval_ms = 3 * WINDOW_MS
    for number in range(5, 11):
        desk.publish(row(trades=number))
    got = trades(frames(delivery))
    assert got == [10]
    desk.publish(row(trades=11))
    assert frames(delivery) == []


def test_a_slow_client_gets_the_newest_and_misses_no_bar(desk: Desk) -> None:
    """Each bar once, in its newest state."""
    delivery = desk.join(ONE)
    for minute in range(3):
        desk.publish(row(minute=minute, trades=5))
        desk.publish(row(minute=minute, trades=6))
    assert trades(frames(delivery)) == [6, 6, 6]
    assert delivery.position == desk.desk.position


def test_an_older_state_never_comes_after_a_newer(desk: Desk) -> None:
    """Not even where a snapshot was read behind what it is followed by."""
    delivery = BarDelivery(desk.desk, desk.wake)
    delivery.add([ONE], 1, None)
    desk.publish(row(trades=5))
    desk.publish(row(trades=6))
    # Nothing goes out before the snapshot.
    assert frames(delivery) == []
    desk.serve(row(trades=6))
    desk.desk.flush(desk.now_ms + WINDOW_MS)
    assert trades(frames(delivery)) == [6]


def test_too_many_bars_become_a_snapshot(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for a client has a bound, and the client is told."""
    monkeypatch.setattr(bar_delivery, "MOST_PENDING", 5)
    delivery = desk.join(ALL)
    for minute in range(8):
        desk.publish(row(minute=minute))
    assert delivery.pending == 0 or delivery.pending <= 5
    assert desk.desk.requests
    assert desk.desk.counters.bar_snapshots_restarted == 1
    desk.serve(row(minute=7))
    (frame,) = frames(delivery)
    assert (frame["snapshot"], frame["resumed"]) == (True, False)


def test_a_long_snapshot_comes_in_pieces(desk: Desk) -> None:
    """The last one says so."""
    delivery = BarDelivery(desk.desk, desk.wake)
    delivery.add([ALL], 1, None)
    desk.serve(*[row(isin) for isin in make_isins(BARS_A_FRAME + 1)])
    found = frames(delivery)
    assert [len(frame["bars"]) for frame in found] == [BARS_A_FRAME, 1]
    assert [frame["final"] for frame in found] == [False, True]


def test_what_is_dropped_is_not_sent(desk: Desk) -> None:
    """And nobody reads for it any more."""
    delivery = desk.join(ONE, BarKey("1m", HYNIX))
    desk.publish(row(), row(HYNIX))
    delivery.drop([ONE])
    (frame,) = frames(delivery)
    assert [bar["isin"] for bar in frame["bars"]] == [HYNIX]
    delivery.close()
    assert not len(desk.desk)
    assert not desk.desk.wants("1m", HYNIX)
    desk.publish(row(HYNIX, trades=9))
    assert frames(delivery) == []


def test_without_a_snapshot_only_changes_come(desk: Desk) -> None:
    """A client may ask for that."""
    delivery = BarDelivery(desk.desk, desk.wake)
    delivery.add([ONE], 0, None)
    assert not desk.desk.requests
    desk.publish(row(trades=5))
    assert trades(frames(delivery)) == [5]
