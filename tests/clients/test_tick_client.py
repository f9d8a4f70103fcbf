"""The client for scripts, against a real gateway and through a line that breaks."""

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.typing import Subprotocol

from gateway.admission.tokens import CLOCK_SKEW_S
from tests.clients.board import Board, address
from tests.clients.patience import soon
from tests.dead_proxy import DEAD_PROXY
from tests.e2e.proxy import Proxy, take_all
from tests.gateway.asyncapi import DOCUMENT_PATH, check_message
from tests.gateway.bar_publisher import BarPublisher, make_bar
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import (
    HYNIX,
    INSTRUMENT_LIST,
    NAVER,
    SAMSUNG,
    make_group,
    make_isins,
    make_row,
)
from tests.ports import free_port
from tickthrottle_client import Bar, Item, TickClient, TickError, tick_client
from tickthrottle_client.item_sums import SUMS
from tickthrottle_client.tick_client import backoff_s, is_older, read_message
from tickthrottle_client.tick_v1 import PROTOCOL, is_final

pytestmark = pytest.mark.redis


class Seen:
    """What the callbacks of a client got; fails on any step back."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.calls: list[str] = []
        self.states: list[str] = []
        self.rejected: list[dict[str, str]] = []
        self.messages: list[dict[str, Any]] = []
        self.resets = 0

    def put(self, item: Item) -> None:
        known = self.items.get(item["isin"])
        assert known is None or not is_older(item, known)
        self.items[item["isin"]] = item
        self.calls.append(item["isin"])

    def reset(self) -> None:
        self.items.clear()
        self.resets += 1

    def prices(self) -> dict[str, str]:
        """Return the newest price of each instrument, as text."""
        return {isin: str(item["price"]) for isin, item in self.items.items()}

    def client(self, url: str, **options: Any) -> TickClient:
        options.setdefault("waits", True)
        return TickClient(
            url,
            on_state=lambda state, _: self.states.append(state),
            on_reset=self.reset,
            on_rejected=self.rejected.extend,
            on_message=self.messages.append,
            **options,
        )


@pytest.fixture(autouse=True)
def _soon_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reconnect at once: the longest delay would be half a minute."""
    monkeypatch.setattr(tick_client, "random", lambda: 0.02)


@pytest.fixture
def port() -> int:
    """The port of the gateway, restarts or not."""
    return free_port()


@pytest.fixture
def proxy(board: Board) -> Iterator[Proxy]:
    proxy = Proxy(board.port, take_all)
    yield proxy
    proxy.close()


def keys_held(seen: "Seen") -> int | None:
    """Return how many keys the gateway holds, by its newest answer."""
    counts = [m["count"] for m in seen.messages if m["type"] == "ack" and "count" in m]
    return counts[-1] if counts else None


async def follow(
    client: TickClient, key: str, callback: Callable[[Item], None]
) -> None:
    """Follow a key for as long as it can be followed."""
    async with client as ticks:
        ticks.subscribe([key], callback)
        await asyncio.sleep(600)


async def test_callbacks_get_what_is_known_then_changes(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each its own instruments; an end is an end; no proxy is asked for this host."""
    for name, value in DEAD_PROXY.items():
        monkeypatch.setenv(name, value)
    board.publish(make_row(SAMSUNG, "0.30"), make_row(HYNIX, "5"))
    seen, own = Seen(), Seen()
    async with board.gateway(), seen.client(board.url) as ticks:
        stop = ticks.subscribe(["*"], seen.put)
        await soon(lambda: seen.prices() == {SAMSUNG: "0.30", HYNIX: "5"})
        end = ticks.subscribe(SAMSUNG, own.put)
        assert own.prices() == {SAMSUNG: "0.30"}
        board.publish(make_row(SAMSUNG, "0.40", seq=2), make_row(NAVER, "1", seq=2))
        await soon(lambda: own.prices() == {SAMSUNG: "0.40"})
        assert seen.prices() == {SAMSUNG: "0.40", HYNIX: "5", NAVER: "1"}
        stop()
        assert ticks.items.keys() == {SAMSUNG}
        end()
        assert ticks.items == {}
        board.publish(make_row(SAMSUNG, "0.50", seq=3))
        await soon(lambda: seen.messages[-1]["type"] == "heartbeat")
        assert own.prices() == {SAMSUNG: "0.40"}
    # On a busy machine windows may stay out for long enough to be called stale.
    assert {*seen.states} - {"stale"} == {"connecting", "live"}


@pytest.mark.parametrize("proxy_url", ["ftp://u:secret@127.0.0.1:9", "proxy:3128"])
async def test_a_proxy_that_cannot_be_used_is_told_without_its_password(
    proxy_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a sentence with the way round it; a gateway elsewhere is asked through one."""
    monkeypatch.setenv("all_proxy", proxy_url)
    monkeypatch.setenv("https_proxy", proxy_url)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    client = Seen().client("ws://gateway.invalid/v1/stream", waits=False)
    with pytest.raises(TickError, match=r"NO_PROXY=gateway\.invalid goes ") as failed:
        await follow(client, SAMSUNG, print)
    assert "secret" not in str(failed.value)


async def test_it_comes_back_and_resumes(board: Board) -> None:
    """Resumable: after a restart of the gateway only what changed is sent."""
    board.publish(make_row(SAMSUNG, "1"), make_row(HYNIX, "1"))
    seen = Seen()
    async with seen.client(board.url) as ticks:
        ticks.subscribe(["*"], seen.put)
        async with board.gateway():
            await soon(lambda: seen.prices() == {SAMSUNG: "1", HYNIX: "1"})
            await soon(lambda: ticks.position is not None)
        await soon(lambda: seen.states[-1:] == ["offline"])
        board.publish(make_row(SAMSUNG, "2", seq=2))
        calls = len(seen.calls)
        async with board.gateway():
            await soon(lambda: seen.prices() == {SAMSUNG: "2", HYNIX: "1"})
    assert seen.calls[calls:] == [SAMSUNG]
    assert seen.resets == 0


async def test_another_epoch_voids_what_was_known(board: Board) -> None:
    """Never backwards: an older price of a new numbering is no step back."""
    board.publish(make_row(SAMSUNG, "9", seq=9), make_row(HYNIX, "9", seq=9))
    seen = Seen()
    async with board.gateway(), seen.client(board.url) as ticks:
        ticks.subscribe(["*"], seen.put)
        await soon(lambda: len(seen.items) == 2)
        board._client.flushall()
        Publisher(board._client, epoch="z").publish(make_row(SAMSUNG, "1"))
        await soon(lambda: seen.prices() == {SAMSUNG: "1"})
    assert seen.resets == 1


async def test_a_dead_line_is_noticed(board: Board, proxy: Proxy) -> None:
    """Never lost: silence is enough, no word of its end is needed."""
    board.publish(make_row(SAMSUNG, "1"))
    seen = Seen()
    async with board.gateway(), seen.client(address(proxy.port)) as ticks:
        ticks.subscribe([SAMSUNG], seen.put)
        await soon(lambda: seen.prices() == {SAMSUNG: "1"})
        proxy.pause()
        await soon(lambda: seen.states[-1:] == ["offline"])
        board.publish(make_row(SAMSUNG, "2", seq=2))
        proxy.resume()
        await soon(lambda: seen.prices() == {SAMSUNG: "2"})


async def test_silence_is_told_before_the_line_is_given_up(
    board: Board, proxy: Proxy
) -> None:
    """Three windows without a word; what comes then is live again."""
    publisher = Publisher(board._client, window_ms=500)
    publisher.publish(make_row(SAMSUNG, "1"))
    seen = Seen()
    async with (
        board.gateway(heartbeat_ms=2_000),
        seen.client(address(proxy.port)) as ticks,
    ):
        ticks.subscribe([SAMSUNG], seen.put)

        def state() -> str:
            # Windows go on: it is the line that is dead.
            publisher.publish()
            return seen.states[-1]

        await soon(lambda: bool(seen.states) and state() == "live")
        await soon(lambda: ticks.last_window == publisher.window)
        assert ticks.window_ms == 500
        proxy.pause()
        await soon(lambda: state() == "stale")
        proxy.resume()
        await soon(lambda: state() == "live")


async def test_keys_that_are_refused_are_told(board: Board) -> None:
    """Accounted: one by one, and all of them if they are too many."""
    seen = Seen()
    async with board.gateway(max_keys=2), seen.client(board.url) as ticks:
        ticks.subscribe([SAMSUNG, "KR1"], seen.put)
        await soon(lambda: [r["key"] for r in seen.rejected] == ["KR1"])
        ticks.bars("2m", [SAMSUNG], print)
        await soon(lambda: len(seen.rejected) == 2)
        assert "must be one of 1m" in seen.rejected[1]["message"]
        # Whoever comes later is told as well.
        ticks.subscribe(["KR1"], seen.put)
        await soon(lambda: len(seen.rejected) == 3)
        ticks.bars("1m", ["*"], print, last=3)
        await soon(lambda: len(seen.rejected) == 4)
        assert seen.rejected[3]["message"] == "last: only 1 for all instruments"
        ticks.subscribe([HYNIX, NAVER], seen.put)
        await soon(lambda: len(seen.rejected) == 5)
        assert (seen.rejected[4]["key"], keys_held(seen)) == (NAVER, 2)
        assert seen.rejected[4]["code"] == "key_limit"


async def test_keys_of_which_nothing_comes_are_told(
    board: Board, caplog: pytest.LogCaptureFixture
) -> None:
    """Each once, a window after its snapshot; an item that comes later comes."""
    publisher, seen = Publisher(board._client, window_ms=100), Seen()
    publisher.list_instruments()
    publisher.publish(make_row(SAMSUNG, "1"))
    keys = [SAMSUNG, "000660", "market:KOSDAQ", "market:KOSPI", "group:market:KOSDAQ"]
    async with board.gateway(), seen.client(board.url) as ticks:
        ticks.subscribe([*keys, "KR1"], seen.put)
        await soon(lambda: caplog.messages)
        ticks.subscribe(["000660", NAVER], seen.put)
        await soon(lambda: len(caplog.messages) == 2)
        publisher.publish(make_row(HYNIX, "2"))
        await soon(lambda: HYNIX in seen.items)
    assert [line.partition(":")[0] for line in caplog.messages] == [
        "nothing yet of 000660, market",
        f"nothing yet of {NAVER}",
    ]
    assert "market:KOSDAQ: not traded since" in caplog.messages[0]
    assert {record.levelname for record in caplog.records} == {"WARNING"}


async def test_a_key_is_silent_whatever_becomes_of_another_one(board: Board) -> None:
    """The answer that comes last is a refusal, with no snapshot behind it."""
    board._client.hset("tt:meta", "window_ms", 100)
    silent: list[str] = []
    rejected: list[dict[str, str]] = []
    options = {"on_nothing": silent.extend, "on_rejected": rejected.extend}
    async with board.gateway(), TickClient(board.url, **options) as ticks:
        ticks.subscribe(NAVER, print)
        ticks.subscribe("KR1", print)
        await soon(lambda: silent)
    assert silent == [NAVER]
    assert [one["key"] for one in rejected] == ["KR1"]


async def test_who_wants_to_hear_of_silent_keys_has_a_callback(
    board: Board, caplog: pytest.LogCaptureFixture
) -> None:
    """It takes the place of the line; before the first window all keys are silent."""
    board._client.hset("tt:meta", "window_ms", 100)

    def refuse(keys: list[str]) -> None:
        raise ZeroDivisionError(*keys)

    async def wait() -> None:
        async with TickClient(board.url, on_nothing=refuse) as ticks:
            ticks.subscribe("*", print)
            await asyncio.sleep(60)

    async with board.gateway():
        with pytest.raises(ZeroDivisionError, match=r"^\*$"):
            await wait()
    assert not caplog.messages


async def test_a_client_that_is_back_holds_every_key_that_it_may(board: Board) -> None:
    """Never lost: a list that is refused for some of its keys is asked for in parts."""
    isins = make_isins(30)
    board.publish(*(make_row(isin) for isin in isins))
    seen, held = Seen(), Seen()
    async with seen.client(board.url) as ticks:
        ticks.subscribe(isins, held.put)
        ticks.bars("1m", ["*"], print, last=3)
        ticks.bars("1m", isins[:2], print, last=3)
        async with board.gateway():
            await soon(lambda: keys_held(seen) == 32)
            await soon(lambda: ticks.position is not None)
            await soon(lambda: [r["key"] for r in seen.rejected] == ["bars:1m:*"])
        await soon(lambda: seen.states[-1:] == ["offline"])
        seen.rejected.clear()
        async with board.gateway(max_keys=11):
            await soon(lambda: len(seen.rejected) == 22)
            assert keys_held(seen) == 11
            await soon(lambda: seen.states[-1] == "live")
            held.items.clear()
            board.publish(*(make_row(isin, "2", seq=2) for isin in isins))
            # Those of bars were asked for before the parts.
            await soon(lambda: len(held.items) == 9)
            refused = {one["key"] for one in seen.rejected}
            assert refused == {"bars:1m:*", *isins}.difference(held.items)


async def test_what_all_of_a_list_is_refused_for_is_told_of_each(board: Board) -> None:
    """And not asked until the gateway has enough of it."""
    seen, isins = Seen(), make_isins(100)
    async with board.gateway(), seen.client(board.url) as ticks:
        ticks.bars("1m", isins, print, last=301)
        await soon(lambda: len(seen.rejected) == 100)
        assert [r["key"] for r in seen.rejected] == [f"bars:1m:{i}" for i in isins]
        ticks.subscribe(isins[:1], print)
        await soon(lambda: keys_held(seen) == 1)
    assert "offline" not in seen.states


async def test_what_was_said_too_fast_is_said_again(board: Board) -> None:
    """Accounted: more messages than allowed lose no key, and none is held for ever."""
    isins = make_isins(30)
    board.publish(*(make_row(isin) for isin in isins))
    seen = Seen()
    async with board.gateway(messages_per_second=8), seen.client(board.url) as ticks:
        await soon(lambda: seen.messages)
        ends = [ticks.subscribe([isin], seen.put) for isin in isins]
        await soon(lambda: seen.items.keys() == set(isins))
        await soon(lambda: ticks.position is not None)
        for end in ends:
            end()
        # Wanted again meanwhile: this one is not dropped.
        ticks.subscribe([isins[-1]], seen.put)
        await soon(lambda: keys_held(seen) == 1)
        await asyncio.sleep(1)
        assert keys_held(seen) == 1


async def test_a_token_is_renewed_in_time(board: Board, tmp_path: Path) -> None:
    """Never lost: one connection outlives the token it began with."""
    path = tmp_path / "token.key"
    path.write_text(SECRET)
    board.publish(make_row(SAMSUNG, "1"))
    seconds = [4 - CLOCK_SKEW_S, 600]

    async def fresh() -> str:
        return make_token(seconds.pop(0))

    seen = Seen()
    client = seen.client(board.url, token=fresh)
    async with board.gateway(token_key_file=path), client as ticks:
        ticks.subscribe([SAMSUNG], seen.put)
        await soon(lambda: seconds == [])
        await asyncio.sleep(4)
        board.publish(make_row(SAMSUNG, "2", seq=2))
        await soon(lambda: seen.prices() == {SAMSUNG: "2"})
    assert seen.states.count("connecting") == 1


async def test_a_newer_token_takes_keys_and_gives_others(
    board: Board, tmp_path: Path
) -> None:
    """Both are told, by the names that were asked for; a price that rests, too."""
    path = tmp_path / "token.key"
    path.write_text(SECRET)
    board.list_instruments()
    board.publish(make_row(SAMSUNG, "1"), make_row(HYNIX, "2"))
    BarPublisher(board._client).publish(make_bar(HYNIX), make_bar())
    tokens = [(4 - CLOCK_SKEW_S, SAMSUNG), (600, HYNIX), (600, SAMSUNG)]

    async def newest() -> str:
        seconds, isin = tokens.pop(0)
        return make_token(seconds, tick={"keys": [isin]})

    seen, bars = Seen(), list[Bar]()
    lost = ["005930", "bars:1m:005930"]
    client = seen.client(board.url, token=newest)
    async with client as ticks:
        async with board.gateway(token_key_file=path):
            ticks.subscribe(["005930", HYNIX], seen.put)
            ticks.bars("1m", ["005930", HYNIX], bars.append)
            await soon(lambda: seen.prices() == {SAMSUNG: "1", HYNIX: "2"})
            await soon(lambda: {bar["isin"] for bar in bars} == {SAMSUNG, HYNIX})
            await soon(lambda: ticks.position is not None)
            assert [one["key"] for one in seen.rejected[-2:]] == lost
            assert {one["code"] for one in seen.rejected} == {"not_allowed"}
        await soon(lambda: seen.states[-1] == "offline")
        seen.items.clear()
        bars.clear()
        # Allowed again by the token of another connection, which resumes.
        async with board.gateway(token_key_file=path):
            await soon(lambda: seen.prices() == {SAMSUNG: "1"})
            await soon(lambda: {bar["isin"] for bar in bars} == {SAMSUNG})


async def test_a_refused_token_ends_it(board: Board, tmp_path: Path) -> None:
    """Accounted: the state says closed, and the block does not wait for prices."""
    path = tmp_path / "token.key"
    path.write_text(SECRET)
    seen = Seen()
    client = seen.client(board.url, token="no token")
    async with board.gateway(token_key_file=path):
        with pytest.raises(
            TickError, match=r"^closed by ws://.*: the token.* \(4501\)$"
        ):
            await follow(client, SAMSUNG, seen.put)
    assert seen.states[-1] == "closed"


async def test_a_key_that_is_not_accepted_ends_it_unless_somebody_is_told(
    board: Board,
) -> None:
    """Silence would look like an instrument that does not trade."""
    async with board.gateway():
        with pytest.raises(TickError, match=r"^key 'KR1' is not accepted: "):
            await follow(TickClient(board.url), "KR1", print)


async def test_without_a_gateway_it_ends_unless_it_waits(board: Board) -> None:
    """A wrong address is told at once; a gateway that comes later is met if asked."""
    with pytest.raises(
        TickError, match=f"^no gateway answers at ws://127.*{board.port}/"
    ):
        await follow(TickClient(board.url), SAMSUNG, print)
    with pytest.raises(TickError, match="isn't a valid URI: scheme"):
        await follow(TickClient("127.0.0.1:8000"), SAMSUNG, print)
    board.publish(make_row(SAMSUNG, "1"))
    seen = Seen()
    async with seen.client(board.url, waits=True) as ticks:
        ticks.subscribe([SAMSUNG], seen.put)
        await soon(lambda: "offline" in seen.states)
        async with board.gateway():
            await soon(lambda: seen.prices() == {SAMSUNG: "1"})


async def test_who_cancels_the_block_wins(port: int) -> None:
    """A task that is cancelled ends as cancelled, whatever the client met."""

    async def follow() -> None:
        async with TickClient(address(port)):
            try:
                await asyncio.sleep(600)
            finally:
                asyncio.current_task().cancel()  # type: ignore[union-attr]

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(follow())


async def test_updates_may_be_asked_for_less_often(board: Board) -> None:
    """The gateway grants whole windows; bars do not undo it."""
    board.publish(make_row(SAMSUNG, "0.30"))
    seen = Seen()
    client = seen.client(board.url, min_interval_ms=4_000)
    async with board.gateway(), client as ticks:
        ticks.subscribe([SAMSUNG], seen.put)
        ticks.bars("1m", SAMSUNG, lambda _: None)

        def granted() -> list[int]:
            acks = [m for m in seen.messages if m["type"] == "ack"]
            return [ack["min_interval_ms"] for ack in acks]

        await soon(lambda: granted() == [4_000, 4_000])


@pytest.mark.parametrize(
    ("keys", "callback", "words"),
    [
        ([5930], print, "key 5930: must be text"),
        (["005930", ""], print, "key '': must not be empty"),
        ("", print, "key '': must not be empty"),
        ("005930", 5, "callback 5: must be a function"),
    ],
)
def test_a_call_that_cannot_be_meant_is_refused(
    keys: Any, callback: Any, words: str
) -> None:
    """At once, by name; nothing of it is followed."""
    ticks = TickClient("ws://127.0.0.1:1/v1/stream")
    calls: list[Callable[[], object]] = [
        lambda: ticks.subscribe(keys, callback),
        lambda: ticks.bars("1m", keys, callback),
        lambda: ticks.trades(keys, callback),
    ]
    for call in calls:
        with pytest.raises((TypeError, ValueError), match=f"^{words}"):
            call()
    assert not any(ticks._books)


def test_an_async_callback_is_refused() -> None:
    """Nobody would await it."""

    async def put(_: Item) -> None:
        pass

    client = TickClient("ws://127.0.0.1:1/v1/stream")
    with pytest.raises(TypeError, match="nobody awaits an async function here"):
        client.bars("1m", [SAMSUNG], put)


async def test_a_fault_of_a_callback_ends_the_block(board: Board) -> None:
    """A script does not go on with prices it has not seen.

    Nor is a file that cannot be written taken for a lost connection.
    """
    board.publish(make_row(SAMSUNG))

    def fail(item: Item) -> None:
        raise kind

    async with board.gateway():
        for kind in (ZeroDivisionError, BrokenPipeError, TimeoutError):
            with pytest.raises(kind):
                await follow(Seen().client(board.url), SAMSUNG, fail)


async def test_a_callback_that_fails_at_once_leaves_its_keys_to_others(
    board: Board,
) -> None:
    """The block raises it when it ends, whoever has caught it before."""
    board.publish(make_row(SAMSUNG, "1"), make_row(HYNIX, "2"))
    BarPublisher(board._client).publish(make_bar(), make_bar(HYNIX))
    seen, bars, faults = Seen(), list[Bar](), [ZeroDivisionError()] * 2

    def fail(_: Item) -> None:
        if faults:
            raise faults.pop()

    async def listen(ticks: TickClient) -> None:
        ticks.subscribe(SAMSUNG, seen.put)
        ticks.bars("1m", SAMSUNG, bars.append)
        await soon(lambda: seen.items and bars)
        with suppress(ZeroDivisionError):
            ticks.subscribe([SAMSUNG, HYNIX], fail)
        with suppress(ZeroDivisionError):
            ticks.bars("1m", [SAMSUNG, HYNIX], fail)
        assert not faults
        ticks.subscribe(HYNIX, seen.put)
        ticks.bars("1m", HYNIX, bars.append)
        await soon(lambda: HYNIX in seen.items)
        await soon(lambda: {bar["isin"] for bar in bars} == {SAMSUNG, HYNIX})
        seen.calls.append("all")

    async with board.gateway():
        with pytest.raises(ZeroDivisionError):
            async with seen.client(board.url) as ticks:
                await listen(ticks)
    assert seen.calls[-1] == "all"


def made_item(**changes: Any) -> str:
    """Return an update with one item, some fields of which are others."""
    item = {"isin": SAMSUNG, "time": 1, "seq": 1, "price": 1, "size": 1, "trades": 1}
    message = {"type": "update", "epoch": "a", "offset": 1, "window": 1}
    return json.dumps({**message, "data": [item | changes]})


async def test_what_is_no_message_ends_it_in_a_sentence(port: int) -> None:
    """A hostile gateway gets no stack trace, and nothing onto a terminal."""
    frames = (
        *("{", "[]", "[" * 100_000, '{"type":"update"}', '{"type":"welcome"}'),
        *(made_item(price=price) for price in ("\x1b]0;x\x07", "NaN", "1e999999999")),
        *(made_item(time=time) for time in ("1", 2**80, -1, 1.5, None)),
        *(made_item(isin=["x"]), made_item(seq="1"), made_item(trades="many")),
    )

    async def speak(connection: ServerConnection) -> None:
        await connection.send(frame)
        await connection.wait_closed()

    words = r"^ws://127.* says what is not tick\.v1: "
    async with serve(speak, "127.0.0.1", port, subprotocols=[Subprotocol(PROTOCOL)]):
        for frame in frames:
            with pytest.raises(TickError, match=words) as failed:
                await follow(TickClient(address(port)), SAMSUNG, print)
            assert str(failed.value).isprintable(), frame
            assert len(str(failed.value)) < 250


async def test_words_of_a_gateway_cannot_act_on_a_terminal(port: int) -> None:
    """Neither those about a key, nor those it closes with."""
    bad = [{"key": SAMSUNG, "code": "x", "message": "\x1b[2J\u202eno"}]
    ack = {"type": "ack", "op": "subscribe", "id": 1, "accepted": [], "rejected": bad}

    async def speak(connection: ServerConnection) -> None:
        if words.startswith("key"):
            await connection.send(json.dumps(ack))
            await connection.wait_closed()
        else:
            await connection.close(4500, "\x1b[2J\u202eno")

    async with serve(speak, "127.0.0.1", port, subprotocols=[Subprotocol(PROTOCOL)]):
        for words in ("key 'KR", "closed by ws://"):
            with pytest.raises(TickError, match=f"^{words}") as failed:
                await follow(TickClient(address(port)), SAMSUNG, print)
            assert r"\x1b[2J\u202eno" in str(failed.value)


async def test_every_message_is_as_described(board: Board) -> None:
    """What the client says and hears is in the document."""
    board.publish(make_row(SAMSUNG))
    seen = Seen()
    async with board.gateway(), seen.client(board.url) as ticks:
        ticks.subscribe([SAMSUNG], seen.put)
        await soon(lambda: len({message["type"] for message in seen.messages}) == 4)
    for message in seen.messages:
        for item in message.get("data", []):
            for name in ("price", "size", *(item.keys() & SUMS)):
                item[name] = float(item[name])
        check_message(message)


async def test_the_example_of_the_document_runs(board: Board, tmp_path: Path) -> None:
    board.publish(make_row(SAMSUNG, "0.30"))
    document = DOCUMENT_PATH.with_name("protocol.md").read_text("utf-8")
    of_scripts = document.partition("## A client for scripts")[2]
    [example] = re.findall(r"```python\n(.*?)```", of_scripts, re.DOTALL)
    example = example.replace("127.0.0.1:8000", f"127.0.0.1:{board.port}")
    assert "sleep(60)" in example
    script = tmp_path / "example.py"
    script.write_text(example.replace("sleep(60)", "sleep(2)"))
    async with board.gateway():
        assert await run_script(script) == (0, "0.30\n", "")
    code, output, errors = await run_script(script)
    assert (code, output) == (1, "")
    assert errors.startswith(
        f"no gateway answers at ws://127.0.0.1:{board.port}/v1/stream: "
    )
    assert len(errors.splitlines()) == 1


async def run_script(script: Path) -> tuple[int | None, str, str]:
    """Run a script; return its exit code, what it printed, and its errors."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, script, stdout=pipe, stderr=pipe
    )
    output, errors = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, output.decode(), errors.decode()


def test_no_digit_is_lost() -> None:
    """A price is the decimal that was sent."""
    numbers = '"price":0.30,"size":12345678901234567890.10,"seq":9007199254740993'
    numbers += f',"time":1,"isin":"{SAMSUNG}"'
    [item] = read_message(f'{{"type":"update","data":[{{{numbers}}}]}}')["data"]
    assert str(item["price"]) == "0.30"
    assert item["size"] == Decimal("12345678901234567890.10")
    assert item["seq"] == 9007199254740993


def test_the_delay_grows_to_half_a_minute() -> None:
    """0.5 s doubled with every try, times a chance."""
    assert [backoff_s(n, 1) for n in (0, 1, 5, 6, 100)] == [0.5, 1, 16, 30, 30]
    assert backoff_s(3, 0) == 0


def test_it_comes_back_after_some_codes_and_not_after_others() -> None:
    """As the protocol's table says."""
    assert all(map(is_final, (1000, 1003, 1007, 1008, 1009, 4500, 4501)))
    assert not any(map(is_final, (1006, 1011, 1012, 1013, 4401, 4408, 4429)))


async def test_an_instrument_may_be_asked_for_by_its_code(board: Board) -> None:
    """By both names it is one instrument, held until neither is wanted any more."""
    board.publish(make_row(price="1"))
    board.list_instruments()
    by_code, by_isin = Seen(), Seen()
    async with board.gateway(), TickClient(board.url, waits=True) as ticks:
        end = ticks.subscribe(["005930"], by_code.put)
        await soon(lambda: by_code.prices() == {SAMSUNG: "1"})
        ticks.subscribe([SAMSUNG], by_isin.put)
        assert by_isin.prices() == {SAMSUNG: "1"}
        end()
        board.publish(make_row(price="2", seq=2))
        await soon(lambda: by_isin.prices() == {SAMSUNG: "2"})
        assert by_code.prices() == {SAMSUNG: "1"}
        again = Seen()
        ticks.subscribe(["005930"], again.put)
        assert again.prices() == {SAMSUNG: "2"}


async def test_what_is_subscribed_to_while_it_connects_is_asked_for_once(
    board: Board,
) -> None:
    """So what is known comes once, whenever the connection stands."""
    board.publish(make_row(price="1"))
    connecting, asked = asyncio.Event(), asyncio.Event()
    kinds: list[str] = []

    async def token() -> str:
        connecting.set()
        await asked.wait()
        return "a token, which an open gateway does not look at"

    async with board.gateway():
        client = TickClient(
            board.url, token=token, on_message=lambda m: kinds.append(m["type"])
        )
        async with client as ticks:
            await asyncio.wait_for(connecting.wait(), 10)
            ticks.subscribe(SAMSUNG, Seen().put)
            asked.set()
            await soon(lambda: "snapshot" in kinds)
            await soon(lambda: "heartbeat" in kinds)
    assert kinds.count("snapshot") == 1


async def test_a_market_stands_for_its_instruments_while_they_change(
    board: Board,
) -> None:
    """Moves, a rename, and giving up by the name that was asked for."""
    board.publish(make_row(SAMSUNG), make_row(HYNIX), make_row(NAVER))
    board.list_instruments()
    chips, kosdaq = Seen(), Seen()
    async with board.gateway(), TickClient(board.url, waits=True) as ticks:
        end = ticks.subscribe(["sector:chips"], chips.put)
        ticks.subscribe(["market:KOSDAQ"], kosdaq.put)
        await soon(lambda: set(chips.items) == {SAMSUNG, HYNIX})
        await soon(lambda: set(kosdaq.items) == {NAVER})
        assert ticks.members["sector:chips"] == (HYNIX, SAMSUNG)
        late = Seen()
        ticks.subscribe(["sector:chips"], late.put)
        assert set(late.items) == {SAMSUNG, HYNIX}
        board.list_instruments(
            INSTRUMENT_LIST.replace("KOSPI,chips,0.30", "KOSDAQ,x,0.30")
        )
        await soon(lambda: set(kosdaq.items) == {NAVER, HYNIX})
        assert ticks.members["sector:chips"] == (SAMSUNG,)
        board.list_instruments(INSTRUMENT_LIST.replace(",chips,", ",semiconductors,"))
        await soon(lambda: "sector:semiconductors" in ticks.members)
        assert "sector:chips" not in ticks.members
        board.publish(*(make_row(i, "7", seq=2) for i in (SAMSUNG, HYNIX)))
        await soon(lambda: chips.prices() == {SAMSUNG: "7", HYNIX: "7"})
        assert kosdaq.prices()[HYNIX] != "7"
        assert ticks.position is not None
        await soon(lambda: ticks.position and "instruments" in ticks.position)
        end()
        assert set(ticks.items) == {SAMSUNG, HYNIX, NAVER}
        board.publish(make_row(SAMSUNG, "8", seq=3))
        await soon(lambda: late.prices()[SAMSUNG] == "8")
        assert chips.prices()[SAMSUNG] == "7"


async def test_groups_are_keys_like_others(board: Board) -> None:
    """Figures with every digit, once per window, under a new name, too."""
    huge = make_group("sector:chips", 1, volume=12345678901234567890123)
    board.list_instruments()
    board.publish(make_row(), groups=[huge, make_group("market:KOSPI", 5)])
    chips: list[Item] = []
    every: list[Item] = []
    async with board.gateway(), TickClient(board.url, waits=True) as ticks:
        ticks.subscribe(["group:sector:chips"], chips.append)
        await soon(lambda: len(chips) == 1)
        assert chips[0]["volume"] == Decimal("1234567890123456789012.3")
        assert (chips[0]["trades"], chips[0]["mean_change_pct"]) == (1, None)
        end = ticks.subscribe(["group:*"], every.append)
        await soon(lambda: {figures["trades"] for figures in every} == {1, 5})
        board.publish(groups=[make_group("sector:chips", 2)])
        await soon(lambda: every[-1]["trades"] == chips[-1]["trades"] == 2)
        assert set(ticks.groups) == {"group:sector:chips", "group:market:KOSPI"}
        end()
        assert set(ticks.groups) == {"group:sector:chips"}
        board.list_instruments(INSTRUMENT_LIST.replace(",chips,", ",semiconductors,"))
        await soon(lambda: not ticks.groups)
        board.publish(groups=[make_group("sector:semiconductors", 3)])
        await soon(lambda: chips[-1]["group"] == "group:sector:semiconductors")
    assert every[-1]["trades"] == 2


async def test_groups_are_resumed_and_never_go_back(board: Board) -> None:
    board.publish(groups=[make_group("market:KOSPI", 1)])
    seen, figures = Seen(), list[Item]()
    async with seen.client(board.url) as ticks:
        ticks.subscribe(["group:*"], figures.append)
        async with board.gateway():
            await soon(lambda: len(figures) == 1 and ticks.position is not None)
        await soon(lambda: seen.states[-1] == "offline")
        board.publish(groups=[make_group("market:KOSDAQ", 2)])
        async with board.gateway():
            await soon(lambda: len(figures) == 2)
        old = {"epoch": "k3x9", "data": [], "groups": [{**figures[0], "window": 1}]}
        ticks._put(old)
        ticks._enter("another")
        assert (len(figures), ticks.groups, seen.resets) == (2, {}, 1)
    assert [f["trades"] for f in figures] == [1, 2]


async def test_a_market_is_resumed_with_what_changed_meanwhile(board: Board) -> None:
    """The table was another one when the client came back: it has all of now."""
    board.publish(make_row(SAMSUNG), make_row(HYNIX), make_row(NAVER))
    board.list_instruments()
    seen, states = Seen(), []
    async with TickClient(
        board.url, waits=True, on_state=lambda state, _: states.append(state)
    ) as ticks:
        ticks.subscribe(["market:KOSDAQ"], seen.put)
        async with board.gateway():
            await soon(lambda: set(seen.items) == {NAVER})
            await soon(lambda: ticks.position is not None)
        await soon(lambda: states[-1] == "offline")
        board.list_instruments(INSTRUMENT_LIST.replace("KOSPI", "KOSDAQ"))
        async with board.gateway():
            await soon(lambda: set(seen.items) == {NAVER, SAMSUNG, HYNIX})


async def test_bars_are_followed_open_closed_and_amended(board: Board) -> None:
    """By ISIN or code, beside quotes; exact; an end is an end."""
    board.publish(make_row(SAMSUNG, "1"))
    board.list_instruments()
    bars = BarPublisher(board._client)
    bars.publish(make_bar(value="4200.5"))
    got: list[Bar] = []
    seen = Seen()
    async with board.gateway(), seen.client(board.url) as ticks:
        ticks.subscribe([SAMSUNG], seen.put)
        stop = ticks.bars("1m", ["005930"], got.append, last=2)
        await soon(lambda: len(got) == 1)
        assert str(got[0]["value"]) == "4200.5"
        assert got[0]["vwap"] == Decimal("105.0125")
        later: list[Bar] = []
        ticks.bars("1m", ["005930"], later.append)
        assert later == got
        bars.publish(make_bar(closed=True))
        await soon(lambda: [bar["closed"] for bar in got] == [False, True])
        bars.publish(make_bar(trades=5, closed=True, revision=1))
        await soon(lambda: got[-1]["revision"] == 1)
        assert seen.prices() == {SAMSUNG: "1"}
        stop()
        # Held by its code, it is not given up by its ISIN.
        ticks.bars("1m", [SAMSUNG], print)()
        count = len(got)
        bars.publish(make_bar(trades=6, closed=True, revision=2))
        await soon(lambda: later[-1]["revision"] == 2)
        assert len(got) == count
    assert seen.rejected == []


async def test_bars_resume_and_tell_what_is_missing(board: Board, proxy: Proxy) -> None:
    """After a cut line what changed comes; after a restart it is said to be missing."""
    bars = BarPublisher(board._client)
    bars.publish(make_bar(HYNIX), make_bar())
    got: list[Bar] = []
    missed: list[int] = []
    seen = Seen()
    client = seen.client(
        address(proxy.port), on_bars_missed=lambda: missed.append(len(got))
    )
    async with client as ticks:
        ticks.bars("5m", ["*"], got.append)
        async with board.gateway():
            await soon(lambda: len(got) == 2)
            proxy.pause()
            await soon(lambda: seen.states[-1:] == ["offline"])
            bars.publish(make_bar(trades=7))
            proxy.resume()
            await soon(lambda: got[-1]["trades"] == 7)
            assert (len(got), missed) == (3, [])
        await soon(lambda: seen.states[-1:] == ["offline"])
        bars.publish(make_bar(trades=8))
        async with board.gateway():
            await soon(lambda: bool(missed))
            assert {bar["trades"] for bar in got[-2:]} == {4, 8}


def test_of_two_items_the_one_of_the_greater_revision_is_newer() -> None:
    """A trade that was shown was taken back: what stands is older, and news."""
    gone: Item = {"isin": "A", "time": 2, "seq": 2}
    stands: Item = {"isin": "A", "time": 1, "seq": 1, "revision": 1}
    later: Item = {"isin": "A", "time": 3, "seq": 3, "revision": 1}
    assert is_older(gone, stands)
    assert not is_older(stands, gone)
    assert is_older(stands, later)
    assert not is_older(stands, stands)
