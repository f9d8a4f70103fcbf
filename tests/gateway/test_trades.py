"""Every trade of an instrument, from the log to clients: all, or the gap is told."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from ingest.trade import Trade
from ingest.tradelog.contract import partition_of
from ingest.tradelog.redis_log_reader import open_log
from tests.clients.patience import soon
from tests.conftest import eventually
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG, make_isins
from tests.gateway.servers import Gateway, Stream, running_gateway
from throttle.testing.driver import ThrottleDriver
from tickthrottle_client import TickClient, TradeEntry, sums_of, traded
from tickthrottle_client.log_v1 import FIELD, stream_key

pytestmark = pytest.mark.redis

PARTITIONS = 4
TIME_US = 1_773_964_803_811_204


class TradeLog:
    """A trade log that a test appends to by hand."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        open_log(client, "tt", PARTITIONS)
        self.count = 0

    def payload(self, isin: str, payload: bytes) -> None:
        """Append any bytes where an instrument's trades are."""
        key = stream_key("tt", partition_of(isin, PARTITIONS))
        self._client.xadd(key, {FIELD: payload})

    def trade(self, isin: str = SAMSUNG, price: str = "71900", **extra: Any) -> None:
        """Append a trade."""
        self.count += 1
        trade = Trade(isin, TIME_US + self.count, self.count, price, "2", extra)
        self.payload(isin, trade.to_wire())


@pytest.fixture
def log(client: redis.Redis) -> TradeLog:
    """A log with a trade that was there before."""
    log = TradeLog(client)
    log.trade(price="1")
    return log


@pytest.fixture
def following(log: TradeLog, publisher: Publisher, redis_url: str) -> Iterator[Gateway]:
    """A gateway beside the log."""
    publisher.list_instruments()
    publisher.publish()
    with running_gateway(redis_url) as running:
        running.wait_for("reloads")
        yield running


def follow(stream: Stream, log: TradeLog, *names: str) -> None:
    """Ask for trades, and wait until they come: a look takes a moment."""
    stream.say(op="subscribe", keys=[f"trades:{name}" for name in names])
    ack = stream.take("ack")
    assert [*ack["accepted"]] == [f"trades:{i}" for i in (SAMSUNG, HYNIX)[: len(names)]]


def take(stream: Stream, count: int) -> list[dict[str, Any]]:
    """Return so many entries, whose numbers have no hole."""
    entries: list[dict[str, Any]] = []
    due: dict[str, int] = {}
    while len(entries) < count:
        frame = stream.take("trades")
        assert frame["missed"] == 0
        first = due.setdefault(frame["isin"], frame["number"])
        assert frame["number"] == first
        due[frame["isin"]] += len(frame["entries"])
        entries += frame["entries"]
    return entries


def is_read(gateway: Gateway, log: TradeLog) -> None:
    """Wait until the gateway has begun to read the log."""
    before = gateway.count("trade_entries_read")

    def look() -> bool:
        log.trade(NAVER)
        log.payload(SAMSUNG, b"{}")
        log.payload(HYNIX, b"{}")
        return gateway.count("trade_entries_read") > before

    eventually(look)


def test_every_trade_comes_in_order_with_all_its_fields(
    following: Gateway, log: TradeLog
) -> None:
    """By ISIN or code, from now on; others, and what is no trade, do not."""
    with following.stream() as stream:
        follow(stream, log, SAMSUNG, "000660")
        is_read(following, log)
        for n in range(1_500):
            log.trade(price=f"{71_900 + n}.50", venue="KRX")
            log.trade(NAVER)
            log.payload(SAMSUNG, b"rubbish")
        log.trade(HYNIX)
        log.payload(SAMSUNG, b'{"isin":"%b","time":1,"cancels":7}' % SAMSUNG.encode())
        wrong = {"isin": SAMSUNG, "time": TIME_US, "cancels": 3}
        log.payload(SAMSUNG, json.dumps(wrong).encode())
        entries = take(stream, 1_502)
    samsung = [entry for entry in entries if entry["isin"] == SAMSUNG]
    assert [one["price"] for one in samsung[:-1]] == [
        71_900.5 + n for n in range(1_500)
    ]
    assert {one["venue"] for one in samsung[:-1]} == {"KRX"}
    assert (samsung[-1]["cancels"], "price" in samsung[-1]) == (3, False)
    assert all(one["window"] % 2_000 == 0 for one in entries)
    assert [e["isin"] for e in entries if e["isin"] != SAMSUNG] == [HYNIX]


def test_what_cannot_be_followed_is_named(following: Gateway) -> None:
    """All instruments, series, rubbish, and more than five."""
    with following.stream() as stream:
        isins = make_isins(6)
        wrong = ["*", f"{SAMSUNG}@KRX", "market:KOSPI", "12", "KR7005930004"]
        stream.say(op="subscribe", keys=[f"trades:{name}" for name in (*wrong, *isins)])
        ack = stream.take("ack")
        assert ack["accepted"] == [f"trades:{isin}" for isin in isins[:5]]
        refused = [one["code"] for one in ack["rejected"]]
        assert refused == [*["unknown_key"] * 4, "bad_isin", "not_allowed"]
        stream.say(op="list")
        assert stream.take("ack")["count"] == 5
        stream.say(op="unsubscribe", keys=[f"trades:{isins[0]}"])
        assert stream.take("ack")["accepted"] == [f"trades:{isins[0]}"]
        stream.say(op="subscribe", keys=[f"trades:{isins[5]}"])
        assert stream.take("ack")["rejected"] == []


@pytest.mark.parametrize(
    ("tick", "code"),
    [
        ({"trades": True}, None),
        ({"trades": True, "keys": [SAMSUNG]}, None),
        ({"trades": True, "keys": [HYNIX]}, "not_allowed"),
        ({"trades": True, "min_interval_ms": 4_000}, "not_allowed"),
        ({}, "not_allowed"),
    ],
)
def test_a_token_has_to_say_it(
    tick: dict[str, Any],
    code: str | None,
    log: TradeLog,
    publisher: Publisher,
    redis_url: str,
    tmp_path: Any,
) -> None:
    """A right of its own, for the instruments of the token; a newer one may take it."""
    key_file = tmp_path / "key"
    key_file.write_text(SECRET)
    publisher.publish()
    with (
        running_gateway(redis_url, token_key_file=key_file) as gateway,
        gateway.stream() as stream,
    ):
        stream.say(op="auth", token=make_token(tick=tick))
        stream.take("ack")
        stream.say(op="subscribe", keys=[f"trades:{SAMSUNG}"])
        rejected = [one["code"] for one in stream.take("ack")["rejected"]]
        assert rejected == ([] if code is None else [code])
        stream.say(op="auth", token=make_token(tick={}))
        lost = [one["key"] for one in stream.take("ack")["rejected"]]
        assert lost == ([f"trades:{SAMSUNG}"] if code is None else [])


def test_a_log_that_is_away_is_a_gap_of_unknown_length(
    following: Gateway, log: TradeLog, client: redis.Redis
) -> None:
    """What comes after it is told with it, and numbers go on."""
    with following.stream() as stream:
        follow(stream, log, SAMSUNG)
        is_read(following, log)
        log.trade(price="1")
        [first] = take(stream, 1)
        saved = {key: client.dump(key) for key in client.scan_iter("tt:log*")}
        client.delete(*saved)
        eventually(lambda: following.count("trade_looks_skipped") > 0)
        for key, value in saved.items():
            client.restore(key, 0, value)
        eventually(lambda: _again(following, log))
        log.trade(price="3")
        frame = stream.take("trades")
        assert frame["missed"] is None
        assert frame["number"] == 2
        prices = [entry["price"] for entry in frame["entries"]]
        while prices[-1] != 3:
            prices += [entry["price"] for entry in take(stream, 1)]
    assert first["price"] == 1


def _again(gateway: Gateway, log: TradeLog) -> bool:
    before = gateway.count("trade_entries_read")
    log.payload(SAMSUNG, b"{}")
    eventually(lambda: gateway.count("trade_entries_read") >= before)
    return gateway.count("trade_entries_read") > before


async def test_the_trades_of_a_window_are_its_item(
    client: redis.Redis, redis_url: str
) -> None:
    """A client checks it, with trades that count for a part and some that are late."""
    items: list[dict[str, Any]] = []
    entries: list[TradeEntry] = []
    with (
        ThrottleDriver(redis_url=redis_url) as driver,
        running_gateway(redis_url) as gateway,
    ):
        driver.trade(SAMSUNG, "71900", at_ms=100)
        driver.turn_clock(2_000)
        gateway.wait_for("reloads")
        url = f"ws://{gateway.host}:{gateway.port}/v1/stream"
        async with TickClient(url) as ticks:
            ticks.subscribe(SAMSUNG, items.append)
            ticks.trades("KR7005930003", entries.append)
            at_ms = 2_000
            while not gateway.count("trade_entries_read"):
                driver.payload(b"{}", at_ms=at_ms, partition=partition_of(SAMSUNG, 4))
                at_ms += 1
                await asyncio.sleep(0.05)
            for window in range(1, 5):
                at_ms = 2_000 * window + 500
                for n in range(5):
                    updates = {"updates": "volume"} if n == 3 else {}
                    driver.trade(
                        SAMSUNG,
                        str(71_900 + 7 * n - window),
                        at_ms=at_ms + 100 * n,
                        time_ms=at_ms + 100 * n - (5_000 if n == 2 else 0),
                        seq=10 * window + n,
                        size=f"{n + 1}.5",
                        **updates,
                    )
                driver.turn_clock(2_000 * window + 2_000)
            await soon(lambda: items and items[-1].get("window", 0) % 10_000 == 0)
            await soon(lambda: len(entries) == 20)
    assert [entry["missed"] for entry in entries] == [0] * 20
    assert [entry["number"] for entry in entries] == list(range(1, 21))
    checked = 0
    for item in items:
        of_window = [e for e in entries if e["window"] == item.get("window")]
        if of_window:
            assert sums_of(of_window) == traded(item)
            checked += 1
    assert checked
