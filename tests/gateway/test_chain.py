"""The chain of windows: a gateway, its clients, and what lies between them."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
import redis
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

from tests.clients.patience import soon
from tests.gateway.chained import A, B, Market, W
from tests.gateway.servers import running_gateway
from throttle.testing.driver import ThrottleDriver
from tickthrottle_client import TickClient, Verdict

pytestmark = pytest.mark.redis


@pytest.fixture
def market(redis_url: str) -> Iterator[Market]:
    """A market that has published two windows."""
    with (
        ThrottleDriver(redis_url=redis_url) as driver,
        running_gateway(redis_url, heartbeat_ms=200) as gateway,
    ):
        made = Market(driver, gateway)
        made.trade(A, B)
        made.trade(A)
        yield made


async def until_offset(seen: list[Verdict], offset: int) -> None:
    """Wait until something was said up to an offset."""
    await soon(lambda: bool(seen) and seen[-1].offset >= offset)


async def trade(market: Market, seen: list[Verdict], *isins: str, **more: Any) -> None:
    """Publish a window and wait until a client has said what it holds of it."""
    await asyncio.to_thread(market.trade, *isins, **more)
    await until_offset(seen, market.windows)


async def test_a_client_of_everything_checks_rows_totals_and_hashes(
    market: Market,
) -> None:
    """Of trades, late ones, several, none; the first window tells what is whole."""
    seen: list[Verdict] = []
    async with TickClient(market.url, verify=True, on_chain=seen.append) as ticks:
        ticks.subscribe("*", lambda _: None)
        await until_offset(seen, 2)
        for isins in ((A, B), (B, A), (A,), (), (B,)):
            await trade(market, seen, *isins)
        await trade(market, seen, A, late=True)
    assert [one.state for one in seen] == ["begins", *["holds"] * 6]
    assert [one.offset for one in seen] == [2, 3, 4, 5, 6, 7, 8]
    assert [one.has_rows for one in seen] == [
        False,
        False,
        True,
        True,
        False,
        True,
        True,
    ]


async def test_a_client_of_some_keys_checks_hashes_and_totals(market: Market) -> None:
    """Also of windows that bring it nothing."""
    seen: list[Verdict] = []
    async with TickClient(market.url, verify=True, on_chain=seen.append) as ticks:
        ticks.subscribe(B, lambda _: None)
        await until_offset(seen, 2)
        for isins in ((A, B), (A,), (B,)):
            await trade(market, seen, *isins)
    assert {one.state for one in seen[1:]} == {"holds"}
    assert not any(one.has_rows for one in seen)


async def test_who_does_not_ask_gets_no_byte_more(market: Market) -> None:
    """Nothing of it is in any message."""
    messages: list[dict[str, Any]] = []
    async with TickClient(market.url, on_message=messages.append) as ticks:
        ticks.subscribe("*", lambda _: None)
        await soon(lambda: messages[-1:] and messages[-1].get("offset") == 2)
        await asyncio.to_thread(market.trade, A)
        await soon(lambda: messages[-1].get("offset") == 3)
    assert not any("chain" in message for message in messages)


async def test_fields_and_verify_do_not_go_together() -> None:
    """The order of an item's fields is a part of what is hashed."""
    with pytest.raises(ValueError, match=r"fields: verify=True needs all of them"):
        TickClient("ws://127.0.0.1:1", verify=True, fields=["price"])


class Line:
    """Between a client and a gateway: frames of the latter can be altered."""

    def __init__(self, url: str) -> None:
        self._upstream = url
        self.alter: Callable[[str], str] = lambda text: text
        self._links: set[ServerConnection] = set()

    async def __aenter__(self) -> "Line":
        self._server = await serve(self._link, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"ws://127.0.0.1:{port}/v1/stream"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def cut(self) -> None:
        """End each connection."""
        for link in [*self._links]:
            await link.close(1012)

    async def _link(self, near: ServerConnection) -> None:
        self._links.add(near)
        async with connect(self._upstream, compression=None, proxy=None) as far:

            async def up() -> None:
                async for message in near:
                    await far.send(message)

            speaking = asyncio.create_task(up())
            async for message in far:
                await near.send(self.alter(str(message)))
            speaking.cancel()
            with suppress(asyncio.CancelledError):
                await speaking
        self._links.discard(near)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"side":"B"', '"side":"S"', "its rows are not those that were published"),
        ('"trades":1', '"trades":2', "its rows come to"),
        ('"window":17', '"window":18', "its link"),
        (',"data":[{', ',"data":[],"x":[{', "its rows come to 0 0 0"),
        (" 1 1 5.5 ", " 1 1 5.6 ", "its links do not give its hash"),
    ],
)
async def test_a_frame_that_is_altered_is_named(
    market: Market, old: str, new: str, says: str
) -> None:
    """Rows, their sums, the window, rows left out, and the books' totals."""
    seen: list[Verdict] = []

    def alter(text: str) -> str:
        is_update = text.startswith('{"type":"update"') and '"offset":5' in text
        return text.replace(old, new, 1) if is_update else text

    async with (
        Line(market.url) as line,
        TickClient(line.url, verify=True, on_chain=seen.append) as ticks,
    ):
        line.alter = alter
        ticks.subscribe("*", lambda _: None)
        await until_offset(seen, 2)
        for _ in range(3):
            await trade(market, seen, A)
    assert [one.state for one in seen] == ["begins", "holds", "holds", "broken"]
    assert says in seen[-1].reason
    assert seen[-1].offset == 5


async def test_who_comes_back_goes_on_from_where_it_was(market: Market) -> None:
    """Windows that it has missed are checked by their links."""
    seen: list[Verdict] = []
    async with (
        Line(market.url) as line,
        TickClient(line.url, verify=True, on_chain=seen.append) as ticks,
    ):
        ticks.subscribe("*", lambda _: None)
        await until_offset(seen, 2)
        await trade(market, seen, A)
        await line.cut()
        for _ in range(3):
            await asyncio.to_thread(market.trade, A, B)
        await until_offset(seen, 6)
        for _ in range(2):
            await trade(market, seen, B)
    assert [one.state for one in seen[:2]] == ["begins", "holds"]
    assert {one.state for one in seen[1:]} == {"holds"}
    assert (seen[-1].offset, seen[-1].has_rows) == (8, True)
    assert all(one.offset == two.after for one, two in pairwise(seen))


async def test_merged_windows_are_checked_together(market: Market) -> None:
    """A client that takes fewer updates: the sums of all, and each link."""
    seen: list[Verdict] = []
    options: dict[str, Any] = {"verify": True, "min_interval_ms": 2 * W}
    async with TickClient(market.url, on_chain=seen.append, **options) as ticks:
        ticks.subscribe("*", lambda _: None)
        await until_offset(seen, 2)
        for _ in range(8):
            await asyncio.to_thread(market.trade, A, B)
        await until_offset(seen, 9)
    assert {one.state for one in seen[1:]} == {"holds"}


async def test_a_new_epoch_begins_a_new_chain(
    market: Market, client: redis.Redis
) -> None:
    """The client says so; the audit of the log says what it goes on from."""
    seen: list[Verdict] = []
    async with TickClient(market.url, verify=True, on_chain=seen.append) as ticks:
        ticks.subscribe("*", lambda _: None)
        await until_offset(seen, 2)
        client.hset("tt:meta", "server", "other")
        await asyncio.to_thread(market.driver.restart_job)
        await asyncio.to_thread(market.trade, A)
        await soon(lambda: seen[-1].epoch != seen[0].epoch)
        await trade(market, seen, A)
        await trade(market, seen, A)
    assert next(one.state for one in seen if one.epoch != seen[0].epoch) == "begins"
    assert seen[-1].state == "holds"
