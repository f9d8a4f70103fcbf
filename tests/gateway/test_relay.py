"""Gateways that follow a gateway: the same stream, the same positions."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from tests.clients.patience import soon
from tests.conftest import eventually
from tests.gateway.chained import A, B, Market
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG, make_row
from tests.gateway.servers import Gateway, Stream, running_gateway
from tests.gateway.test_statuses import Exchange
from tests.ports import free_port
from throttle.testing.driver import ThrottleDriver
from tickthrottle_client import TickClient, Verdict

pytestmark = pytest.mark.redis

NOWHERE = "redis://127.0.0.1:1/0"


@contextmanager
def relay_of(upstream: Gateway, **settings: Any) -> Iterator[Gateway]:
    """Run a gateway that follows another and cannot reach any Redis."""
    follow = f"http://127.0.0.1:{upstream.port}"
    with running_gateway(NOWHERE, follow=follow, **settings) as relay:
        yield relay


def codes(gateway: Gateway) -> list[str]:
    """Return why a gateway is not ready."""
    return [reason["code"] for reason in gateway.health()["reasons"]]


@pytest.fixture
def tree(gateway: Gateway) -> Iterator[list[Gateway]]:
    """A gateway, a relay of it, and a relay of that."""
    with relay_of(gateway) as middle, relay_of(middle) as leaf:
        yield [gateway, middle, leaf]


@pytest.fixture
def streams(tree: list[Gateway]) -> Iterator[list[Stream]]:
    """A client of everything at each level, which has its snapshot."""
    with ExitStack() as stack:
        streams = [stack.enter_context(level.stream()) for level in tree]
        for stream in streams:
            stream.subscribe("*")
        yield streams


def test_a_tree_of_three_levels_has_one_stream(
    streams: list[Stream], publisher: Publisher
) -> None:
    """Rows, sums and offsets are the same bytes at each level."""
    publisher.publish(make_row(price="0.30", trades=5), make_row(HYNIX))
    frames = [stream.take("update") for stream in streams]
    assert frames[0] == frames[1] == frames[2]
    assert frames[0]["offset"] == 2


def test_a_client_goes_on_at_another_level(
    tree: list[Gateway], publisher: Publisher
) -> None:
    """A position of the upstream resumes at a relay, and the other way round."""
    publisher.publish(make_row(), make_row(HYNIX))
    publisher.publish(make_row(seq=2))
    for level in tree:
        level.wait_until(3)
        with level.stream() as stream:
            since = {"epoch": publisher.epoch, "offset": 2}
            items = stream.subscribe("*", since=since)
            assert [item["isin"] for item in items] == [SAMSUNG]


def test_a_relay_that_lost_its_line_misses_nothing(
    gateway: Gateway, publisher: Publisher
) -> None:
    """Windows that were published meanwhile come with all of their trades."""
    with relay_of(gateway) as relay, relay.stream() as stream:
        stream.subscribe("*")
        publisher.publish(make_row())
        assert stream.take("update")["offset"] == 2
        # As a line that breaks: the windows behind it never come.
        (line,) = gateway.app._relay.kept.on_news  # type: ignore[union-attr]
        line.__self__._stream.transport.abort()  # type: ignore[attr-defined]
        publisher.publish(make_row(seq=2, trades=3))
        publisher.publish(make_row(HYNIX, trades=4))
        traded: dict[str, int] = {}
        while len(traded) < 2:
            update = stream.take("update")
            traded |= {item["isin"]: item["trades"] for item in update["data"]}
        assert traded == {SAMSUNG: 3, HYNIX: 4}
        assert relay.count("reloads") == 1


def test_a_relay_starts_from_the_state_and_knows_the_table(
    gateway: Gateway, publisher: Publisher
) -> None:
    """Whoever starts late has all values, codes, markets and groups."""
    publisher.list_instruments()
    publisher.publish(make_row(), make_row(NAVER))
    gateway.wait_until(2)
    eventually(lambda: len(gateway.hub.instruments))
    with relay_of(gateway) as relay, relay.stream() as stream:
        assert len(stream.subscribe("*")) == 2
        eventually(lambda: len(relay.hub.instruments))
        assert relay.hub.instruments.digest == gateway.hub.instruments.digest
        path = "/v1/quotes?codes=005930"
        assert relay.get(path) == gateway.get(path)


def test_parts_of_a_window_are_held_back_at_each_level(
    streams: list[Stream], publisher: Publisher
) -> None:
    """Where several jobs publish, an instrument comes once per window there, too."""
    publisher.publish(make_row())
    publisher.publish_part(make_row(seq=2), make_row(HYNIX))
    publisher.publish()
    for stream in streams:
        shown, offset = list[tuple[str, int]](), 0
        while offset < 4:
            update = stream.take("update")
            offset, window = update["offset"], update["window"]
            shown += [(item["isin"], window) for item in update["data"]]
        # A level that is late merges: it is told less often, and never twice.
        assert len(set(shown)) == len(shown)
        assert {isin for isin, _ in shown} == {SAMSUNG, HYNIX}


def test_a_new_epoch_begins_anew_at_each_level(
    tree: list[Gateway], publisher: Publisher, client: redis.Redis
) -> None:
    """Nothing of the epoch before stays."""
    publisher.publish(make_row())
    tree[-1].wait_until(2)
    client.flushdb()
    after = Publisher(client, epoch="e2")
    after.publish(make_row(HYNIX))
    after.publish()
    for level in tree:
        eventually(lambda level=level: level.health()["epoch"] == "e2")
        with level.stream() as stream:
            assert [i["isin"] for i in stream.subscribe("*")] == [HYNIX]


def test_what_needs_redis_is_answered_with_where_it_is(tree: list[Gateway]) -> None:
    """Bars, windows and trades name the upstream; nobody waits for them."""
    leaf, middle = tree[2], tree[1]
    for path in (f"/v1/bars/{SAMSUNG}", "/v1/windows", "/v1/movers"):
        status, body = leaf.get(path)
        problem = json.loads(body)
        assert (status, problem["code"]) == (404, "not_served"), path
        assert str(middle.port) in problem["detail"]
    with leaf.stream() as stream:
        stream.say(op="subscribe", keys=["bars:1m:*", f"trades:{SAMSUNG}"])
        rejected = stream.take("ack")["rejected"]
        assert [one["code"] for one in rejected] == ["not_served"] * 2


def test_a_relay_says_what_it_follows(tree: list[Gateway]) -> None:
    """Health has the upstream, the levels above and the windows that are missing."""
    for levels, level in enumerate(tree[1:], 1):
        upstream = level.health()["upstream"]
        assert (upstream["levels"], upstream["behind"]) == (levels, 0)
        status, body = level.operators.get("/v1/pipeline")
        found = {
            finding["code"] for finding in json.loads(body)["diagnosis"]["findings"]
        }
        assert (status, found & {"job_dead", "redis_down", "log_away"}) == (200, set())
    assert tree[0].health().get("upstream") is None


def test_a_relay_whose_upstream_has_gone_says_so(
    gateway: Gateway, publisher: Publisher
) -> None:
    """It is not ready, and serves what it has."""
    publisher.publish(make_row())
    gateway.wait_until(2)
    with relay_of(gateway) as relay:
        relay.wait_until(2)
        gateway.stop()
        eventually(lambda: "upstream_down" in codes(relay))
        with relay.stream() as stream:
            assert len(stream.subscribe("*")) == 1


def test_a_circle_of_relays_is_refused() -> None:
    """Two that follow each other, and one that follows itself, say so and stay."""
    one, other, alone = free_port(), free_port(), free_port()
    with ExitStack() as stack:
        circle = []
        for port, followed in ((one, other), (other, one), (alone, alone)):
            follow = f"http://127.0.0.1:{followed}"
            options = {"follow": follow, "port": port, "operators_port": 0}
            circle.append(stack.enter_context(running_gateway(NOWHERE, **options)))
        eventually(lambda: "upstream_down" in codes(circle[0]) + codes(circle[1]))
        eventually(lambda: "upstream_down" in codes(circle[2]))
        eventually(lambda: all(map(codes, circle)))
        assert all(g.get("/health/live")[0] == 200 for g in circle)


@pytest.mark.parametrize(
    "said",
    [
        "hello",
        '{"ask":"state"}',
        '{"ask":"windows","id":1,"first":0,"last":1}',
        '{"ask":"windows","id":1,"first":1,"last":17}',
        '{"ask":"bars","id":1,"first":1,"last":1}',
    ],
)
def test_what_is_no_question_ends_the_line(gateway: Gateway, said: str) -> None:
    """With a code and a reason; the gateway goes on."""
    url = f"ws://127.0.0.1:{gateway.port}/v1/relay"
    with connect(url, subprotocols=[Subprotocol("relay.v1")]) as line:
        line.send(said)
        with suppress(ConnectionClosed):
            while True:
                line.recv(timeout=10)
        assert line.protocol.close_code == 1008


def test_who_speaks_another_protocol_is_refused(gateway: Gateway) -> None:
    """The answer names the one that is spoken."""
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://127.0.0.1:{gateway.port}/v1/relay").close()
    assert b"relay.v1" in refused.value.response.body


@pytest.mark.parametrize(
    ("tick", "is_let_in"),
    [({}, True), ({"keys": [SAMSUNG]}, False), ({"min_interval_ms": 4000}, False)],
)
def test_a_relay_shows_a_token_that_allows_everything(
    publisher: Publisher,
    redis_url: str,
    tmp_path: Path,
    tick: dict[str, Any],
    is_let_in: bool,
) -> None:
    """Where tokens are asked for, one of less does not do, and the log says why."""
    publisher.publish(make_row())
    key_file, token_file = tmp_path / "key", tmp_path / "token"
    key_file.write_text(SECRET)
    token_file.write_text(make_token(tick=tick))
    with (
        running_gateway(redis_url, token_key_file=key_file) as gateway,
        relay_of(gateway, follow_token_file=token_file) as relay,
    ):
        if is_let_in:
            relay.wait_until(1)
        else:
            relay.wait_for("connects_failed", 2)
            assert relay.health()["epoch"] is None


def test_statuses_pass_through(tree: list[Gateway], client: redis.Redis) -> None:
    """A halt reaches a client of the leaf as it does one of the root; so after a break.

    Who subscribes later has it at once.
    """
    exchange = Exchange(client)
    with tree[0].stream() as first, tree[2].stream() as last:
        for stream in (first, last):
            stream.subscribe(SAMSUNG)
        for status in ("halted", "trading"):
            exchange.say(status)
            assert first.take("statuses") == last.take("statuses")
    with relay_of(tree[2]) as late, late.stream() as stream:
        stream.say(op="subscribe", keys=[SAMSUNG])
        stream.take("ack")
        (entry,) = stream.take("statuses")["entries"]
        assert (entry["status"], entry["number"]) == ("trading", 2)


async def test_a_client_behind_relays_verifies_the_chain(redis_url: str) -> None:
    """Links, totals and digests hold two levels below the gateway with Redis."""
    seen: list[Verdict] = []
    with (
        ThrottleDriver(redis_url=redis_url) as driver,
        running_gateway(redis_url) as gateway,
        relay_of(gateway) as middle,
        relay_of(middle, heartbeat_ms=200) as leaf,
    ):
        market = Market(driver, leaf)
        market.trade(A, B)
        async with TickClient(market.url, verify=True, on_chain=seen.append) as ticks:
            ticks.subscribe("*", lambda _: None)
            await soon(lambda: bool(seen))
            for isins in ((A, B), (B,), (), (A,)):
                await asyncio.to_thread(market.trade, *isins)
                offset = market.windows
                await soon(lambda offset=offset: seen[-1].offset >= offset)
    assert seen[0].state == "begins"
    assert {one.state for one in seen[1:]} == {"holds"}
    assert seen[-1].has_rows
