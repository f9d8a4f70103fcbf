"""Bars that changed, as bytes: encoded once, framed once for who watches the same."""

import json

from gateway.protocol.messages import BarPosition
from gateway.protocol.prefixed_keys import BarKey
from gateway.stream.bars.bar_folder import row_of
from gateway.stream.bars.bar_update import (
    NO_BARS,
    BarKeySet,
    BarUpdate,
    bar_snapshot_frame,
    bars_frame,
)
from tests.gateway.asyncapi import check_message
from tests.gateway.bar_publisher import make_bar
from tests.gateway.samples import HYNIX, SAMSUNG
from tests.gateway.stream.bars.test_bar_delivery import ONE, Desk, desk, row

__all__ = ["desk"]

PLACE = BarPosition("b", 7)
ROWS = [
    row_of(interval, make_bar(isin, minute))
    for interval, isin, minute in (
        ("1m", SAMSUNG, 0),
        ("1m", HYNIX, 0),
        ("1m", SAMSUNG, 1),
        ("5m", HYNIX, 0),
    )
]


def key_set(*keys: tuple[str, str]) -> BarKeySet:
    """Return what watches intervals of instruments."""
    return BarKeySet(tuple(sorted(BarKey(*key) for key in keys)))


def test_a_key_set_wants_what_it_names() -> None:
    """An interval of all instruments takes its single instruments with it."""
    mixed = key_set(("1m", "*"), ("1m", SAMSUNG), ("5m", HYNIX))
    assert mixed.named == {BarKey("5m", HYNIX)}
    assert mixed.wants("1m", HYNIX)
    assert mixed.wants("5m", HYNIX)
    assert not mixed.wants("5m", SAMSUNG)
    assert not NO_BARS.wants("1m", SAMSUNG)


def test_each_gets_its_own_of_an_update() -> None:
    """Every bar once, in the order of the message within an instrument."""
    update = BarUpdate(PLACE, ROWS)
    both = key_set(("1m", SAMSUNG), ("5m", HYNIX))
    assert list(update.rows(both)) == [ROWS[0], ROWS[2], ROWS[3]]
    assert list(update.rows(key_set(("1m", "*")))) == ROWS[:3]
    assert update.touches(both)
    assert not update.touches(key_set(("1h", SAMSUNG)))
    assert not update.touches(NO_BARS)


def test_frames_are_as_documented() -> None:
    """With the position in each; a snapshot says whether it is the last piece."""
    bodies = [one.body for one in ROWS]
    plain = json.loads(bars_frame(PLACE, bodies))
    check_message(plain)
    assert (plain["epoch"], plain["sequence"], len(plain["bars"])) == ("b", 7, 4)
    piece = json.loads(bar_snapshot_frame(PLACE, bodies, final=False, resumed=True))
    check_message(piece)
    assert (piece["snapshot"], piece["final"], piece["resumed"]) == (True, False, True)
    empty = json.loads(bar_snapshot_frame(BarPosition(), (), final=True, resumed=False))
    check_message(empty)
    assert (empty["epoch"], empty["bars"]) == (None, [])


def test_who_watches_the_same_gets_the_same_bytes(desk: Desk) -> None:
    """A frame is built once for all who keep up."""
    first, second = desk.join(ONE), desk.join(ONE)
    desk.publish(row(trades=5))
    frame = first.next_frame()
    assert frame is not None
    assert frame is second.next_frame()
