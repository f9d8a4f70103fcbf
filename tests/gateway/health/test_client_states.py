"""Clients in the operators' order: states, and the slowest first."""

import json

import pytest

from gateway.health.client_census import ClientCensus, take_census
from gateway.health.client_states import (
    STATES,
    row_of,
    state_of,
)
from gateway.settings import GatewaySettings
from gateway.stream.counters import Counters
from gateway.stream.hub import Hub
from tests.gateway.listener import Listener
from tests.gateway.samples import (
    SAMSUNG,
    make_board,
    make_row,
    make_snapshot,
    make_update,
)


class Crowd:
    """Clients of one hub; what they watch trades once more with each update."""

    def __init__(self) -> None:
        self.hub = Hub(make_board(make_row()), GatewaySettings(), Counters())

    def listener(
        self, *keys: str, unsent_bytes: int = 0, stuck_s: float = 0
    ) -> Listener:
        """Add a client that was sent everything it asked for."""
        listener = Listener(self.hub)
        if keys:
            listener.subscribe(*keys)
        listener.unsent_bytes, listener.stuck_for_s = unsent_bytes, stuck_s
        return listener

    def trade(self) -> None:
        """Offer everybody an update."""
        board = self.hub.board
        news = board.apply(make_snapshot(2, make_row(seq=2)))
        first, *_ = self.hub.clients()
        first.delivery.newest.put(make_update(board, news))


async def test_the_state_of_a_client() -> None:
    """What waits for it makes it behind; a second without a byte taken, stuck."""
    for keys, unsent_bytes, stuck_s, is_trading, expected in [
        ((), 0, 0, False, "new"),
        ((SAMSUNG,), 0, 0, False, "live"),
        ((SAMSUNG,), 0, 0, True, "behind"),
        ((SAMSUNG,), 1, 0.9, False, "behind"),
        ((SAMSUNG,), 1, 1.0, False, "stuck"),
        ((), 0, 1.0, False, "stuck"),
    ]:
        crowd = Crowd()
        client = crowd.listener(
            *keys, unsent_bytes=unsent_bytes, stuck_s=stuck_s
        ).client
        if is_trading:
            crowd.trade()
        assert state_of(client, 0.0) == expected


async def test_who_asked_for_fewer_updates_is_not_behind() -> None:
    """What may wait is pending, not late."""
    crowd = Crowd()
    client = crowd.listener().client
    wish = {"op": "subscribe", "keys": [SAMSUNG], "min_interval_ms": 60_000}
    client.commands.answer(json.dumps(wish), 0.0, 0)
    while client.next_frame() is not None:
        pass
    crowd.trade()
    assert (client.delivery.pending, state_of(client, 0.0)) == (1, "live")


async def test_the_slowest_come_first() -> None:
    """Stuck before behind, then by what waits for them, then by age."""
    crowd = Crowd()
    live = crowd.listener(SAMSUNG).client
    new = crowd.listener().client
    little = crowd.listener(SAMSUNG, unsent_bytes=10).client
    much = crowd.listener(SAMSUNG, unsent_bytes=20).client
    stuck = crowd.listener(SAMSUNG, unsent_bytes=5, stuck_s=9).client
    census = await take_census(crowd.hub.clients(), 9)
    assert list(census.slowest()) == [stuck, much, little, live, new]
    assert census.states == {"new": 1, "live": 1, "behind": 2, "stuck": 1}
    some = await take_census(crowd.hub.clients(), 2)
    assert list(some.slowest()) == [stuck, much]
    behind = await take_census(crowd.hub.clients(), 9, "behind")
    assert list(behind.slowest()) == [much, little]
    assert behind.states == census.states


def test_a_census_of_nobody_has_every_state() -> None:
    """A state that nobody is in is 0, not missing."""
    assert ClientCensus().states == dict.fromkeys(STATES, 0)


async def test_a_row_says_who_where_and_since_when() -> None:
    """Times are times of day."""
    crowd = Crowd()
    client = crowd.listener("*").client
    client.sent(1, 100, 60.0)
    row = row_of(client, 100.0, 1_000_000)
    assert (row.id, row.kind, row.address) == (client.id, "websocket", "")
    assert (row.keys, row.everything, row.pending) == (1, True, 0)
    assert (row.connected_ms, row.sent_ms) == (900_000, 960_000)


async def test_many_clients_are_looked_at_in_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The event loop gets its turn in between, and nobody is left out."""
    monkeypatch.setattr("gateway.health.client_census.SLICE_S", 0.0)
    crowd = Crowd()
    for _ in range(100):
        crowd.listener()
    assert (await take_census(crowd.hub.clients())).states["new"] == 100
