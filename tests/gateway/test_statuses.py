"""Trading statuses, from Redis to clients: each of them, at once, on every way."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import redis

from ingest.redis_keys import StatusKeys
from ingest.statuses.status_log import StatusLog
from ingest.statuses.trading_status import TradingStatus
from ingest.trade import Trade
from tests.clients.board import address, gateway_on
from tests.clients.patience import soon
from tests.conftest import eventually
from tests.doc_pages import blocks
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG, make_row
from tests.gateway.servers import Gateway, Stream, running_gateway
from tests.ports import free_port
from tests.redis_users import documented_users, url_of
from tickthrottle_client import TickClient
from tickthrottle_client.log_v1 import FIELD, stream_key

pytestmark = pytest.mark.redis

TIME_US = 1_773_964_803_811_204
KEYS = StatusKeys("tt")


class Exchange:
    """Adds statuses, each a microsecond later than the one before."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self.log = StatusLog(client, "tt", 1)
        self.time_us = TIME_US

    def say(self, status: str = "halted", isin: str = SAMSUNG, **more: Any) -> None:
        """Add a status."""
        self.time_us += 1
        self.log.add(TradingStatus(isin, status, self.time_us, **more), self.time_us)

    def trade(self, price: str) -> None:
        """Append a trade of Samsung's."""
        trade = Trade(SAMSUNG, self.time_us, 1, price, "1")
        self._client.xadd(stream_key("tt", 0), {FIELD: trade.to_wire()})


@pytest.fixture
def exchange(client: redis.Redis) -> Exchange:
    """An exchange that has not said anything."""
    return Exchange(client)


def follow(stream: Stream, keys: list[str]) -> None:
    """Hold some keys, of which there is a snapshot and no status."""
    stream.say(op="subscribe", keys=keys)
    stream.take("ack")
    stream.take("snapshot")


def take(stream: Stream) -> list[tuple[str, str]]:
    """Return what the next message says of which instruments."""
    frame = stream.take("statuses")
    assert (frame["missed"], frame["snapshot"]) == (0, False)
    return [(entry["isin"], entry["status"]) for entry in frame["entries"]]


def test_who_holds_the_instrument_is_told_at_once(
    gateway: Gateway, exchange: Exchange, publisher: Publisher
) -> None:
    """By any key of items, before the window's end; who does not, is not told."""
    publisher.list_instruments()
    keys = (SAMSUNG, "005930", "*", "market:KOSPI", "sector:chips", f"{SAMSUNG}@KRX")
    eventually(lambda: b"005930" in gateway.get("/v1/instruments")[1])
    for key in keys:
        with gateway.stream() as stream:
            stream.say(op="subscribe", keys=[key], min_interval_ms=60_000)
            if stream.take("ack")["count"] and exchange.time_us > TIME_US:
                assert stream.take("statuses")["snapshot"], key
            assert stream.take("snapshot")["final"]
            exchange.trade("71900.50")
            exchange.say("auction", expected_price="72000", reason=key)
            frame = stream.take("statuses")
            [entry] = frame["entries"]
            assert (entry["status"], entry["reason"]) == ("auction", key)
            assert entry["last"]["price"] == 71900.5
            assert not frame["snapshot"]
    with gateway.stream() as stream:
        stream.subscribe(HYNIX)
        stream.say(op="subscribe", keys=[f"trades:{SAMSUNG}", f"bars:1m:{SAMSUNG}"])
        exchange.say("halted")
        exchange.say("halted", HYNIX)
        stream.take("ack")
        frames = [stream.next() for _ in range(2)]
        told = [f["entries"] for f in frames if f["type"] == "statuses"]
        assert [[entry["isin"] for entry in entries] for entries in told] == [[HYNIX]]


def test_what_is_current_comes_before_a_snapshot_and_over_rest(
    exchange: Exchange, publisher: Publisher, redis_url: str
) -> None:
    """Also to who comes after a restart, to all instruments it holds."""
    exchange.say("halted")
    exchange.say("trading")
    exchange.say("price_bands", lower="1", upper="2")
    exchange.say("halted", HYNIX)
    publisher.publish(make_row())
    with running_gateway(redis_url) as gateway:
        gateway.wait_for("status_reloads")
        with gateway.stream() as stream:
            stream.say(op="subscribe", keys=[SAMSUNG])
            stream.take("ack")
            frame = stream.take("statuses")
            told = {(e["isin"], e["status"]) for e in frame["entries"]}
            of_samsung = {(SAMSUNG, "trading"), (SAMSUNG, "price_bands")}
            assert (told, frame["snapshot"]) == (of_samsung, True)
            stream.take("snapshot")
            stream.say(op="subscribe", keys=[HYNIX], snapshot=False)
            stream.take("ack")
            exchange.say("trading", HYNIX)
            assert take(stream) == [(HYNIX, "trading")]
            stream.say(op="subscribe", keys=[HYNIX])
            stream.take("ack")
            assert len(stream.take("statuses")["entries"]) == 3
        status, body, headers = gateway.fetch("/v1/statuses")
        answer = json.loads(body)
        assert (status, answer["number"], answer["count"]) == (200, 5, 3)
        again = gateway.fetch("/v1/statuses", if_none_match=headers["etag"])
        assert again[0] == 304
        _, body = gateway.get(f"/v1/statuses?isins={HYNIX}")
        assert [one["status"] for one in json.loads(body)["data"]] == ["trading"]
        exchange.say()
        eventually(
            lambda: (
                gateway.fetch("/v1/statuses", if_none_match=headers["etag"])[0] == 200
            )
        )


def test_a_redis_that_was_emptied_is_told_of(
    gateway: Gateway, exchange: Exchange, client: redis.Redis
) -> None:
    """Nobody knows what was missed; numbers begin anew."""
    with gateway.stream() as stream:
        follow(stream, ["*"])
        exchange.say()
        exchange.say("trading")
        seen = 0
        while seen < 2:
            seen += len(take(stream))
        client.delete(KEYS.stream, KEYS.current, KEYS.meta)
        frame = stream.take("statuses")
        assert (frame["missed"], frame["entries"]) == (None, [])
        exchange.say("auction")
        assert take(stream) == [(SAMSUNG, "auction")]


def test_what_redis_no_longer_has_is_missed_by_number(
    gateway: Gateway, exchange: Exchange, client: redis.Redis
) -> None:
    with gateway.stream() as stream:
        follow(stream, ["*"])
        exchange.say()
        take(stream)
        with client.pipeline(transaction=True) as pipe:
            for _ in range(3):
                pipe.hincrby(KEYS.meta, "number", 1)
            pipe.execute()
        exchange.say("trading")
        frame = stream.take("statuses")
        assert (frame["missed"], frame["snapshot"]) == (4, True)
        assert frame["entries"][0]["status"] == "trading"
        exchange.say("halted")
        assert take(stream) == [(SAMSUNG, "halted")]


def test_rubbish_in_redis_costs_itself_alone(
    gateway: Gateway, exchange: Exchange, client: redis.Redis
) -> None:
    with gateway.stream() as stream:
        follow(stream, [SAMSUNG])
        exchange.say()
        take(stream)
        epoch = client.hget(KEYS.meta, "epoch")
        client.hset(KEYS.meta, "number", 2)
        client.xadd(
            KEYS.stream, {"taken": TIME_US, "epoch": epoch, "status": b"{"}, id="2-0"
        )
        exchange.say("trading")
        assert take(stream) == [(SAMSUNG, "trading")]
        assert gateway.count("statuses_undecodable") == 1


def test_a_token_has_its_instruments_and_its_interval_no_prices(
    exchange: Exchange, publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    key_file = tmp_path / "key"
    key_file.write_text(SECRET)
    publisher.publish()
    exchange.trade("71900")
    exchange.say("auction", expected_price="72000")
    exchange.say("halted", HYNIX)
    tick = {"keys": [SAMSUNG], "min_interval_ms": 60_000}
    with running_gateway(redis_url, token_key_file=key_file) as gateway:
        gateway.wait_for("status_reloads")
        bearer = f"Bearer {make_token(tick=tick)}"
        assert gateway.get("/v1/statuses")[0] == 401
        _, body, _ = gateway.fetch("/v1/statuses", authorization=bearer)
        with gateway.stream() as stream:
            stream.say(op="auth", token=make_token(tick=tick))
            stream.take("ack")
            stream.say(op="subscribe", keys=[SAMSUNG, HYNIX])
            stream.take("ack")
            frame = stream.take("statuses")
            stream.take("snapshot")
            exchange.say("auction", expected_price="73000")
            event = stream.take("statuses")
    for entries in (json.loads(body)["data"], frame["entries"], event["entries"]):
        [entry] = entries
        assert entry["isin"] == SAMSUNG
        assert not entry.keys() & {"last", "expected_price"}


def test_a_gateway_of_one_market_tells_of_no_other(
    exchange: Exchange, publisher: Publisher, redis_url: str
) -> None:
    publisher.list_instruments()
    publisher.publish()
    exchange.say("halted")
    exchange.say("halted", NAVER)
    with running_gateway(redis_url, served_market="KOSDAQ") as gateway:
        gateway.wait_for("status_reloads")
        with gateway.stream() as stream:
            stream.say(op="subscribe", keys=["*"])
            stream.take("ack")
            [entry] = stream.take("statuses")["entries"]
            assert entry["isin"] == NAVER
        data = json.loads(gateway.get("/v1/statuses")[1])["data"]
        assert [one["isin"] for one in data] == [NAVER]


async def test_the_client_tells_each_once_and_knows_what_is_current(
    exchange: Exchange, publisher: Publisher, redis_url: str
) -> None:
    """Across a lost connection, too; decimals keep their digits."""
    publisher.publish(make_row())
    exchange.say("auction", expected_price="71900.50")
    told: list[dict[str, Any]] = []
    port = free_port()
    async with TickClient(address(port), waits=True, on_status=told.append) as ticks:
        end = ticks.subscribe(SAMSUNG, lambda item: None)
        async with gateway_on(redis_url, port):
            await soon(lambda: len(told) == 1)
            assert str(told[0]["expected_price"]) == "71900.50"
            exchange.say("trading")
            await soon(lambda: len(told) == 2)
        exchange.say("halted")
        async with gateway_on(redis_url, port):
            await soon(lambda: len(told) == 3)
            assert [one["status"] for one in told[1:]] == ["trading", "halted"]
            assert [one["missed"] for one in told] == [0, 0, 0]
            assert [one["status"] for one in ticks.statuses[SAMSUNG]] == ["halted"]
            end()
            assert ticks.statuses == {}


def test_feed_and_gateway_do_it_with_their_rights(
    client: redis.Redis, publisher: Publisher, redis_url: str
) -> None:
    """As documented, and no more is needed."""
    publisher.publish()
    with (
        documented_users(client),
        redis.Redis.from_url(url_of("tt-exchange", redis_url)) as feed,
        redis.Redis.from_url(url_of("tt-intake", redis_url)) as intake,
        running_gateway(url_of("tt-gateway", redis_url)) as gateway,
        gateway.stream() as stream,
    ):
        gateway.wait_for("reloads")
        follow(stream, ["*"])
        for user in (feed, intake):
            exchange = Exchange(user)
            exchange.time_us += user is intake
            exchange.say()
            assert take(stream) == [(SAMSUNG, "halted")]


@pytest.mark.timeout(90)
def test_the_example_of_the_document_runs(
    exchange: Exchange, publisher: Publisher, redis_url: str
) -> None:
    """A newcomer can copy it, and is told what is current."""
    publisher.list_instruments()
    publisher.publish(make_row())
    exchange.say("halted")
    [program] = blocks("docs/market.md", "python")
    with running_gateway(redis_url) as gateway:
        gateway.wait_for("status_reloads")
        eventually(lambda: b"005930" in gateway.get("/v1/instruments")[1])
        program = program.replace(":8000", f":{gateway.port}")
        command = [sys.executable, "-u", "-c", program]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            process.kill()
    assert "'status': 'halted'" in line
