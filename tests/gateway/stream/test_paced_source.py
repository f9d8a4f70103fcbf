"""What those see whose token allows one price of an instrument in an interval."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from gateway.admission.tokens import TokenGrant
from gateway.settings import GatewaySettings
from gateway.stream.board import Position
from gateway.stream.counters import Counters
from gateway.stream.frames import Update
from gateway.stream.hub import Hub
from gateway.stream.paced_source import LATE_WINDOWS, granted_ms
from tests.gateway.listener import Listener
from tests.gateway.samples import (
    FIRST_WINDOW,
    HYNIX,
    SAMSUNG,
    WINDOW_MS,
    make_board,
    make_group,
    make_row,
    make_snapshot,
    restate,
)
from throttle.contract.snapshot import Row

BEGIN = (FIRST_WINDOW // 60_000 + 1) * 60_000
"""The beginning of an interval of every length used here."""


class Market:
    """A hub whose windows are published by a clock that the test turns."""

    def __init__(self) -> None:
        self.board = make_board(make_row(price="1"))
        self.hub = Hub(self.board, GatewaySettings(), Counters())
        self.now_ms = BEGIN
        self.offset = 1

    def publish(
        self,
        *rows: Row,
        after_ms: int = WINDOW_MS,
        behind_ms: int = 0,
        **further: Any,
    ) -> None:
        """Publish a window so long after the one before, its end behind the clock."""
        self.now_ms += after_ms
        self.offset += 1
        window = self.now_ms - behind_ms
        snapshot = make_snapshot(self.offset, *rows, window=window, **further)
        news = self.board.apply(snapshot)
        update = Update(
            *(self.board.complete, news.windows, news.rows, self.board.numbers),
            news.groups,
        )
        self.hub.publish(update, snapshot, self.now_ms)

    def prices(self, seqs: Iterable[int], after_ms: int = WINDOW_MS) -> None:
        """Publish windows in which the instrument's price is its number."""
        for seq in seqs:
            self.publish(make_row(price=str(seq), seq=seq), after_ms=after_ms)

    def join(self, interval_ms: int, *keys: str) -> Listener:
        """Have a client with a token come in and subscribe."""
        listener = Listener(self.hub)
        grant = TokenGrant(min_interval_ms=interval_ms)
        listener.client.commands.admit(grant, 0.0, self.now_ms * 1_000)
        if keys:
            say(listener, *keys)
        return listener


def say(listener: Listener, *keys: str, op: str = "subscribe", **further: Any) -> None:
    """Send a message."""
    text = json.dumps({"op": op, "keys": keys, **further})
    listener.client.commands.answer(text, 0.0, 0)


def prices(listener: Listener) -> list[int]:
    """Return the prices that a client is due now, of snapshots and updates."""
    return [
        item["price"] for frame in listener.frames() for item in frame.get("data", [])
    ]


async def test_a_client_sees_one_price_an_interval() -> None:
    """That of the moment when the interval began; trades add up."""
    market = Market()
    client = market.join(10_000, SAMSUNG)
    assert prices(client) == [1]
    market.prices(range(2, 7))
    # The first interval began in the middle: it lasts until the end of the next.
    assert prices(client) == []
    market.prices(range(7, 12))
    frame = client.frames()[-1]
    assert (frame["type"], frame["merged"]) == ("update", 10)
    assert [(i["price"], i["trades"]) for i in frame["data"]] == [(11, 10)]
    market.prices(range(12, 16))
    assert prices(client) == []
    market.prices([16])
    assert prices(client) == [16]


@pytest.mark.parametrize("token_ms", [0, 4_000])
async def test_the_last_price_comes_although_no_window_does(token_ms: int) -> None:
    """One in an interval as ever; who is due nothing is not woken."""
    market = Market()
    client = market.join(token_ms)
    say(client, SAMSUNG, min_interval_ms=8_000)
    prices(client)
    market.prices(range(2, 6))
    assert prices(client) == [5]
    sent_ms = market.now_ms
    late_ms = LATE_WINDOWS * WINDOW_MS if token_ms else 0
    market.prices([6])
    assert prices(client) == []
    client.woken.clear()
    while not client.woken.is_set():
        assert market.now_ms < sent_ms + 16_000 + late_ms
        market.now_ms += 500
        market.hub.pass_time(market.now_ms)
        await market.hub.served()
    assert prices(client) == [6]
    assert market.now_ms // 8_000 > sent_ms // 8_000
    client.woken.clear()
    market.now_ms += 60_000
    market.hub.pass_time(market.now_ms)
    await market.hub.served()
    assert not client.woken.is_set()


@pytest.mark.parametrize("keys", [(SAMSUNG,), ("*",)])
async def test_subscribing_anew_shows_nothing_newer(keys: tuple[str, ...]) -> None:
    """Nor does another stream, which comes later."""
    market = Market()
    client = market.join(10_000, *keys)
    assert prices(client) == [1]
    for seq in range(2, 6):
        market.prices([seq])
        say(client, *keys, op="unsubscribe")
        say(client, *keys)
        assert prices(client) == [1]
        assert prices(market.join(10_000, *keys)) == [1]


async def test_an_item_tells_no_other_price_of_its_interval() -> None:
    """High and low are prices: only how many trades there were is said."""
    market = Market()
    client = market.join(4_000, "*")
    assert prices(client) == [1]
    for seq in range(2, 6):
        row = make_row(price=str(seq), seq=seq, trades=3)
        market.publish(row, make_row(HYNIX, seq=seq))
    items = {i["isin"]: i for f in client.frames() for i in f["data"]}
    assert (items[SAMSUNG]["price"], items[SAMSUNG]["trades"]) == (5, 12)
    assert not {"volume", "value", "high", "low"} & items[SAMSUNG].keys()


async def test_a_late_trade_is_not_taken_for_the_one_that_is_shown() -> None:
    """One trade is told by its size and price, or not at all."""
    market = Market()
    client = market.join(4_000, "*")
    assert prices(client) == [1]
    shown = market.board.get(SAMSUNG)
    assert shown is not None
    market.publish(make_row(HYNIX))
    market.publish(restate(shown, make_row(seq=0)))
    market.publish()
    market.publish()
    items = {i["isin"]: i for f in client.frames() for i in f["data"]}
    assert (items[HYNIX]["trades"], items[SAMSUNG]["trades"]) == (1, 0)
    assert items[SAMSUNG]["price"] == 1


async def test_others_are_served_as_ever() -> None:
    """At once, and each window."""
    market = Market()
    market.join(10_000, SAMSUNG)
    other = market.join(0, SAMSUNG)
    assert prices(other) == [1]
    market.prices([2])
    assert prices(other) == [2]


async def test_intervals_are_of_the_clock_while_an_outage_is_worked_off() -> None:
    """Windows of the past come in quick succession then."""
    market = Market()
    client = market.join(10_000, SAMSUNG)
    assert prices(client) == [1]
    market.prices([2], after_ms=20_000)
    assert prices(client) == [2]
    market.prices(range(3, 12), after_ms=1)
    assert prices(client) == []


async def test_intervals_that_clients_wish_for_are_of_the_clock_too() -> None:
    """An outage is worked off within seconds: its windows are no reason to hurry."""
    market = Market()
    client = market.join(0)
    text = json.dumps({"op": "subscribe", "keys": ["*"], "min_interval_ms": 10_000})
    client.client.commands.answer(text, 0.0, 0)
    assert prices(client) == [1]
    # Its windows come a minute late, one each 100 ms.
    behind_ms = 60_000
    got = []
    for seq in range(2, 32):
        row = make_row(price=str(seq), seq=seq)
        market.publish(row, after_ms=100, behind_ms=behind_ms)
        behind_ms -= 1_900
        got += prices(client)
    assert len(got) <= 1
    # What came late in an interval is that of the next one.
    market.prices(range(32, 45))
    late = prices(client)
    market.prices(range(45, 47))
    assert len(late) <= 2
    assert len(prices(client)) <= 1


async def test_an_interval_waits_a_little_for_its_window() -> None:
    """And begins without it where the job is late."""
    market = Market()
    client = market.join(10_000, SAMSUNG)
    prices(client)
    market.prices(range(2, 11))
    assert not market.hub._open_paces(BEGIN + 20_300)
    market.prices([11])
    assert prices(client) == [11]
    assert not market.hub._open_paces(BEGIN + 33_999)
    market.publish(make_row(price="12", seq=12))
    assert market.hub._open_paces(BEGIN + 34_000)
    assert prices(client) == [12]


async def test_a_slow_client_loses_nothing() -> None:
    """What it has not read is merged with what is shown next."""
    market = Market()
    client = market.join(4_000, SAMSUNG, HYNIX)
    market.publish(make_row(HYNIX))
    market.prices(range(2, 9))
    market.prices(range(9, 15))
    got = {i["isin"]: i["price"] for f in client.frames() for i in f.get("data", [])}
    assert got == {SAMSUNG: 14, HYNIX: 199500}


async def test_another_epoch_is_shown_when_the_next_interval_begins() -> None:
    """Not before: it may name a trade of now."""
    market = Market()
    client = market.join(10_000, SAMSUNG)
    assert prices(client) == [1]
    market.board.replace(Position("other", 5, market.now_ms), [])
    market.hub.restart()
    assert client.frames() == []
    market.hub._open_paces(BEGIN + 25_000)
    [frame] = client.frames()
    assert (frame["type"], frame["epoch"]) == ("snapshot", "other")


async def test_groups_keep_to_the_interval_too() -> None:
    """Their newest figures come with it."""
    market = Market()
    client = market.join(10_000, "group:*")
    client.frames()
    for trades in range(1, 11):
        market.publish(make_row(), groups=[make_group(trades=trades)])
    [frame] = client.frames()
    assert [group["trades"] for group in frame["groups"]] == [10]


async def test_a_newer_token_changes_what_is_seen() -> None:
    """From now on, and what is held is sent as it is there."""
    market = Market()
    client = market.join(10_000, SAMSUNG)
    prices(client)
    market.prices([2])
    client.client.commands.admit(TokenGrant(), 0.0, market.now_ms * 1_000)
    assert prices(client) == [2]
    client.client.commands.admit(
        TokenGrant(min_interval_ms=10_000), 0.0, market.now_ms * 1_000
    )
    market.prices([3])
    assert 3 not in prices(client)


def test_an_interval_is_never_shorter_than_the_tokens() -> None:
    """There are few of them, so that few have to be kept."""
    granted = {granted_ms(wanted, WINDOW_MS) for wanted in range(0, 86_400_001, 500)}
    assert len(granted) < 120
    for wanted in (0, 1, 2_000, 5_000, 60_000, 60_001, 900_000, 3_600_001, 86_400_000):
        assert wanted <= granted_ms(wanted, WINDOW_MS) <= wanted + 3_600_000
    assert granted_ms(5_000, WINDOW_MS) == 6_000
