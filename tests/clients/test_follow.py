"""Items as they come, in an ``async for``, in a plain ``for``, in an async callback."""

import asyncio
import threading
from contextlib import aclosing
from decimal import Decimal
from typing import Any

import pytest

from tests.clients.board import Board, address
from tests.clients.patience import soon
from tests.conftest import eventually
from tests.gateway.bar_publisher import BarPublisher, make_bar
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG, make_row
from tests.gateway.servers import running_gateway
from tests.ports import free_port
from throttle.contract.trade_order import REVISION_CHARS, as_shown
from tickthrottle_client import (
    Bar,
    BlockingTickClient,
    Item,
    TickClient,
    TickError,
    traded,
)

pytestmark = pytest.mark.redis


async def test_items_come_as_they_change(board: Board) -> None:
    """First what is known; an item says the window that it came in."""
    board.publish(make_row(SAMSUNG, "1"))
    prices: list[Decimal] = []
    async with board.gateway(), TickClient(board.url) as ticks:
        async with aclosing(ticks.follow(SAMSUNG, HYNIX)) as items:
            async for item in items:
                prices.append(item["price"])
                assert ("window" in item) == (len(prices) > 1)
                if len(prices) == 3:
                    assert item["window"] == ticks.last_window
                    break
                board.publish(make_row(HYNIX, str(len(prices) + 1), seq=len(prices)))
        # Who breaks off follows no more.
        await soon(lambda: not ticks.items)
    assert prices == [1, 2, 3]


async def test_a_price_that_was_taken_back_comes_with_its_revision(
    board: Board,
) -> None:
    """To a loop and to a callback: the trade that stands, although it is older."""
    gone, stands = make_row(SAMSUNG, "9", seq=2), make_row(SAMSUNG, "1", trades=0)
    taken_back = {gone.version[REVISION_CHARS:]}
    version = as_shown(stands.version, gone.version, taken_back)
    board.publish(gone)
    called: list[Item] = []
    async with board.gateway(), TickClient(board.url) as ticks:
        ticks.subscribe(SAMSUNG, called.append)
        async with aclosing(ticks.follow(SAMSUNG, timeout_s=20)) as items:
            assert (await anext(items))["price"] == 9
            board.publish(stands.revised(version))
            item = await anext(items)
        assert item["window"] == board.window
        assert (item["price"], item["seq"], item["revision"]) == (1, 1, 1)
    assert [one["price"] for one in called] == [9, 1]
    assert called[1] == item


async def test_a_loop_ends_after_a_silence_if_it_is_told_to(board: Board) -> None:
    board.publish(make_row(SAMSUNG, "1"))
    async with board.gateway(), TickClient(board.url) as ticks:
        items = [item async for item in ticks.follow(SAMSUNG, timeout_s=0.5)]
        assert not ticks.items
    assert [item["price"] for item in items] == [1]


async def test_a_silence_is_one_whatever_ends_beside_it(board: Board) -> None:
    """Such as somebody else's callback, again and again."""

    async def wait(_: Item) -> None:
        raise AssertionError("nothing comes")

    async def stir() -> None:
        while True:
            end = ticks.subscribe(HYNIX, wait)
            await asyncio.sleep(0.1)
            end()

    async with board.gateway(), TickClient(board.url) as ticks:
        stirring = asyncio.create_task(stir())
        async with asyncio.timeout(30):
            assert [item async for item in ticks.follow(SAMSUNG, timeout_s=1)] == []
        stirring.cancel()


async def test_what_a_callback_raises_ends_every_loop(board: Board) -> None:
    """Also one in another task, and whatever called it."""
    board._client.hset("tt:meta", "window_ms", 100)

    def refuse(keys: list[str]) -> None:
        raise ZeroDivisionError(*keys)

    ticks = TickClient(board.url, on_nothing=refuse)

    async def follow() -> None:
        async for _ in ticks.follow(HYNIX):
            pass

    following: list[asyncio.Task[None]] = []

    async def wait() -> None:
        async with ticks:
            following.append(asyncio.create_task(follow()))
            await asyncio.sleep(60)

    async with board.gateway():
        with pytest.raises(ZeroDivisionError):
            await wait()
        with pytest.raises(ZeroDivisionError):
            await following[0]


async def test_who_is_slow_gets_the_newest_for_all_trades(board: Board) -> None:
    """What came meanwhile is one item, and no trade is missing."""
    board.publish(make_row(SAMSUNG, "1"))
    found: list[Item] = []
    async with board.gateway(), TickClient(board.url) as ticks:
        async for item in ticks.follow(SAMSUNG):
            found.append(item)
            if len(found) == 2:
                break
            for seq in range(2, 7):
                board.publish(make_row(SAMSUNG, str(seq), seq=seq))
            await soon(lambda: ticks.items[SAMSUNG]["price"] == 6)
    newest = found[1]
    sums = traded(newest)
    assert sums is not None
    assert (newest["price"], sums.trades, sums.high, sums.low) == (6, 5, 6, 2)


async def test_an_async_callback_is_awaited_item_by_item(board: Board) -> None:
    """The next one comes when it has returned; what ends it ends it."""
    board.publish(make_row(SAMSUNG, "1"))
    prices: list[Decimal] = []
    at_work = 0

    async def put(item: Item) -> None:
        nonlocal at_work
        at_work += 1
        assert at_work == 1
        await asyncio.sleep(0.01)
        prices.append(item["price"])
        at_work -= 1

    async with board.gateway(), TickClient(board.url) as ticks:
        end = ticks.subscribe(SAMSUNG, put)
        await soon(lambda: prices == [1])
        board.publish(make_row(SAMSUNG, "2", seq=2))
        await soon(lambda: prices == [1, 2])
        end()
        await soon(lambda: not ticks.items)


async def test_a_fault_of_an_async_callback_ends_the_block(board: Board) -> None:
    """As that of any other one, and others are ended with it."""
    board.publish(make_row(SAMSUNG, "1"))

    async def fail(_: Item) -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    async def wait(_: Item) -> None:
        await asyncio.sleep(60)

    async def follow() -> None:
        async with TickClient(board.url) as ticks:
            ticks.subscribe(SAMSUNG, wait)
            ticks.subscribe(SAMSUNG, fail)
            await asyncio.sleep(60)

    async with board.gateway():
        with pytest.raises(ZeroDivisionError):
            await follow()


async def test_what_ends_the_stream_is_raised_wherever_it_is_followed(
    board: Board,
) -> None:
    async with board.gateway():
        beside: list[BaseException] = []

        async def follow(ticks: TickClient) -> None:
            try:
                async for _ in ticks.follow("no key"):
                    pass
            except TickError as error:
                beside.append(error)

        async def wait() -> None:
            async with TickClient(board.url) as ticks:
                tasks.append(asyncio.create_task(follow(ticks)))
                await asyncio.sleep(60)

        tasks: list[asyncio.Task[None]] = []
        with pytest.raises(TickError, match="'no key' is not accepted"):
            await wait()
        await asyncio.wait_for(tasks[0], 5)
    assert len(beside) == 1


def test_a_plain_loop_follows_too(publisher: Publisher, redis_url: str) -> None:
    """With the same names; and it ends after a silence if it is told to."""
    publisher.publish(make_row(SAMSUNG, "1"))
    prices = []
    with (
        running_gateway(redis_url) as gateway,
        BlockingTickClient(address(gateway.port)) as ticks,
    ):
        for item in ticks.follow(SAMSUNG):
            prices.append(item["price"])
            if len(prices) == 2:
                break
            publisher.publish(make_row(SAMSUNG, "2", seq=2))
        assert prices == [1, 2]
        # What is known comes again, and then nothing.
        again = list(ticks.follow(SAMSUNG, timeout_s=0.5))
        assert [item["price"] for item in again] == [2]
        assert ticks.last_window is not None
    with pytest.raises(RuntimeError, match="is over"):
        next(ticks.follow(SAMSUNG))


def test_a_plain_block_has_the_same_names(publisher: Publisher, redis_url: str) -> None:
    """Callbacks are called in its thread, may ask for more, and end when told to."""
    publisher.list_instruments()
    publisher.publish(make_row(SAMSUNG, "1"), make_row(HYNIX, "2"))
    BarPublisher(publisher._client).publish(make_bar())
    prices: list[Decimal] = []
    bars: list[Bar] = []
    with (
        running_gateway(redis_url) as gateway,
        BlockingTickClient(address(gateway.port)) as ticks,
    ):

        def ask_for_more(bar: Bar) -> None:
            bars.append(bar)
            ticks.subscribe(HYNIX, lambda item: prices.append(item["price"]))

        stop = ticks.subscribe("market:KOSPI", lambda item: prices.append(item["seq"]))
        eventually(lambda: prices == [1, 1])
        assert ticks.members["market:KOSPI"] == (HYNIX, SAMSUNG)
        eventually(lambda: ticks.position)
        assert ticks.window_ms == publisher._window_ms
        stop()
        eventually(lambda: not ticks.items)
        ticks.bars("1m", SAMSUNG, ask_for_more)
        eventually(lambda: prices == [1, 1, 2])
        assert bars[0]["isin"] == SAMSUNG
        ticks.trades(SAMSUNG, print)()


def test_a_callback_of_a_plain_block_ends_itself_at_once(
    publisher: Publisher, redis_url: str
) -> None:
    """It hears of nothing more in the same message; a loop in it is refused."""
    seen: list[str] = []
    refused: list[str] = []
    with (
        running_gateway(redis_url) as gateway,
        BlockingTickClient(address(gateway.port)) as ticks,
    ):

        def take(item: Item) -> None:
            seen.append(item["isin"])
            stop()

        def follow(_: Item) -> None:
            try:
                next(ticks.follow(NAVER))
            except RuntimeError as error:
                refused.append(str(error))

        stop = ticks.subscribe([SAMSUNG, HYNIX, NAVER], take)
        ticks.subscribe(NAVER, follow)
        publisher.publish(*(make_row(isin, "1") for isin in (SAMSUNG, HYNIX, NAVER)))
        eventually(lambda: refused)
    assert len(seen) == 1
    assert refused == ["a callback cannot follow: it may subscribe"]


def test_the_two_clients_have_the_same_names() -> None:
    """What one offers the other offers."""
    url = "ws://127.0.0.1:1/v1/stream"
    both = TickClient(url), BlockingTickClient(url)
    one, other = ({n for n in dir(c) if not n.startswith("_")} for c in both)
    assert one == other


def test_a_fault_of_a_callback_ends_a_plain_block(
    publisher: Publisher, redis_url: str
) -> None:
    """It is raised by the loop that waits."""
    publisher.publish(make_row(SAMSUNG, "1"))

    def fail(_: Item) -> None:
        raise ZeroDivisionError

    def follow(port: int) -> None:
        with BlockingTickClient(address(port)) as ticks:
            ticks.subscribe(SAMSUNG, fail)
            for _ in ticks.follow(HYNIX):
                pass

    with running_gateway(redis_url) as gateway, pytest.raises(ZeroDivisionError):
        follow(gateway.port)


@pytest.mark.parametrize("is_there", [True, False])
def test_what_ends_the_stream_is_raised_by_the_loop(
    redis_url: str, is_there: bool
) -> None:
    """A key that is not accepted, and no gateway at all."""

    def follow(url: str) -> None:
        with BlockingTickClient(url) as ticks:
            for _ in ticks.follow("no key"):
                pass

    with running_gateway(redis_url) as gateway:
        port: Any = gateway.port if is_there else free_port()
        what = "is not accepted" if is_there else "no gateway answers"
        with pytest.raises(TickError, match=what):
            follow(address(port))


def test_who_asks_as_the_stream_ends_is_told_why(
    redis_url: str, publisher: Publisher
) -> None:
    """Also where its loop takes a request and does not come to it any more."""
    ends, may_close = threading.Event(), threading.Event()

    def refuse(_: Item) -> None:
        raise ZeroDivisionError

    def ask(url: str) -> None:
        with BlockingTickClient(url) as ticks:
            loop = ticks._loop
            assert loop is not None
            close = loop.close

            def close_later() -> None:
                ends.set()
                may_close.wait(20)
                close()

            loop.close = close_later  # type: ignore[method-assign]
            ticks.subscribe(SAMSUNG, refuse)
            assert ends.wait(20)
            threading.Timer(1, may_close.set).start()
            ticks.subscribe(HYNIX, refuse)

    publisher.publish(make_row(SAMSUNG, "1"))
    with running_gateway(redis_url) as gateway, pytest.raises(ZeroDivisionError):
        ask(address(gateway.port))
