"""Keys and tokens that get no answer, another one or a late one: tick.js in Node."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from gateway.admission.tokens import CLOCK_SKEW_S
from gateway.app import STATIC
from tests.clients.board import address, gateway_on
from tests.clients.patience import soon
from tests.clients.test_item_sums import node
from tests.gateway.bar_publisher import BarPublisher, make_bar
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, SAMSUNG, make_isins, make_row
from tests.gateway.test_statuses import Exchange
from tests.ports import free_port

pytestmark = pytest.mark.redis


class Told:
    """What a client in Node has told, in order, since it was last forgotten."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._lines: list[list[Any]] = []
        self._token: Callable[[], str] = str

    def begin(
        self,
        port: int,
        *calls: Any,
        token: Callable[[], str] | None = None,
        token_fails: bool = False,
        hears_nothing: bool = False,
    ) -> None:
        """Have it make some calls."""
        self._token = token or str
        has_token = token_fails or token is not None
        options = has_token, token_fails, hears_nothing
        self._write(json.dumps([address(port), calls, *options]))

    def of(self, name: str) -> list[Any]:
        """Return what was told under a name: the first thing each time."""
        return [line[1] for line in self._lines if line[0] == name]

    def lines(self, name: str) -> list[list[Any]]:
        """Return all that was told under a name."""
        return [line for line in self._lines if line[0] == name]

    def newest(self, name: str) -> Any:
        return (self.of(name) or [None])[-1]

    def forget(self) -> None:
        self._lines.clear()

    async def listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self._lines.append(json.loads(line))
            if self._lines[-1] == ["token"]:
                self._write(self._token())

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())


@pytest.fixture
async def told(tmp_path: Path) -> AsyncIterator[Told]:
    """A client in Node that nobody has asked anything of."""
    shutil.copy(STATIC / "tick.js", tmp_path / "tick.mjs")
    shutil.copy(Path(__file__).with_name("told.mjs"), tmp_path)
    pipe = asyncio.subprocess.PIPE
    flags = ["--experimental-websocket", "--no-warnings"]
    process = await asyncio.create_subprocess_exec(
        *(node(), *flags, tmp_path / "told.mjs"), stdin=pipe, stdout=pipe
    )
    told = Told(process)
    listening = asyncio.create_task(told.listen())
    yield told
    process.kill()
    await process.wait()
    await listening


async def test_a_client_that_is_back_holds_every_key_that_it_may(
    publisher: Publisher, redis_url: str, told: Told
) -> None:
    """Never lost: a list that is refused for some of its keys is asked for in parts."""
    isins, port = make_isins(30), free_port()
    publisher.publish(*(make_row(isin) for isin in isins))
    calls = ["subscribe", isins], ["bars", ["*"], 3], ["bars", isins[:2], 3]
    async with gateway_on(redis_url, port):
        told.begin(port, *calls)
        await soon(lambda: told.of("rejected") == ["bars:1m:*"])
        await soon(lambda: told.newest("held") == 32)
        await soon(lambda: told.newest("position"))
    await soon(lambda: told.newest("state") == "offline")
    told.forget()
    async with gateway_on(redis_url, port, max_keys=11):
        await soon(lambda: len(told.of("rejected")) == 22)
        await soon(lambda: told.newest("state") == "live")
        assert told.newest("held") == 11
        told.forget()
        publisher.publish(*(make_row(isin, "2", seq=2) for isin in isins))
        # Those of bars were asked for before the parts.
        await soon(lambda: len(told.of("item")) == 9)


async def test_keys_of_which_nothing_comes_are_told(
    client: redis.Redis, redis_url: str, told: Told
) -> None:
    """Each once, a window after its snapshot; an item that comes later comes."""
    publisher, port = Publisher(client, window_ms=100), free_port()
    publisher.list_instruments()
    publisher.publish(make_row(SAMSUNG, "1"))
    keys = [SAMSUNG, "000660", "market:KOSDAQ", "market:KOSPI", "group:market:KOSDAQ"]
    calls = ["subscribe", [*keys, "KR1"]], ["subscribe", [HYNIX]]
    async with gateway_on(redis_url, port):
        told.begin(port, *calls)
        await soon(lambda: told.of("warned"))
        publisher.publish(make_row(HYNIX, "2"))
        await soon(lambda: HYNIX in told.of("item"))
    since = "not traded since the stream began; the next trade will be told"
    names = f"000660, market:KOSDAQ, {HYNIX}"
    assert told.of("warned") == [f"nothing yet of {names}: {since}"]


async def test_who_wants_to_hear_of_silent_keys_has_a_callback(
    client: redis.Redis, redis_url: str, told: Told
) -> None:
    """It takes the place of the line; before the first window all keys are silent."""
    client.hset("tt:meta", "window_ms", 100)
    port = free_port()
    async with gateway_on(redis_url, port):
        # Who asks for no key has not asked for anything yet.
        told.begin(port, ["subscribe", []], ["subscribe", "*"], hears_nothing=True)
        await soon(lambda: told.of("nothing") == ["*"])
    assert not told.of("warned")


async def test_what_all_of_a_list_is_refused_for_is_told_of_each(
    redis_url: str, told: Told
) -> None:
    """And not asked until the gateway has enough of it."""
    isins, port = make_isins(100), free_port()
    call = ["bars", isins, 301]
    async with gateway_on(redis_url, port):
        told.begin(port, call)
        await soon(lambda: len(told.of("rejected")) == 100)
        assert told.of("rejected") == [f"bars:1m:{isin}" for isin in isins]
        await soon(lambda: told.newest("state") != "connecting")
        assert "offline" not in told.of("state")


async def test_a_token_that_cannot_be_made_is_tried_again(
    redis_url: str, told: Told
) -> None:
    """Whether its promise fails or the function itself: it ended a program in Node."""
    port = free_port()
    async with gateway_on(redis_url, port):
        told.begin(port, ["subscribe", [SAMSUNG]], token_fails=True)
        await soon(lambda: told.of("state").count("offline") >= 2)


async def test_a_newer_token_takes_keys_and_gives_others(
    publisher: Publisher, redis_url: str, told: Told, tmp_path: Path
) -> None:
    """Both are told, by the names that were asked for; a price that rests, too."""
    path, port = tmp_path / "token.key", free_port()
    path.write_text(SECRET)
    publisher.list_instruments()
    publisher.publish(make_row(SAMSUNG, "1"), make_row(HYNIX, "2"))
    BarPublisher(publisher._client).publish(make_bar(HYNIX), make_bar())
    tokens = [(4 - CLOCK_SKEW_S, SAMSUNG), (600, HYNIX), (600, SAMSUNG)]
    calls = ["subscribe", ["005930", HYNIX]], ["bars", ["005930", HYNIX], 1]

    def token() -> str:
        seconds, isin = tokens.pop(0)
        return make_token(seconds, tick={"keys": [isin]})

    async with gateway_on(redis_url, port, token_key_file=path):
        told.begin(port, *calls, token=token)
        await soon(lambda: {*told.of("item")} == {SAMSUNG, HYNIX})
        await soon(lambda: {*told.of("bar")} == {SAMSUNG, HYNIX})
        await soon(lambda: told.newest("position"))
        assert told.of("rejected")[-2:] == ["005930", "bars:1m:005930"]
    await soon(lambda: told.newest("state") == "offline")
    told.forget()
    # Allowed again by the token of another connection, which resumes.
    async with gateway_on(redis_url, port, token_key_file=path):
        await soon(lambda: told.of("item") == [SAMSUNG])
        await soon(lambda: told.of("bar") == [SAMSUNG])


async def test_a_status_is_told_once_with_its_digits_across_connections(
    client: redis.Redis, publisher: Publisher, redis_url: str, told: Told
) -> None:
    """First what is current, then each at once; what is current again is no news."""
    port, exchange = free_port(), Exchange(client)
    publisher.publish(make_row())
    exchange.say("auction", expected_price="71900.50")
    async with gateway_on(redis_url, port):
        told.begin(port, ["subscribe", [SAMSUNG]])
        await soon(lambda: told.of("status") == ["auction"])
        assert told.lines("status") == [["status", "auction", "71900.50", 0]]
        exchange.say("trading")
        await soon(lambda: told.newest("status") == "trading")
        await soon(lambda: told.newest("position"))
    await soon(lambda: told.newest("state") == "offline")
    told.forget()
    exchange.say("halted")
    async with gateway_on(redis_url, port):
        await soon(lambda: told.of("status"))
        await soon(lambda: told.newest("state") == "live")
        assert told.lines("status") == [["status", "halted", None, 0]]
