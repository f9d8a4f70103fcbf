"""What clients of bars share: who watches what, and what is still to be read."""

from gateway.protocol.messages import BarPosition
from gateway.protocol.prefixed_keys import BarKey
from gateway.stream.bars.bar_delivery import BarDelivery, BarDesk
from gateway.stream.bars.bar_update import NO_BARS
from gateway.stream.counters import Counters
from tests.gateway.samples import HYNIX, SAMSUNG
from tests.gateway.stream.bars.test_bar_delivery import (
    ALL,
    ONE,
    WINDOW_MS,
    Desk,
    desk,
    frames,
    row,
    trades,
)

__all__ = ["desk"]


def test_nothing_is_wanted_while_nobody_watches() -> None:
    """A desk without clients has no work; of two alike the last one matters."""
    rig = Desk()
    assert not rig.desk.has_work
    first, second = rig.join(ONE), rig.join(ONE, BarKey("5m", HYNIX))
    assert len(rig.desk) == 2
    assert rig.desk.wants("1m", SAMSUNG)
    assert not rig.desk.wants("1m", HYNIX)
    first.close()
    assert rig.desk.wants("1m", SAMSUNG)
    second.close()
    assert not rig.desk.has_work
    assert not rig.desk.wants("1m", SAMSUNG)


def test_who_watches_all_watches_each() -> None:
    """Of this length of bars, and of no other."""
    rig = Desk()
    rig.join(ALL)
    assert rig.desk.wants("1m", HYNIX)
    assert not rig.desk.wants("5m", HYNIX)


def test_equal_keys_are_one_key_set() -> None:
    """In whatever order they were asked for; forgotten with who had them last."""
    rig = Desk()
    two = BarKey("1m", HYNIX)
    first, second = rig.join(ONE, two), rig.join(two, ONE)
    shared = first.key_set
    assert second.key_set is shared
    first.drop([two])
    assert first.key_set is not shared
    assert second.key_set is shared
    second.close()
    assert second.key_set is NO_BARS
    assert rig.join(ONE, two).key_set is not shared


def test_who_reads_bars_is_told_of_work() -> None:
    """When somebody begins to watch, and with every request."""
    calls: list[int] = []
    desk = BarDesk(Counters(), lambda: WINDOW_MS, lambda: 0)
    desk.on_work = lambda: calls.append(len(desk))
    rig = Desk()
    delivery = BarDelivery(desk, rig.wake)
    delivery.add([ONE], 1, None)
    assert calls[-1] == 1
    assert desk.has_work
    assert len(desk.requests) == 1


def test_requests_of_one_client_are_one(desk: Desk) -> None:
    """However often it subscribes before it is served."""
    delivery = BarDelivery(desk.desk, desk.wake)
    for isin in (SAMSUNG, HYNIX):
        delivery.add([BarKey("1m", isin)], 2, None)
    (request,) = desk.desk.requests.values()
    assert {key.isin for key in request.keys} == {SAMSUNG, HYNIX}
    desk.serve(row(), row(HYNIX))
    (frame,) = frames(delivery)
    assert frame["final"]
    assert len(frame["bars"]) == 2


def test_a_hole_has_everybody_read_anew(desk: Desk) -> None:
    """What is pending is forgotten: it may be older than what is read."""
    delivery = desk.join(ONE)
    desk.publish(row(trades=5))
    desk.desk.restart(BarPosition("b", 40))
    assert frames(delivery) == []
    desk.serve(row(trades=9))
    (frame,) = frames(delivery)
    assert (frame["sequence"], trades([frame])) == (40, [9])
