"""Clients of every kind, on real gateways."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from gateway.admission.bounds import Bounds
from loadtest.client_mix import Audience, parse_mix
from loadtest.clients.crowd import Crowd, CrowdLost, crowd
from loadtest.clients.targets import Target
from loadtest.judge.judging import Judgement
from tests.conftest import PATIENCE, eventually
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.servers import Gateway, running_gateway
from tests.loadtest.published import INSTRUMENTS, Market
from tests.ports import free_port

pytestmark = pytest.mark.redis

MIX = "watch:10,compact:5,market:5,slow:4,reconnecting:10,sse:6,polling:6,stalled:2"
CLIENTS = 48

RARE_MS = 3_000
"""Heartbeats where nobody may come back by itself: of those that are more frequent,
clients miss several while the machine is busy, and give up the line.
"""


@pytest.fixture
def market(client: redis.Redis) -> Market:
    market = Market(client)
    for _ in range(3):
        market.publish_window()
    return market


@contextmanager
def listening(
    gateway: Gateway,
    mix: str = MIX,
    clients: int = CLIENTS,
    token: str | None = None,
    keys: int = 7,
) -> Iterator[Crowd]:
    audience = Audience(
        clients,
        parse_mix(mix),
        keys=keys,
        poll_every_s=0.5,
        reconnect_every_s=1,
        slow_pause_s=0.7,
        stall_s=12,
    )
    with crowd([Target(gateway.host, gateway.port, token)], 2) as joining:
        joining.join(audience.members(INSTRUMENTS), within_s=0.5)
        yield joining


def judge(listeners: Crowd, market: Market, offset: int, from_ms: float) -> Judgement:
    assert listeners.settle(offset, within_s=20 * PATIENCE) == 0
    return listeners.judge(market.reference(), from_ms, time.time() * 1e3)


def bring_every_trouble(market: Market) -> None:
    """Publish a quiet window, lose a message, be away for some windows."""
    market.publish_window(0)
    market.publish_window(is_lost=True)
    market.publish_window(windows=4)


TROUBLES: dict[str, Callable[[Market], object]] = {
    "a quiet window, a lost message, an outage": bring_every_trouble,
    "two jobs": lambda market: market.publish_part(),
    "a hole that is too long to fill": lambda market: [
        market.publish_window(0.1, windows=40, is_lost=True) for _ in range(2)
    ],
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_healthy_stream_has_no_fault(
    trouble: str, market: Market, redis_url: str
) -> None:
    """Clients of every kind join in mid-run; whatever happens, nothing is wrong."""
    from_ms = time.time() * 1e3
    with (
        running_gateway(redis_url, heartbeat_ms=RARE_MS) as gateway,
        listening(gateway) as listeners,
    ):
        for number in range(12):
            market.publish_window()
            if number % 3 == 0:
                TROUBLES[trouble](market)
        assert listeners.wait_joined(10 * PATIENCE) == CLIENTS
        resumed = 0

        def has_come_back() -> bool:
            nonlocal resumed
            market.publish_window()
            resumed += listeners.ticks().seen.resumed
            return resumed > 0

        eventually(has_come_back)
        offset = market.publish_window()
        found = judge(listeners, market, offset, from_ms)
        listeners.leave()
        eventually(lambda: gateway.health()["clients"] == 0)
    assert found.faults == []
    assert found.fault_count == 0
    for kind, judged in found.kinds.items():
        tally = judged.tally
        assert (tally.faults, tally.refused, tally.closes) == (0, 0, {}), kind
        assert judged.unseen == 0 or kind == "stalled"
        assert tally.frames
        assert tally.bytes
        assert tally.items
        assert judged.lags_ms.keys() == judged.fanouts_ms.keys()
        assert any(judged.staleness_ms.values())
    assert found.kind("reconnecting").tally.resumed
    assert found.kind("polling").tally.requests
    assert sum(judged.clients for judged in found.kinds.values()) == CLIENTS


def test_a_token_is_shown_where_one_is_asked_for(
    market: Market, redis_url: str, tmp_path: Path
) -> None:
    key_file = tmp_path / "token.key"
    key_file.write_text(SECRET)
    from_ms = time.time() * 1e3
    with (
        running_gateway(
            redis_url, heartbeat_ms=300, token_key_file=key_file
        ) as gateway,
        listening(
            gateway, "watch:1,compact:1,sse:2,polling:2", 6, make_token()
        ) as listeners,
    ):
        assert listeners.wait_joined(10 * PATIENCE) == 6
        found = judge(listeners, market, market.publish_window(), from_ms)
    assert found.faults == []
    assert sum(judged.tally.refused for judged in found.kinds.values()) == 0


def test_clients_come_back_when_the_gateway_does(
    market: Market, redis_url: str
) -> None:
    """They resume, and miss nothing; the closes are counted."""
    port, from_ms = free_port(), time.time() * 1e3
    with (
        running_gateway(redis_url, port=port, heartbeat_ms=RARE_MS) as gateway,
        listening(gateway, "watch:4,compact:2,sse:2", 8) as listeners,
    ):
        assert listeners.wait_joined(10 * PATIENCE) == 8
        market.publish_window()
        gateway.stop()
        eventually(lambda: not listeners.ticks().connected)
        market.publish_window()
        with running_gateway(redis_url, port=port, heartbeat_ms=RARE_MS):
            eventually(lambda: listeners.ticks().connected.total() == 8, 20)
            offset = market.publish_window()
            found = judge(listeners, market, offset, from_ms)
    assert found.faults == []
    tallies = [judged.tally for judged in found.kinds.values()]
    assert sum(tally.resumed for tally in tallies) == 8
    assert sum(tally.closes.total() for tally in tallies) == 8
    assert found.kind("watch").tally.closes == {"1012": 4}


def test_a_difference_to_what_was_published_is_found(
    market: Market, redis_url: str
) -> None:
    """By every kind, whatever it is: a price, a trade, a row that never came."""
    with (
        running_gateway(redis_url, heartbeat_ms=RARE_MS) as gateway,
        listening(
            gateway, "market:3,sse:3,polling:3,compact:3", 12, keys=60
        ) as listeners,
    ):
        assert listeners.wait_joined(10 * PATIENCE) == 12
        offset = market.publish_window(1)
        assert listeners.settle(offset, within_s=20 * PATIENCE) == 0
        truth = market.instruments
        isin = INSTRUMENTS[0]
        newest = truth[isin][-1]
        assert newest.amounts is not None
        lies = {
            "price": newest._replace(price="7"),
            "seq": newest._replace(seq=newest.seq + 1),
            "trades": newest._replace(trades=newest.trades + 1),
        }
        for lie in lies.values():
            market.instruments = {**truth, isin: [*truth[isin][:-1], lie]}
            found = listeners.judge(market.reference(), 0, 1e15)
            blamed = {kind: j.tally.faults for kind, j in found.kinds.items()}
            assert blamed.pop("market") == blamed.pop("compact") == 3
            assert set(blamed.values()) <= {0, 1, 2, 3}
            assert isin in found.faults[0]
        # Of sums it is told once by each process of clients.
        amounts = newest.amounts._replace(low=1)
        lie = newest._replace(amounts=amounts)
        market.instruments = {**truth, isin: [*truth[isin][:-1], lie]}
        found = listeners.judge(market.reference(), 0, 1e15)
        assert len(found.faults) == found.fault_count == 2
        assert all(text.startswith(f"{isin} of seq ") for text in found.faults)
        market.instruments = truth
        assert listeners.judge(market.reference(), 0, 1e15).faults == []


@pytest.mark.slow
def test_stalled_clients_are_closed_and_come_back(
    market: Market, redis_url: str
) -> None:
    """To stall again; the others do not notice."""
    with (
        running_gateway(redis_url, Bounds(slow_close_s=1), heartbeat_ms=100) as gateway,
        listening(gateway, "stalled:3,watch:1", 4) as listeners,
    ):
        assert listeners.wait_joined(10 * PATIENCE) == 4
        stalled = 0

        def is_back() -> bool:
            nonlocal stalled
            market.publish_window(1)
            stalled += listeners.ticks().seen.closes.total()
            return stalled >= 1

        eventually(is_back, 60)


def test_refusals_are_counted_and_tried_again(market: Market, redis_url: str) -> None:
    with (
        running_gateway(redis_url, max_clients=2) as gateway,
        listening(gateway, "watch:3,sse:3", 6) as listeners,
    ):
        refused = 0

        def is_refused_often() -> bool:
            nonlocal refused
            seen = listeners.ticks().seen
            refused += seen.refused
            assert not seen.closes
            return refused > 8

        eventually(is_refused_often, 20)
        assert listeners.wait_joined(0) == 2


def test_a_process_that_is_gone_is_an_error(redis_url: str) -> None:
    with crowd([Target("127.0.0.1", 1)], 1) as listeners:
        listeners.join(Audience(1).members(INSTRUMENTS), 0)
        eventually(lambda: listeners.ticks().seen.refused)
        os.kill(listeners.pids[0], signal.SIGKILL)
        with pytest.raises(CrowdLost, match="has ended"):
            eventually(lambda: listeners.ticks() and False)
